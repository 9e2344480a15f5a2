//! What to do to which message, and what has been seen. Shared by all sessions of a proxy.

use std::time::Duration;

/// A place in the conversation between client and server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Point {
    /// A COMMIT.
    Commit,
    /// A COMMIT of a transaction in which a statement with this text ran (`"COPY"`, a table's name): so that the short
    /// transaction of a claim can be told from that of a writer.
    CommitOf(String),
    /// The same for a ROLLBACK.
    RollbackOf(String),
    /// A statement that contains this text, simple or prepared.
    Statement(String),
    /// The COPY data message with which a transaction exceeds this many bytes of rows.
    CopyBytes(u64),
}

/// What happens at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Both sockets are closed; the message never reaches the server.
    CutBefore,
    /// The server has answered; the answer is swallowed and both sockets are closed.
    CutAfter,
    /// Nothing passes from this message on, in either direction; both sockets stay open, as when a cable is pulled.
    /// The server keeps the session and its locks until it ends them itself or the proxy's sessions are cut.
    StallBefore,
    /// The server has answered; the answer is swallowed, and nothing passes any more; both sockets stay open.
    StallAfter,
    /// The message waits for this long, and then goes to the server even if the client is gone.
    Delay(Duration),
    /// The message waits for a release, and then goes to the server even if the client is gone.
    Hold,
}

/// On which side of the server's work a COMMIT is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The server never hears of it.
    Before,
    /// The server has done it, the client never hears of it.
    AfterApplied,
}

/// Counts since the proxy's start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// Sessions that reached the server.
    pub sessions: u64,
    /// Messages after which a client waits for the server: the trips of its conversations.
    pub trips: u64,
    /// COMMITs that clients sent.
    pub commits: u64,
    /// COMMITs that were passed on to the server.
    pub commits_forwarded: u64,
    /// COMMITs that the server answered with `COMMIT`, whether the client heard it or not.
    pub commits_applied: u64,
    /// Sessions cut by a fault.
    pub cuts: u64,
    /// Sessions stalled by a fault.
    pub stalls: u64,
    /// Messages that are held or delayed now.
    pub held: u64,
}

/// A fault that is armed.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) point: Point,
    pub(super) action: Action,
    pub(super) times: u32,
}

/// One session's transaction, as the points look at it.
#[derive(Debug, Default)]
pub(super) struct Transaction {
    pub(super) statements: Vec<String>,
    pub(super) copied: u64,
}

/// The message that is about to be forwarded.
#[derive(Debug)]
pub(super) enum Passing<'a> {
    Statement { sql: &'a str, commits: bool },
    CopyData,
}

impl Point {
    /// Whether `passing`, which `transaction` already counts, is this point.
    pub(super) fn is(&self, passing: &Passing<'_>, transaction: &Transaction) -> bool {
        match (self, passing) {
            (Self::Commit, Passing::Statement { commits, .. }) => *commits,
            (Self::CommitOf(text), Passing::Statement { commits, .. }) => {
                *commits && transaction.statements.iter().any(|sql| sql.contains(text.as_str()))
            }
            (Self::RollbackOf(text), Passing::Statement { sql, .. }) => {
                sql.trim_start().starts_with("ROLLBACK")
                    && transaction.statements.iter().any(|sql| sql.contains(text.as_str()))
            }
            (Self::Statement(text), Passing::Statement { sql, .. }) => sql.contains(text.as_str()),
            (Self::CopyBytes(bytes), Passing::CopyData) => transaction.copied > *bytes,
            _ => false,
        }
    }
}
