//! Why brokers cannot be used: from librdkafka's words about a connection to the cause and the key to mend.
//!
//! librdkafka tries for ever and says so in log lines; a question then only times out. Its last words are kept here, and when a question has failed they
//! are looked into: what has answered and refuses is told from what does not answer. Where the words leave it open, the broker is met once more.
//!
//! Must not: put the value of a property into words, or take a doubtful word for a refusal; a broker that is starting closes connections too.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;

use super::greeting;
use crate::tls::{self, Files, Keys, Met, Verify};

/// The names of the properties, as they stand in the section of the file.
const KEYS: Keys = Keys {
    address: "brokers",
    ca: "ssl.ca.location",
    certificate: "ssl.certificate.location",
    key: "ssl.key.location",
};

/// Words are repeated no more often than every 30 s; older ones are of another time.
const FRESH: Duration = Duration::from_secs(60);
const RECENT: Duration = Duration::from_secs(1);
/// A broker that refuses one connection may be one of several: so long the others have to answer.
const OTHERS: Duration = Duration::from_millis(300);

/// The last words about a connection.
#[derive(Debug, Default)]
pub(super) struct LastWords(Mutex<Option<(Instant, String)>>);

impl LastWords {
    /// Keeps these, unless they say less than those before: what follows a refusal is often a bare "disconnected".
    pub(super) fn note(&self, words: &str) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let telling = |words: &str| Hint::in_words(words).map_or(0, Hint::weight);
        let keep =
            last.as_ref().is_some_and(|(at, old)| at.elapsed() < FRESH && telling(old) > telling(words));
        if !keep {
            *last = Some((Instant::now(), words.to_owned()));
        }
    }

    /// They were overtaken by an answer.
    pub(super) fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// What was said last, if it is not old.
    pub(super) fn get(&self) -> Option<String> {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().filter(|(at, _)| at.elapsed() < FRESH).map(|(_, words)| words.clone())
    }

    /// Whether a question that was asked at this time is not worth waiting for.
    pub(super) fn hopeless(&self, asked: Instant) -> bool {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().is_some_and(|(at, words)| {
            // Said once and then not again for 30 s: what was said just before counts.
            *at + RECENT >= asked && at.elapsed() >= OTHERS && Hint::in_words(words).is_some()
        })
    }
}

/// What librdkafka's words point at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hint {
    ServerCertificate,
    ClientCertificate,
    Password,
    Mechanism,
    /// The listener has no SASL.
    NoSasl,
    /// The connection was closed: as a listener does that speaks otherwise, but also a broker that is going down.
    Closed,
}

impl Hint {
    fn in_words(words: &str) -> Option<Self> {
        let says = |part: &str| words.contains(part);
        Some(if says("certificate verify failed") || says("Failed to verify broker certificate") {
            Self::ServerCertificate
        } else if tls::refuses_a_certificate(words) || says("client SSL authentication might be required") {
            Self::ClientCertificate
        } else if says("Unsupported SASL mechanism") {
            Self::Mechanism
        } else if says("current SASL state") {
            Self::NoSasl
        } else if says("SASL authentication error") || says("Authentication failed") {
            Self::Password
        } else if says("Disconnected") {
            Self::Closed
        } else {
            return None;
        })
    }

    /// What is certain hides what is not.
    fn weight(self) -> u8 {
        if self == Self::Closed { 1 } else { 2 }
    }
}

/// Words without what changes from one time to the next, and without the name of a thread.
pub(super) fn plain(words: &str) -> &str {
    let words = words.split(" (after ").next().unwrap_or_default();
    match words.split_once("]: ") {
        Some((thread, rest)) if thread.starts_with("[thrd:") => rest,
        _ => words,
    }
}

/// What refuses, with its address, the cause and the key to mend; none when nobody is known to refuse. Blocks for some seconds at most.
pub(super) fn refusal(words: Option<&str>, config: &ClientConfig) -> Option<String> {
    let words = words.map(plain).unwrap_or_default();
    let told = |host: &str, port: u16, what: String| format!("{host}:{port}: {what}");
    let (Some(hint), Some((host, port))) = (Hint::in_words(words), place(words)) else {
        // Not a word is said when a listener that demands a login closes the connection of one who has none.
        let brokers = config.get("bootstrap.servers").unwrap_or_default().split(',');
        let mut brokers = brokers.filter_map(|broker| address(broker.trim()));
        return brokers.find_map(|(host, port)| Some(told(host, port, listener(host, port, config)?)));
    };
    let what = match hint {
        Hint::ServerCertificate | Hint::ClientCertificate => certificates(hint, host, port, config)?,
        Hint::Password => "the broker refuses the user of sasl.username, or the password of sasl.password".to_owned(),
        Hint::Mechanism => {
            let offered = words.rsplit("supported mechanisms: ").next().unwrap_or_default();
            format!("the broker takes other mechanisms: {offered}. Write one of them into sasl.mechanism")
        }
        Hint::NoSasl => {
            "this listener takes no user and password. Write security.protocol without SASL, or name another listener in brokers".to_owned()
        }
        Hint::Closed => listener(host, port, config)?,
    };
    Some(told(host, port, what))
}

/// What a listener speaks, if it is not what the configuration says; none when it is, or nobody can be met.
fn listener(host: &str, port: u16, config: &ClientConfig) -> Option<String> {
    let protocol = config.get("security.protocol").unwrap_or("plaintext").to_ascii_lowercase();
    let (with_tls, with_sasl) = (protocol.ends_with("ssl"), protocol.starts_with("sasl"));
    if with_tls && greeting::in_plain(host, port) {
        let right = if with_sasl { "SASL_PLAINTEXT" } else { "PLAINTEXT" };
        return Some(format!(
            "this listener speaks no TLS. Name another listener in brokers, or write security.protocol = {right:?}"
        ));
    }
    if !with_tls && greeting::through_tls(host, port) {
        let right = if with_sasl { "SASL_SSL" } else { "SSL" };
        return Some(format!(
            "this listener demands TLS. Write security.protocol = {right:?}, or name another listener in brokers"
        ));
    }
    let offered = if with_sasl { None } else { greeting::mechanisms(host, port, with_tls) }?;
    let right = if with_tls { "SASL_SSL" } else { "SASL_PLAINTEXT" };
    Some(format!(
        "this listener demands a user and a password. Write security.protocol = {right:?}, sasl.mechanism ({offered}), sasl.username and sasl.password"
    ))
}

/// A flaw in the files of `[kafka]`, before a client is made of them.
pub(super) fn flaw_of_files(config: &ClientConfig) -> Option<String> {
    let protocol = config.get("security.protocol").unwrap_or_default().to_ascii_lowercase();
    protocol.contains("ssl").then(|| files(config).flaw(&KEYS)).flatten()
}

fn files(config: &ClientConfig) -> Files {
    let path = |key| config.get(key).filter(|path| !path.is_empty()).map(PathBuf::from);
    let ca = path(KEYS.ca).filter(|ca| ca.as_os_str() != "probe");
    match (path(KEYS.certificate), path(KEYS.key)) {
        // One of the two may come in another form.
        (Some(certificate), Some(key)) => Files { ca, certificate: Some(certificate), key: Some(key) },
        _ => Files { ca, ..Files::default() },
    }
}

fn certificates(hint: Hint, host: &str, port: u16, config: &ClientConfig) -> Option<String> {
    let files = files(config);
    let by_name = config.get("ssl.endpoint.identification.algorithm") != Some("none");
    let verify = if by_name { Verify::AuthorityAndName } else { Verify::Authority };
    let met = match tls::reach(host, port) {
        Ok(stream) => tls::meet(stream, host, &files, verify),
        Err(_) => Met::Silent,
    };
    tls::words(&met, host, &files, &KEYS).or_else(|| match hint {
        Hint::ServerCertificate => Some(format!("its certificate cannot be verified. Look at {}", KEYS.ca)),
        _ => tls::words(&Met::Refused, host, &files, &KEYS),
    })
}

/// Host and port in front of words such as `sasl_ssl://broker:9093/bootstrap: ...`; there is no scheme where there is neither TLS nor SASL.
fn place(words: &str) -> Option<(&str, u16)> {
    let rest = words.split_once("://").map_or(words, |(_, rest)| rest).split('/').next()?;
    // A coordinator's name stands before its address: "GroupCoordinator: broker:9093".
    address(rest.rsplit(' ').next()?)
}

fn address(text: &str) -> Option<(&str, u16)> {
    let (host, port) = text.rsplit_once(':').unwrap_or((text, "9092"));
    Some((host.trim_start_matches('[').trim_end_matches(']'), port.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNTRUSTED: &str = "[thrd:sasl_ssl://b:9093/bootstrap]: sasl_ssl://b:9093/bootstrap: SSL handshake failed: error:0A000086:SSL routines::certificate verify failed: ... (after 3ms in state SSL_HANDSHAKE)";
    const CLOSED: &str = "sasl_ssl://b:9093/bootstrap: Disconnected: SSL connection closed by peer (after 0ms in state SSL_HANDSHAKE)";

    #[test]
    fn words_are_read() {
        let cases = [
            (UNTRUSTED, Some(Hint::ServerCertificate)),
            (
                "ssl://b:1/1: Receive failed: error:0A000412:SSL routines::sslv3 alert bad certificate: SSL alert number 42",
                Some(Hint::ClientCertificate),
            ),
            (
                "sasl_ssl://b:1/1: SASL PLAIN mechanism handshake failed: Broker: Unsupported SASL mechanism: broker's supported mechanisms: SCRAM-SHA-512",
                Some(Hint::Mechanism),
            ),
            (
                "sasl_ssl://b:1/1: SASL authentication error: Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-512",
                Some(Hint::Password),
            ),
            (
                "sasl_ssl://b:1/1: SSL handshake failed: Disconnected: connecting to a PLAINTEXT broker listener?",
                Some(Hint::Closed),
            ),
            (CLOSED, Some(Hint::Closed)),
            ("b:1/1: Connect to ipv4#127.0.0.1:1 failed: Connection refused", None),
        ];
        for (words, hint) in cases {
            assert_eq!(Hint::in_words(words), hint, "{words}");
        }
        assert_eq!(place(plain(UNTRUSTED)), Some(("b", 9093)));
        assert_eq!(place("localhost:26548/bootstrap: Disconnected"), Some(("localhost", 26548)));
        assert_eq!(place("ssl://[::1]:9/2: Disconnected"), Some(("::1", 9)));
        assert_eq!(address("broker"), Some(("broker", 9092)));
        assert!(!plain(UNTRUSTED).contains("after") && !plain(UNTRUSTED).contains("thrd"));
    }

    #[test]
    fn a_bare_disconnect_does_not_hide_what_was_said_before() {
        let words = LastWords::default();
        assert_eq!(words.get(), None);
        words.note(CLOSED);
        assert_eq!(words.get().as_deref(), Some(CLOSED));
        words.note(UNTRUSTED);
        words.note(CLOSED);
        assert_eq!(words.get().as_deref(), Some(UNTRUSTED));
        words.forget();
        assert_eq!(words.get(), None);
    }

    #[test]
    fn what_is_certain_needs_no_second_look() {
        let config = ClientConfig::new();
        let refused = "sasl_ssl://b:1/1: SASL authentication error: Authentication failed";
        let told = refusal(Some(refused), &config).expect("a refusal");
        assert!(told.starts_with("b:1: ") && told.contains("sasl.password"), "{told}");
        // Nobody is there to be met again: no proof.
        let doubtful = "sasl_ssl://127.0.0.1:1/1: SSL handshake failed: Disconnected: connecting to a PLAINTEXT broker listener?";
        assert_eq!(refusal(Some(doubtful), &config), None);
        assert_eq!(refusal(None, &config), None);
    }
}
