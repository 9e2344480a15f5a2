//! The sessions of a proxy: two directions each, of which the client's is read message by message.
//!
//! Invariant: a message is forwarded whole or not at all. A client that goes away is passed on as the end of its
//! stream, so that the server still does what was sent before, as it would without a proxy.

use std::future::pending;
use std::io;
use std::net::Ipv4Addr;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

use super::fault::{Action, Passing, Transaction};
use super::wire::{self, Frame, Opening, Prepared, Request};
use super::{Mode, Shared};

/// Accepts sessions for ever.
pub(super) async fn listen(listener: TcpListener, shared: Arc<Shared>) {
    let address = listener.local_addr().expect("the proxy's address");
    let mut mode = shared.mode.subscribe();
    let mut open = Some(listener);
    loop {
        let refuses = *mode.borrow_and_update() == Mode::Refuse;
        if refuses {
            open = None;
            if mode.changed().await.is_err() {
                return;
            }
            continue;
        }
        if open.is_none() {
            open = Some(
                TcpListener::bind((Ipv4Addr::LOCALHOST, address.port()))
                    .await
                    .expect("binding the proxy's port again"),
            );
        }
        let listener = open.as_ref().expect("bound above");
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((client, _)) = accepted {
                    tokio::spawn(session(client, Arc::clone(&shared)));
                }
            }
            changed = mode.changed() => if changed.is_err() { return },
        }
    }
}

async fn session(client: TcpStream, shared: Arc<Shared>) {
    let mut cuts = shared.cuts.subscribe();
    let relay = async {
        let _ = relay(client, &shared).await;
    };
    tokio::select! {
        () = relay => {}
        _ = cuts.changed() => {}
    }
}

/// What the two directions of a session tell each other.
#[derive(Debug, Default)]
struct Answers {
    /// How many ReadyForQuery the server owes or has sent.
    asked: u64,
    ready: u64,
    swallow: Option<Swallow>,
}

/// The answer that ends with the ReadyForQuery of this number, and all after it, are not passed on.
#[derive(Debug, Clone, Copy)]
struct Swallow {
    number: u64,
    then_stall: bool,
}

async fn relay(mut client: TcpStream, shared: &Shared) -> io::Result<()> {
    client.set_nodelay(true)?;
    let mut buffer = BytesMut::new();
    let opening = loop {
        match wire::opening(&mut buffer) {
            Some(Opening::Encryption) => client.write_all(b"N").await?,
            Some(opening) => break opening,
            None if client.read_buf(&mut buffer).await? == 0 => return Ok(()),
            None => {}
        }
    };
    pass(shared).await;
    let mut server = TcpStream::connect(&shared.server).await?;
    server.set_nodelay(true)?;
    let packet = match opening {
        Opening::Startup(packet) => packet,
        Opening::Cancel(packet) => {
            server.write_all(&packet).await?;
            server.read_buf(&mut buffer).await?;
            return Ok(());
        }
        Opening::Encryption => unreachable!("answered above"),
    };
    server.write_all(&packet).await?;
    shared.seen().sessions += 1;

    let answers = Mutex::new(Answers { asked: 1, ..Answers::default() });
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let mut requests = Requests {
        shared,
        answers: &answers,
        prepared: Prepared::default(),
        transaction: Transaction::default(),
        to_server,
    };
    tokio::select! {
        end = requests.run(from_client, buffer) => end,
        end = answer(shared, &answers, from_server, to_client) => end,
    }
}

/// Waits while the proxy is a black hole.
async fn pass(shared: &Shared) {
    let mut mode = shared.mode.subscribe();
    let _ = mode.wait_for(|mode| *mode != Mode::BlackHole).await;
}

/// The direction from the client to the server.
struct Requests<'a> {
    shared: &'a Shared,
    answers: &'a Mutex<Answers>,
    prepared: Prepared,
    transaction: Transaction,
    to_server: OwnedWriteHalf,
}

impl Requests<'_> {
    /// Ends when a fault closes the session; the end of the client's stream is passed on, and the server ends the rest.
    async fn run(&mut self, mut from_client: OwnedReadHalf, mut buffer: BytesMut) -> io::Result<()> {
        loop {
            while let Some(frame) = Frame::take(&mut buffer) {
                pass(self.shared).await;
                if self.is_over() {
                    pending::<()>().await;
                }
                if self.handle(&frame).await?.is_break() {
                    return Ok(());
                }
            }
            if !matches!(from_client.read_buf(&mut buffer).await, Ok(1..)) {
                pass(self.shared).await;
                if self.is_over() {
                    pending::<()>().await;
                }
                self.to_server.shutdown().await?;
                pending::<()>().await;
            }
        }
    }

    async fn handle(&mut self, frame: &Frame) -> io::Result<ControlFlow<()>> {
        let request = self.prepared.read(frame);
        let commits = matches!(&request, Request::Statement(sql) if wire::commits(sql));
        let action = match &request {
            Request::Statement(sql) => {
                if wire::begins(sql) {
                    self.transaction = Transaction::default();
                }
                self.transaction.statements.push(sql.clone());
                self.shared.seen().commits += u64::from(commits);
                self.shared.action(&Passing::Statement { sql, commits }, &self.transaction)
            }
            Request::CopyData(bytes) => {
                self.transaction.copied += bytes;
                self.shared.action(&Passing::CopyData, &self.transaction)
            }
            Request::Other => None,
        };
        if let Some(action) = action
            && self.act(action).await.is_break()
        {
            return Ok(ControlFlow::Break(()));
        }
        self.answers().asked += u64::from(wire::asks_for_ready(frame));
        self.shared.seen().trips += u64::from(wire::waits(frame));
        self.to_server.write_all(frame.bytes()).await?;
        if commits {
            self.shared.seen().commits_forwarded += 1;
            self.transaction = Transaction::default();
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Breaks if the session is to be closed without forwarding the message.
    async fn act(&mut self, action: Action) -> ControlFlow<()> {
        match action {
            Action::CutBefore => {
                self.shared.seen().cuts += 1;
                return ControlFlow::Break(());
            }
            Action::StallBefore => {
                self.answers().swallow = Some(Swallow { number: 0, then_stall: true });
                self.shared.seen().stalls += 1;
                pending::<()>().await;
            }
            Action::CutAfter | Action::StallAfter => {
                let mut answers = self.answers();
                let number = answers.asked + 1;
                answers.swallow = Some(Swallow { number, then_stall: action == Action::StallAfter });
            }
            Action::Delay(time) => {
                let _held = Held::new(self.shared);
                tokio::time::sleep(time).await;
            }
            Action::Hold => {
                let mut releases = self.shared.releases.subscribe();
                let _held = Held::new(self.shared);
                let _ = releases.changed().await;
            }
        }
        ControlFlow::Continue(())
    }

    /// Whether a fault has taken all that the server shall ever hear of this session.
    fn is_over(&self) -> bool {
        let answers = self.answers();
        answers.swallow.is_some_and(|swallow| answers.asked >= swallow.number)
    }

    fn answers(&self) -> std::sync::MutexGuard<'_, Answers> {
        self.answers.lock().expect("the answers' lock")
    }
}

/// Counts a message as held for as long as it lives, also when its session is cut meanwhile.
struct Held<'a>(&'a Shared);

impl<'a> Held<'a> {
    fn new(shared: &'a Shared) -> Self {
        shared.seen().held += 1;
        Self(shared)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.seen().held -= 1;
    }
}

/// The direction from the server to the client. Ends when the server does, or after an answer that was swallowed.
async fn answer(
    shared: &Shared,
    answers: &Mutex<Answers>,
    mut from_server: OwnedReadHalf,
    mut to_client: OwnedWriteHalf,
) -> io::Result<()> {
    let mut buffer = BytesMut::new();
    loop {
        let mut passed = BytesMut::new();
        let mut end = None;
        while let Some(frame) = Frame::take(&mut buffer) {
            if frame.command_tag().is_some_and(|tag| tag == "COMMIT") {
                shared.seen().commits_applied += 1;
            }
            let mut answers = answers.lock().expect("the answers' lock");
            let swallow = answers.swallow.filter(|swallow| answers.ready + 1 >= swallow.number);
            answers.ready += u64::from(frame.kind() == b'Z');
            if swallow.is_none() {
                passed.extend_from_slice(frame.bytes());
            }
            end = end.or(swallow.filter(|swallow| answers.ready == swallow.number));
        }
        pass(shared).await;
        // A client that is gone does not keep the server from finishing what it was told.
        let _ = to_client.write_all(&passed).await;
        match end {
            Some(Swallow { then_stall: true, .. }) => {
                shared.seen().stalls += 1;
                pending::<()>().await;
            }
            Some(_) => {
                shared.seen().cuts += 1;
                return Ok(());
            }
            None if matches!(from_server.read_buf(&mut buffer).await, Ok(1..)) => {}
            None => {
                let stalled =
                    answers.lock().expect("the answers' lock").swallow.is_some_and(|s| s.then_stall);
                if stalled {
                    // The client does not learn that the server has ended the session.
                    pending::<()>().await;
                }
                return Ok(());
            }
        }
    }
}
