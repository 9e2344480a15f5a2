//! Free loopback ports for servers that must be told their port before they start.
//!
//! They lie below the range from which the kernel takes ports for outgoing connections, so that a stopped server finds
//! its port still free when it is started again.

use std::net::{Ipv4Addr, TcpListener};

const FIRST: u16 = 10_100;
const COUNT: u16 = 20_000;

/// A port that nobody listens on now.
pub(crate) fn free() -> u16 {
    for _ in 0..1_000 {
        let random = uuid::Uuid::new_v4().as_u128() % u128::from(COUNT);
        let port = FIRST + u16::try_from(random).expect("below COUNT");
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
    panic!("no free port between {FIRST} and {}", FIRST + COUNT);
}
