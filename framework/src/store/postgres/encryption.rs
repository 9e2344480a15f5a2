//! Why a connection with TLS to the database failed: the cause and the parameter of the url to mend.
//!
//! Looked for after a failure only. The driver reads certificate, key and authority anew for each connection, so that files which were replaced are used
//! at the next one; so does this. Must not: put the url or anything of a key into words.

use std::path::PathBuf;

use sqlx::ConnectOptions;
use sqlx::postgres::{PgConnectOptions, PgSslMode};

use crate::tls::{self, Files, Keys, Met, Verify};

/// The parameters of the url.
const KEYS: Keys =
    Keys { address: "the target's url", ca: "sslrootcert", certificate: "sslcert", key: "sslkey" };

/// By which a client asks a server of Postgres whether it has TLS, as in the protocol.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// What cannot be mended by waiting; none when the reason is another one.
pub(super) async fn cause(error: &sqlx::Error, options: &PgConnectOptions) -> Option<String> {
    let mode = options.get_ssl_mode();
    if matches!(mode, PgSslMode::Disable | PgSslMode::Allow) || options.get_socket().is_some() {
        return None;
    }
    let said = error.to_string();
    if said.contains("does not support TLS") {
        return Some(
            "the server does not support TLS. Switch TLS on in the server, or write another sslmode into the target's url".to_owned(),
        );
    }
    let files = files(options);
    if let Some(flaw) = files.flaw(&KEYS) {
        return Some(format!("{flaw}. Mend it in the target's url"));
    }
    if said.contains("PKCS#8") && files.key_is_not_pkcs8() {
        return Some(
            "the key of sslkey is not in the form PKCS #8 without a password, which the driver takes: openssl pkcs8 -topk8 -nodes -in KEY".to_owned(),
        );
    }
    // A server that refuses a certificate closes the connection, and its words may be lost in that.
    if matches!(error, sqlx::Error::Io(_))
        && files.certificate.is_none()
        && !tls::refuses_a_certificate(&said)
    {
        return None;
    }
    let verify = match mode {
        PgSslMode::VerifyFull => Verify::AuthorityAndName,
        PgSslMode::VerifyCa => Verify::Authority,
        _ => Verify::Nothing,
    };
    let (host, port) = (options.get_host().to_owned(), options.get_port());
    let meeting = tokio::task::spawn_blocking(move || {
        let met = meet(&host, port, &files, verify);
        (met, tls::words(&met, &host, &files, &KEYS))
    });
    match meeting.await.ok()? {
        (_, Some(words)) => Some(words),
        (Met::Disagreed, None) => Some(format!("{said}. The server and we do not agree on TLS")),
        // It may be on its way down, or up.
        (_, None) => None,
    }
}

/// Whether we come with a certificate.
pub(super) fn has_certificate(options: &PgConnectOptions) -> bool {
    files(options).certificate.is_some()
}

/// From the url, or from the environment: the driver tells only all of it in one.
fn files(options: &PgConnectOptions) -> Files {
    let mut files = Files::default();
    for (name, value) in options.to_url_lossy().query_pairs() {
        let file = match &*name {
            "sslrootcert" => &mut files.ca,
            "sslcert" => &mut files.certificate,
            "sslkey" => &mut files.key,
            _ => continue,
        };
        // The driver shows what kind of source it is.
        *file = Some(PathBuf::from(value.strip_prefix("file: ").unwrap_or(&value)));
    }
    files
}

fn meet(host: &str, port: u16, files: &Files, verify: Verify) -> Met {
    let Ok(mut stream) = tls::reach(host, port) else { return Met::Silent };
    match tls::ask(&mut stream, &SSL_REQUEST) {
        Some(answer) if answer == b"S" => tls::meet(stream, host, files, verify),
        Some(_) => Met::Disagreed,
        None => Met::Silent,
    }
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use super::*;

    #[test]
    fn the_files_are_those_of_the_url() {
        let url =
            "postgres://u:p@h/d?sslmode=verify-full&sslrootcert=%2Fa%20b.pem&sslcert=/c.pem&sslkey=/k.pem";
        let files = files(&PgConnectOptions::from_str(url).unwrap());
        let path = |path: &str| Some(PathBuf::from(path));
        assert_eq!(files, Files { ca: path("/a b.pem"), certificate: path("/c.pem"), key: path("/k.pem") });
    }
}
