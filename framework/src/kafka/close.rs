//! The end of the consumer thread.
//!
//! Invariant: everything is unassigned, then the writers' queues are destroyed, then the client is closed and dropped, in this order: a queue that is
//! still forwarded to makes the close hang for ever. When the deadline passes first the client is left behind, whole, and never dropped: what protects
//! the data stands in the database.

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rdkafka::consumer::Consumer;

use super::consumer::Turner;
use super::context::Note;
use super::events::{Command, Event};
use super::starts;

/// A closed client is dropped in milliseconds; so much it gets even when the deadline is over.
const LAST: Duration = Duration::from_secs(1);

impl Turner {
    /// Closes by the deadline, or leaves the client behind; says which.
    pub(super) fn close(mut self, mut deadline: Instant) {
        starts::answer_revoke(&self.client, &starts::assigned(&self.client));
        let clean = self.wait_for_writers(&mut deadline) && self.leave(deadline);
        let events = self.events.clone();
        let clean = clean && self.drop_client(deadline);
        if !clean {
            tracing::error!("the Kafka client could not be closed in time and is left behind");
        }
        let _ = events.send(Event::Stopped { clean });
    }

    /// Waits until nobody but this thread holds a writer's queue, and destroys them.
    fn wait_for_writers(&mut self, deadline: &mut Instant) -> bool {
        loop {
            self.answer_everything();
            while let Ok(command) = self.commands.try_recv() {
                if let Command::Stop { deadline: shorter } = command {
                    *deadline = (*deadline).min(Instant::now() + shorter);
                }
            }
            if self.queues.iter().all(|queue| Arc::strong_count(queue) == 1) {
                self.queues.clear();
                return true;
            }
            if Instant::now() >= *deadline {
                return false;
            }
            self.sleep();
        }
    }

    /// Leaves the group and closes the consumer.
    fn leave(&self, deadline: Instant) -> bool {
        if self.client.client().fatal_error().is_some() {
            // The group has dropped us and librdkafka refuses to close; dropping is all that is left.
            return true;
        }
        if let Err(error) = self.client.close_queue() {
            tracing::warn!(%error, "the consumer refuses to close");
            return false;
        }
        while !self.client.closed() {
            if Instant::now() >= deadline {
                return false;
            }
            self.answer_everything();
            // The end of the close comes without a wake-up.
            self.wake.wait(Duration::from_millis(5));
            self.wake.clear();
        }
        true
    }

    /// Nothing is claimed any more: an assignment gets nothing, and a revoke all that it names.
    fn answer_everything(&self) {
        loop {
            let polled = self.poll();
            while let Some(note) = self.client.context().take() {
                match note {
                    Note::Assigned(_) => starts::answer_assign(&self.client),
                    Note::Revoked(places) | Note::Lost(places) => {
                        starts::answer_revoke(&self.client, &places)
                    }
                    Note::Error { code, reason } => self.send(Event::Error { code, reason }),
                    Note::Panicked => starts::answer_revoke(&self.client, &starts::assigned(&self.client)),
                }
            }
            if !polled && self.queue.is_empty() {
                return;
            }
        }
    }

    /// Drops the closed client. Any handle that is left would keep it alive. A drop has no deadline, so a thread of its own is given one.
    fn drop_client(self, deadline: Instant) -> bool {
        let Self { client, queue, queues, .. } = self;
        drop(queue);
        drop(queues);
        let Ok(client) = Arc::try_unwrap(client) else { return false };
        let (done, dropped) = mpsc::channel();
        let dropping = move || {
            drop(ManuallyDrop::into_inner(client));
            let _ = done.send(());
        };
        // A refused thread drops the closure, but never the client in it.
        if std::thread::Builder::new().name("oncesink-close".into()).spawn(dropping).is_err() {
            return false;
        }
        dropped.recv_timeout(deadline.saturating_duration_since(Instant::now()).max(LAST)).is_ok()
    }
}
