//! `[http]`: where metrics and health are served.

use std::net::SocketAddr;

use super::section::{self, Section};

/// Only this machine sees it unless the file says otherwise.
pub(crate) const LISTEN: &str = "127.0.0.1:9719";

/// `[http]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpSection {
    /// Address and port; port 0 picks a free one.
    pub listen: SocketAddr,
}

pub(crate) fn read(mut section: Section<'_>) -> Option<HttpSection> {
    let listen = section.optional("listen", |node| address(section::text(node)?));
    section.finish();
    Some(HttpSection { listen: listen.or_else(|| LISTEN.parse().ok())? })
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let text =
        text.strip_prefix("localhost:").map_or_else(|| text.to_owned(), |port| format!("127.0.0.1:{port}"));
    text.parse().map_err(|_| format!("{text:?} is no address with a port; write for instance {LISTEN:?}"))
}
