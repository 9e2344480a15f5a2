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

/// So much is left for leaving even when the writers took all the time there was.
const LAST: Duration = Duration::from_secs(1);

impl Turner {
    /// Closes by the deadline, or leaves the client behind; says which.
    pub(super) fn close(mut self, mut deadline: Instant) {
        starts::answer_revoke(&self.client, &starts::assigned(&self.client));
        let events = self.events.clone();
        let clean = self.wait_for_writers(&mut deadline) && self.leave_in_time(deadline);
        if !clean {
            tracing::error!("the Kafka client could not be closed in time and is left behind");
        }
        let _ = events.send(Event::Stopped { clean });
    }

    /// Some of librdkafka's calls have no deadline, dropping a client for one, so a thread of its own is given one.
    fn leave_in_time(self, deadline: Instant) -> bool {
        let deadline = deadline.max(Instant::now() + LAST);
        let (done, left) = mpsc::channel();
        let leaving = move || {
            let clean = self.leave(deadline) && self.drop_client();
            let _ = done.send(clean);
        };
        // A refused thread drops the closure, but never the client in it.
        let thread = std::thread::Builder::new().name("oncesink-close".into()).spawn(leaving);
        thread.is_ok()
            && left.recv_timeout(deadline.saturating_duration_since(Instant::now())).unwrap_or(false)
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

    /// Nothing is assigned any more, so that each is answered with nothing.
    fn answer_everything(&self) {
        loop {
            let polled = self.poll();
            while let Some(note) = self.client.context().take() {
                match note {
                    Note::Assigned(_) => starts::answer_assign_with_nothing(&self.client),
                    Note::Revoked(_) | Note::Lost(_) | Note::Panicked => {
                        starts::answer_revoke_with_nothing(&self.client);
                    }
                    Note::Error { code, reason } => self.send(Event::Error { code, reason }),
                }
            }
            if !polled && self.queue.is_empty() {
                return;
            }
        }
    }

    /// Drops the closed client. Any handle that is left would keep it alive.
    fn drop_client(self) -> bool {
        let Self { client, queue, queues, .. } = self;
        drop(queue);
        drop(queues);
        match Arc::try_unwrap(client) {
            Ok(client) => {
                drop(ManuallyDrop::into_inner(client));
                true
            }
            Err(_) => false,
        }
    }
}
