//! Why a connection through TLS did not come about, in words for people: shared by the brokers' side and the database's.
//!
//! Both drivers speak to their servers by themselves and say little when it fails: one calls a wrong name, a strange authority and an expired certificate
//! by the same words. So, after a failure and never before one, the client's files are looked at and the server is met once more, for its certificate.
//!
//! Must not: decide whether a connection may be used (the drivers do), send anything that the drivers would not, or put a key or a password into words.

mod files;
mod meeting;

pub(crate) use files::Files;
pub(crate) use meeting::{Met, Verify, ask, ask_unverified, meet, reach, refuses_a_certificate};

/// What the configuration calls the things that a person may have to mend.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys {
    /// Where the server's address stands.
    pub(crate) address: &'static str,
    pub(crate) ca: &'static str,
    pub(crate) certificate: &'static str,
    pub(crate) key: &'static str,
}

/// What is wrong with the server's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    WrongName,
    Expired,
    NotYetValid,
    /// Signed by an authority that is not trusted here.
    Stranger,
}

/// The cause and the key to mend, to stand behind the server's address; none when the meeting shows nothing wrong.
pub(crate) fn words(met: &Met, host: &str, files: &Files, keys: &Keys) -> Option<String> {
    let Keys { address, ca, certificate, key } = keys;
    Some(match met {
        Met::Unverified(Flaw::WrongName) => format!(
            "its certificate does not bear the name {host:?}. Write a name that it bears into {address}, or give the server a certificate for this one"
        ),
        Met::Unverified(Flaw::Expired) => {
            format!(
                "its certificate has expired. The server needs a new one; neither {ca} nor another key helps"
            )
        }
        Met::Unverified(Flaw::NotYetValid) => {
            "its certificate is not valid yet. Compare this machine's clock with the server's".to_owned()
        }
        Met::Unverified(Flaw::Stranger) if files.ca.is_some() => format!(
            "its certificate is signed by an authority that the file of {ca} does not hold. Name the file of the right authority there"
        ),
        Met::Unverified(Flaw::Stranger) => format!(
            "its certificate is signed by an authority that this system does not trust. Name the file of that authority in {ca}"
        ),
        Met::Refused if files.certificate.is_some() => format!(
            "it refuses the client certificate of {certificate}, which must be valid and signed by an authority that the server trusts"
        ),
        Met::Refused => {
            format!("it demands a client certificate. Name one in {certificate}, and its key in {key}")
        }
        Met::Fine | Met::Disagreed | Met::Silent => return None,
    })
}
