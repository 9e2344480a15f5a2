//! A handshake of our own, after a driver's failed, to see what the server shows and whether it takes what we show.
//!
//! Invariant: blocking, and never longer than some seconds. Nothing is sent once the handshake is done: a refusal that comes then is lost when it
//! crosses with what the client sends.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use openssl::error::ErrorStack;
use openssl::ssl::{self, HandshakeError, SslConnector, SslFiletype, SslMethod, SslVerifyMode};
use openssl::x509::X509VerifyResult;

use super::{Files, Flaw};

const PATIENCE: Duration = Duration::from_secs(2);
/// How long a server that refuses a certificate may take to say so.
const REFUSAL: Duration = Duration::from_millis(700);

/// What is demanded of the server's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verify {
    Nothing,
    Authority,
    AuthorityAndName,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Met {
    /// TLS was agreed upon, and nothing refused.
    Fine,
    /// The server's certificate is not good.
    Unverified(Flaw),
    /// The server refuses the client's certificate, or that there is none.
    Refused,
    /// It answered, but not by TLS, or by none that we speak.
    Disagreed,
    /// It could not be reached, or fell silent.
    Silent,
}

/// A plain connection with deadlines.
pub(crate) fn reach(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => {
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Sends a question and takes the first of the answer, through TLS to whoever it may be; none when there is no TLS or no answer. Must not: be used for
/// anything that is secret, since the server's certificate is not looked at.
pub(crate) fn ask_unverified(stream: TcpStream, host: &str, question: &[u8]) -> Option<Vec<u8>> {
    let mut stream = shake(stream, host, &Files::default(), Verify::Nothing).ok()?.ok()?;
    ask(&mut stream, question)
}

/// The same in plain.
pub(crate) fn ask(stream: &mut (impl Read + Write), question: &[u8]) -> Option<Vec<u8>> {
    stream.write_all(question).ok()?;
    let mut answer = vec![0; 512];
    let length = stream.read(&mut answer).ok()?;
    answer.truncate(length);
    (length > 0).then_some(answer)
}

/// Shakes hands over a connection on which the server expects that next.
pub(crate) fn meet(stream: TcpStream, host: &str, files: &Files, verify: Verify) -> Met {
    match shake(stream, host, files, verify) {
        Ok(Ok(mut stream)) => {
            let _ = stream.get_ref().set_read_timeout(Some(REFUSAL));
            match stream.ssl_read(&mut [0]) {
                Err(error) if refuses(error.ssl_error()) => Met::Refused,
                _ => Met::Fine,
            }
        }
        Ok(Err(HandshakeError::Failure(failed))) => {
            let verdict = failed.ssl().verify_result();
            if verdict != X509VerifyResult::OK && verify != Verify::Nothing {
                Met::Unverified(flaw(verdict))
            } else if refuses(failed.error().ssl_error()) {
                Met::Refused
            } else if disagrees(failed.error().ssl_error()) {
                Met::Disagreed
            } else {
                Met::Silent
            }
        }
        Ok(Err(_)) | Err(_) => Met::Silent,
    }
}

fn shake(
    stream: TcpStream,
    host: &str,
    files: &Files,
    verify: Verify,
) -> Result<Result<ssl::SslStream<TcpStream>, HandshakeError<TcpStream>>, ErrorStack> {
    let mut builder = SslConnector::builder(SslMethod::tls_client())?;
    if verify == Verify::Nothing {
        builder.set_verify(SslVerifyMode::NONE);
    }
    if let Some(ca) = files.ca.as_ref().filter(|ca| ca.is_file()) {
        builder.set_ca_file(ca)?;
    }
    if let (Some(certificate), Some(key)) = (&files.certificate, &files.key) {
        builder.set_certificate_chain_file(certificate)?;
        builder.set_private_key_file(key, SslFiletype::PEM)?;
    }
    let mut connection = builder.build().configure()?;
    connection.set_verify_hostname(verify == Verify::AuthorityAndName);
    Ok(connection.connect(host, stream))
}

/// Whether something came that is no part of a handshake of ours; an end of the stream is nothing that came.
fn disagrees(errors: Option<&ErrorStack>) -> bool {
    let reasons = errors.into_iter().flat_map(ErrorStack::errors).filter_map(openssl::error::Error::reason);
    reasons.into_iter().any(|reason| !reason.contains("eof"))
}

/// Whether these are the words of a server that does not like the client's certificate.
fn refuses(errors: Option<&ErrorStack>) -> bool {
    let reasons = errors.into_iter().flat_map(ErrorStack::errors).filter_map(openssl::error::Error::reason);
    reasons.into_iter().any(refuses_a_certificate)
}

/// The same in a driver's words.
pub(crate) fn refuses_a_certificate(reason: &str) -> bool {
    reason.contains("alert")
        && ["certificate", "unknown ca", "access denied"].iter().any(|word| reason.contains(word))
}

fn flaw(verdict: X509VerifyResult) -> Flaw {
    // Numbers of x509_vfy.h.
    match verdict.as_raw() {
        62..=64 => Flaw::WrongName,
        10 => Flaw::Expired,
        9 => Flaw::NotYetValid,
        _ => Flaw::Stranger,
    }
}
