//! Postgres's framing, version 3 of its protocol, as far as a proxy needs it. Pure: bytes in, frames out.
//!
//! Invariant: a frame holds exactly the bytes that came, so that forwarding all frames forwards the stream.

use std::collections::HashMap;

use bytes::{Buf, Bytes, BytesMut};

const SSL_REQUEST: u32 = 80_877_103;
const GSS_REQUEST: u32 = 80_877_104;
const CANCEL_REQUEST: u32 = 80_877_102;

/// The first packet of a client, which has no type byte.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// Asks for encryption; the proxy declines with the byte `N`.
    Encryption,
    /// Asks to cancel another session's statement.
    Cancel(Bytes),
    /// Begins a session.
    Startup(Bytes),
}

/// Takes the opening packet off `buffer`, or none if it is not complete.
pub(super) fn opening(buffer: &mut BytesMut) -> Option<Opening> {
    let head = buffer.get(..8)?;
    let length = be32(&head[..4]) as usize;
    let code = be32(&head[4..]);
    if buffer.len() < length {
        return None;
    }
    let packet = buffer.split_to(length).freeze();
    Some(match code {
        SSL_REQUEST | GSS_REQUEST => Opening::Encryption,
        CANCEL_REQUEST => Opening::Cancel(packet),
        _ => Opening::Startup(packet),
    })
}

/// A message with its type, in either direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Frame(Bytes);

impl Frame {
    /// Takes a message off `buffer`, or none if it is not complete.
    pub(super) fn take(buffer: &mut BytesMut) -> Option<Self> {
        let head = buffer.get(..5)?;
        let length = 1 + be32(&head[1..]) as usize;
        (buffer.len() >= length).then(|| Self(buffer.split_to(length).freeze()))
    }

    /// The type byte.
    pub(super) fn kind(&self) -> u8 {
        self.0[0]
    }

    /// The bytes as they came.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn body(&self) -> Bytes {
        self.0.slice(5..)
    }

    /// The text of a server's CommandComplete, such as `COMMIT`.
    pub(super) fn command_tag(&self) -> Option<String> {
        (self.kind() == b'C').then(|| text(&mut self.body()))
    }
}

/// What a frame of a client means to the proxy.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// The server runs this text now.
    Statement(String),
    /// Rows of a COPY, in bytes.
    CopyData(u64),
    /// Anything else.
    Other,
}

/// What the client has prepared, so that an Execute can be read as the text it runs.
#[derive(Debug, Default)]
pub(super) struct Prepared {
    statements: HashMap<String, String>,
    portals: HashMap<String, String>,
}

impl Prepared {
    /// Reads a client's frame and remembers what later ones refer to.
    pub(super) fn read(&mut self, frame: &Frame) -> Request {
        let mut body = frame.body();
        match frame.kind() {
            b'Q' => Request::Statement(text(&mut body)),
            b'P' => {
                let name = text(&mut body);
                self.statements.insert(name, text(&mut body));
                Request::Other
            }
            b'B' => {
                let portal = text(&mut body);
                let statement = self.statements.get(&text(&mut body)).cloned().unwrap_or_default();
                self.portals.insert(portal, statement);
                Request::Other
            }
            b'E' => Request::Statement(self.portals.get(&text(&mut body)).cloned().unwrap_or_default()),
            b'd' => Request::CopyData(body.len() as u64),
            _ => Request::Other,
        }
    }
}

/// Whether the server answers this frame of a client with a ReadyForQuery.
pub(super) fn asks_for_ready(frame: &Frame) -> bool {
    matches!(frame.kind(), b'Q' | b'S' | b'F')
}

/// Whether the client waits for an answer behind this frame: the end of a request, or of the rows of a COPY.
pub(super) fn waits(frame: &Frame) -> bool {
    asks_for_ready(frame) || frame.kind() == b'c'
}

/// The first words of the statements in a text, in upper case. Good enough for statements without semicolons inside
/// of strings at their end, which is how COMMIT comes.
fn verbs(sql: &str) -> impl DoubleEndedIterator<Item = String> {
    sql.split(';').filter_map(|statement| {
        let mut rest = statement.trim_start();
        while let Some((_, behind)) = rest.strip_prefix("/*").and_then(|comment| comment.split_once("*/")) {
            rest = behind.trim_start();
        }
        rest.split_whitespace().next().map(str::to_ascii_uppercase)
    })
}

/// Whether the last statement of a text is a COMMIT.
pub(super) fn commits(sql: &str) -> bool {
    verbs(sql).next_back().is_some_and(|verb| verb == "COMMIT" || verb == "END")
}

/// Whether a text begins a transaction.
pub(super) fn begins(sql: &str) -> bool {
    verbs(sql).next().is_some_and(|verb| verb == "BEGIN" || verb == "START")
}

fn text(body: &mut Bytes) -> String {
    let end = body.iter().position(|byte| *byte == 0).unwrap_or(body.len());
    let text = String::from_utf8_lossy(&body[..end]).into_owned();
    body.advance((end + 1).min(body.len()));
    text
}

fn be32(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).fold(0, |number, byte| number << 8 | u32::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, body: &[u8]) -> Frame {
        let mut bytes = BytesMut::from(&[kind][..]);
        bytes.extend_from_slice(&(4 + u32::try_from(body.len()).unwrap()).to_be_bytes());
        bytes.extend_from_slice(body);
        Frame::take(&mut bytes).unwrap()
    }

    #[test]
    fn a_commit_is_known_in_any_dress() {
        for sql in
            ["COMMIT", "commit;", " Commit ; ", "RELEASE SAVEPOINT x; COMMIT", "END", "/* why */ COMMIT"]
        {
            assert!(commits(sql), "{sql}");
        }
        for sql in ["", "ROLLBACK", "COMMIT; SELECT 1", "SELECT 'COMMIT'", "INSERT INTO commit VALUES (1)"] {
            assert!(!commits(sql), "{sql}");
        }
        assert!(
            begins("begin; SET LOCAL x = 1") && begins("START TRANSACTION") && !begins("SELECT 1; BEGIN")
        );
    }

    #[test]
    fn an_execute_is_read_as_the_text_it_runs() {
        let mut prepared = Prepared::default();
        assert_eq!(prepared.read(&frame(b'P', b"s1\0COMMIT\0\0\0")), Request::Other);
        assert_eq!(prepared.read(&frame(b'B', b"p1\0s1\0\0\0\0\0\0\0")), Request::Other);
        assert_eq!(prepared.read(&frame(b'E', b"p1\0\0\0\0\0")), Request::Statement("COMMIT".into()));
    }

    #[test]
    fn a_frame_is_taken_only_when_it_is_whole() {
        let whole = [b'Q', 0, 0, 0, 6, b'X', 0, b'S'];
        for cut in 0..7 {
            let mut part = BytesMut::from(&whole[..cut]);
            assert_eq!(Frame::take(&mut part), None);
            assert_eq!(part.len(), cut);
        }
        let mut all = BytesMut::from(&whole[..]);
        assert_eq!(Frame::take(&mut all).unwrap().bytes(), &whole[..7]);
        assert_eq!(&all[..], b"S");
    }
}
