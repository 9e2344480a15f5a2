//! Queues of librdkafka: one of ours for each writer, and the consumer's own.
//!
//! Invariants: a writer's queue is destroyed before the client is dropped, or the client never is (a queue that outlived it would make the drop hang);
//! a queue is destroyed only when nothing assigned is forwarded to it, or the records would be fetched into nothing.

use std::ffi::CString;
use std::fmt;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::ptr::{self, NonNull};
use std::sync::Arc;

use rdkafka::bindings as native;
use rdkafka::consumer::{BaseConsumer, Consumer};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::eventfd::{EventFd, ONE};
use super::record::{Item, NativeEvent};
use crate::kafka::context::Context;
use crate::record::TopicPartition;

/// The client, shared with the queues made from it. Nobody drops it by accident: the thread takes it out and closes it, or it stays for ever.
pub(in crate::kafka) type SharedClient = Arc<ManuallyDrop<BaseConsumer<Context>>>;

/// A queue handle that is destroyed with this value, before its client.
struct Handle {
    queue: NonNull<native::rd_kafka_queue_t>,
    wake: Arc<EventFd>,
    client: SharedClient,
}

// SAFETY: librdkafka's queues are guarded by locks of their own and bound to no thread.
unsafe impl Send for Handle {}
// SAFETY: as above; all functions used here may be called at the same time.
unsafe impl Sync for Handle {}

impl Handle {
    /// Takes over a queue that librdkafka gave, and has it write to `wake` when it becomes non-empty.
    fn adopt(
        queue: *mut native::rd_kafka_queue_t,
        wake: Arc<EventFd>,
        client: &SharedClient,
    ) -> Option<Self> {
        let queue = NonNull::new(queue)?;
        let fd = wake.as_fd().as_raw_fd();
        // SAFETY: the queue is valid; the payload is copied; the descriptor is kept open by this value, which switches the events off before it goes.
        unsafe { native::rd_kafka_queue_io_event_enable(queue.as_ptr(), fd, ONE.as_ptr().cast(), ONE.len()) };
        Some(Self { queue, wake, client: Arc::clone(client) })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the queue is valid and destroyed once; the client is still there, since this value holds it.
        unsafe {
            native::rd_kafka_queue_io_event_enable(self.queue.as_ptr(), -1, ptr::null(), 0);
            native::rd_kafka_queue_destroy(self.queue.as_ptr());
        }
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("queue", &self.queue).finish_non_exhaustive()
    }
}

/// A writer's queue, held by the consumer thread for forwarding and by the writer for draining.
#[derive(Debug)]
pub(in crate::kafka) struct SharedQueue(Handle);

impl SharedQueue {
    /// A new queue of this client.
    pub(in crate::kafka) fn new(client: &SharedClient) -> std::io::Result<Self> {
        let wake = Arc::new(EventFd::new()?);
        // SAFETY: the client is valid; the queue that comes back is ours to destroy.
        let queue = unsafe { native::rd_kafka_queue_new(client.client().native_ptr()) };
        let handle = Handle::adopt(queue, wake, client);
        handle.map(Self).ok_or_else(|| std::io::Error::other("librdkafka gave no queue"))
    }

    /// Sends a partition's records here from now on. The forward is lost at each unassign, and only some time after the call returned: it must be
    /// set before an assign, lest the first records reach the consumer's queue, and again after it.
    pub(in crate::kafka) fn forward(&self, place: &TopicPartition) -> bool {
        let Ok(topic) = CString::new(&*place.topic) else { return false };
        let client = self.0.client.client().native_ptr();
        // SAFETY: client and name are valid for the call; the handle that comes back may be destroyed right after the forward.
        unsafe {
            let source = native::rd_kafka_queue_get_partition(client, topic.as_ptr(), place.partition);
            if source.is_null() {
                return false;
            }
            native::rd_kafka_queue_forward(source, self.0.queue.as_ptr());
            native::rd_kafka_queue_destroy(source);
        }
        true
    }
}

/// The consumer's own queue, which carries rebalances, errors and log lines, and no records.
#[derive(Debug)]
pub(in crate::kafka) struct ConsumerQueue(Handle);

impl ConsumerQueue {
    /// The client's consumer queue; `wake` is written to when something comes.
    pub(in crate::kafka) fn of(client: &SharedClient, wake: Arc<EventFd>) -> Option<Self> {
        // SAFETY: the client is valid; the handle that comes back is ours to destroy and refers to the client's queue.
        let queue = unsafe { native::rd_kafka_queue_get_consumer(client.client().native_ptr()) };
        Handle::adopt(queue, wake, client).map(Self)
    }

    /// Whether nothing waits in it.
    pub(in crate::kafka) fn is_empty(&self) -> bool {
        // SAFETY: the queue is valid.
        unsafe { native::rd_kafka_queue_length(self.0.queue.as_ptr()) == 0 }
    }
}

/// The reading end of a writer's queue, owned by its writer thread. Dropping it tells the consumer thread, which closes its client only when all
/// drain queues are gone.
#[derive(Debug)]
pub struct DrainQueue {
    // The order matters: the event goes before the queue, and the consumer thread is told last.
    current: Option<NativeEvent>,
    queue: Arc<SharedQueue>,
    _gone: NotifyOnDrop,
}

#[derive(Debug)]
struct NotifyOnDrop(Arc<EventFd>);

impl Drop for NotifyOnDrop {
    fn drop(&mut self) {
        self.0.notify();
    }
}

impl DrainQueue {
    /// The reading end; `gone` is written to when it is dropped.
    pub(in crate::kafka) fn new(queue: Arc<SharedQueue>, gone: Arc<EventFd>) -> Self {
        Self { current: None, queue, _gone: NotifyOnDrop(gone) }
    }

    /// Becomes readable when the queue goes from empty to non-empty, **only then**, and when a [`WriterWake`] says so. After a wake-up call
    /// [`clear_wake`](Self::clear_wake), then [`poll`](Self::poll) until it gives nothing, or come back unasked.
    pub fn wake_fd(&self) -> BorrowedFd<'_> {
        self.queue.0.wake.as_fd()
    }

    /// The descriptor on the reactor of the current tokio runtime; the same wake-ups as [`wake_fd`](Self::wake_fd).
    ///
    /// # Errors
    /// When the system gives no descriptor, or the reactor does not take it.
    pub fn readiness(&self) -> std::io::Result<AsyncFd<OwnedFd>> {
        let fd = self.wake_fd().try_clone_to_owned()?;
        // SAFETY: the descriptor is a duplicate that the `AsyncFd` owns: it stays open, and refers to the same eventfd, until that is dropped.
        Ok(unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?)
    }

    /// Makes the descriptor unreadable. Must come before the polls.
    pub fn clear_wake(&self) {
        self.queue.0.wake.clear();
    }

    /// Blocks the thread until the descriptor is readable or the time is over; for writers without a reactor.
    pub fn wait(&self, timeout: std::time::Duration) {
        self.queue.0.wake.wait(timeout);
    }

    /// Something by which others wake this writer.
    pub fn waker(&self) -> WriterWake {
        WriterWake(Arc::clone(&self.queue.0.wake))
    }

    /// How many things wait in it, stale ones of earlier assignments counted.
    pub fn waiting(&self) -> usize {
        // SAFETY: the queue is valid.
        unsafe { native::rd_kafka_queue_length(self.queue.0.queue.as_ptr()) }
    }

    /// The next item, without waiting. It lives until the next call.
    pub fn poll(&mut self) -> Option<Item<'_>> {
        self.current = None;
        // SAFETY: the queue is valid; the event that comes back is ours to destroy.
        let event = unsafe { native::rd_kafka_queue_poll(self.queue.0.queue.as_ptr(), 0) };
        let event = self.current.insert(NativeEvent::adopt(event)?);
        Some(event.item())
    }
}

/// Wakes the writer that owns a drain queue. Keeps the descriptor open, so that a reactor can hold it for as long as it is registered.
#[derive(Clone, Debug)]
pub struct WriterWake(Arc<EventFd>);

impl WriterWake {
    /// Makes the queue's descriptor readable.
    pub fn wake(&self) {
        self.0.notify();
    }
}

impl AsFd for WriterWake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for WriterWake {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}
