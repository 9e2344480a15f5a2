//! A word or two with a broker outside of librdkafka, to learn what a listener speaks: TLS or not, SASL or not.
//!
//! Must not: send anything that is secret, or be used for anything but the words of an error.

use crate::tls;

const API_VERSIONS: i16 = 18;
const SASL_HANDSHAKE: i16 = 17;
/// Our number in the question, which the answer repeats: nobody but a broker does.
const NUMBER: i32 = 0x6f6e_6365;
/// `UNSUPPORTED_SASL_MECHANISM`, with the list of those that are supported.
const UNSUPPORTED: i16 = 33;

/// Whether a broker answers without TLS.
pub(super) fn in_plain(host: &str, port: u16) -> bool {
    let Ok(mut stream) = tls::reach(host, port) else { return false };
    tls::ask(&mut stream, &question(API_VERSIONS, &[])).is_some_and(|answer| body(&answer).is_some())
}

/// Whether a broker answers through TLS, or refuses it as only somebody with TLS does.
pub(super) fn through_tls(host: &str, port: u16) -> bool {
    let Ok(stream) = tls::reach(host, port) else { return false };
    let met = tls::meet(stream, host, &tls::Files::default(), tls::Verify::Nothing);
    matches!(met, tls::Met::Fine | tls::Met::Refused)
}

/// The mechanisms that a listener with SASL takes; none when it has no SASL or does not answer.
pub(super) fn mechanisms(host: &str, port: u16, with_tls: bool) -> Option<String> {
    // A mechanism that nobody has: the answer lists those that are there, and no login has begun.
    let name = b"NONE-OF-YOURS";
    let mut asked = (name.len() as i16).to_be_bytes().to_vec();
    asked.extend(name);
    let question = question(SASL_HANDSHAKE, &asked);
    let mut stream = tls::reach(host, port).ok()?;
    let answer = if with_tls {
        tls::ask_unverified(stream, host, &question)?
    } else {
        tls::ask(&mut stream, &question)?
    };
    listed(body(&answer)?)
}

/// A request of version 0 without a client's name, in Kafka's framing.
fn question(key: i16, body: &[u8]) -> Vec<u8> {
    let mut request = Vec::new();
    request.extend(key.to_be_bytes());
    request.extend(0_i16.to_be_bytes());
    request.extend(NUMBER.to_be_bytes());
    request.extend((-1_i16).to_be_bytes());
    request.extend(body);
    let mut framed = (request.len() as i32).to_be_bytes().to_vec();
    framed.extend(request);
    framed
}

/// What follows length and number of a broker's answer.
fn body(answer: &[u8]) -> Option<&[u8]> {
    let rest = answer.get(4..)?;
    rest.strip_prefix(&NUMBER.to_be_bytes())
}

fn listed(body: &[u8]) -> Option<String> {
    let (code, mut rest) = body.split_first_chunk::<2>()?;
    if i16::from_be_bytes(*code) != UNSUPPORTED {
        return None;
    }
    let (count, after) = rest.split_first_chunk::<4>()?;
    rest = after;
    let mut names = Vec::new();
    for _ in 0..i32::from_be_bytes(*count).clamp(0, 16) {
        let (length, after) = rest.split_first_chunk::<2>()?;
        let (name, after) = after.split_at_checked(usize::try_from(i16::from_be_bytes(*length)).ok()?)?;
        names.push(String::from_utf8_lossy(name).into_owned());
        rest = after;
    }
    Some(names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_mechanisms_is_read_and_anything_else_is_not() {
        let mut answer = vec![0, 0, 0, 0];
        answer.extend(NUMBER.to_be_bytes());
        answer.extend([0, 33, 0, 0, 0, 2, 0, 5]);
        answer.extend(b"PLAIN");
        answer.extend([0, 2]);
        answer.extend(b"X1");
        assert_eq!(body(&answer).and_then(listed).as_deref(), Some("PLAIN, X1"));
        answer.pop();
        assert_eq!(body(&answer).and_then(listed), None, "cut off");
        assert_eq!(body(b"HTTP/1.1 400 Bad Request"), None);
        assert_eq!(listed(&[0, 34, 0, 0, 0, 0]), None, "a listener without SASL");
    }
}
