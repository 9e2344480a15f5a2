//! A descriptor that becomes readable when something wants attention: librdkafka writes to it, and so may others.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// A non-blocking eventfd.
#[derive(Debug)]
pub(in crate::kafka) struct EventFd(File);

/// What is written for one wake-up; the value adds up and means nothing.
pub(super) const ONE: [u8; 8] = 1_u64.to_ne_bytes();

impl EventFd {
    pub(in crate::kafka) fn new() -> io::Result<Self> {
        // SAFETY: takes numbers and gives a new descriptor or -1.
        let fd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new, open and owned by nobody else.
        Ok(Self(File::from(unsafe { OwnedFd::from_raw_fd(fd) })))
    }

    /// Makes it readable. A full counter is readable already, so a failed write is none.
    pub(in crate::kafka) fn notify(&self) {
        let _ = (&self.0).write(&ONE);
    }

    /// Makes it unreadable until the next write. Must come before looking at whatever it tells of.
    pub(in crate::kafka) fn clear(&self) {
        let mut count = [0; 8];
        let _ = (&self.0).read(&mut count);
    }

    /// Waits until it is readable or the time is over.
    pub(in crate::kafka) fn wait(&self, timeout: Duration) {
        let mut poll = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // Rounded up: a wait for less than a millisecond must not spin.
        let milliseconds = i32::try_from(timeout.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
        // SAFETY: one valid pollfd for the time of the call. An interruption is a wake-up like any other.
        unsafe { libc::poll(&raw mut poll, 1, milliseconds) };
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
