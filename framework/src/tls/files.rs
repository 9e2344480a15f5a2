//! A client's certificate, its key, and the authorities that it trusts: files, looked at when a connection has failed.

use std::path::{Path, PathBuf};

use openssl::asn1::Asn1Time;
use openssl::pkey::PKey;
use openssl::x509::X509;

use super::Keys;

/// The files that the configuration names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Files {
    /// A file of authorities, or a folder of them.
    pub(crate) ca: Option<PathBuf>,
    pub(crate) certificate: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
}

impl Files {
    /// The first thing that is wrong with them, by the names of the keys; none when all is well, or cannot be seen from here.
    pub(crate) fn flaw(&self, keys: &Keys) -> Option<String> {
        self.check(keys).err()
    }

    fn check(&self, keys: &Keys) -> Result<(), String> {
        if let Some(ca) = self.ca.as_deref().filter(|ca| !ca.is_dir()) {
            certificates(ca, keys.ca)?;
        }
        let (certificate, key) = match (&self.certificate, &self.key) {
            (None, None) => return Ok(()),
            (Some(certificate), Some(key)) => (certificate, key),
            (Some(certificate), None) => return Err(lonely(certificate, keys.certificate, keys.key)),
            (None, Some(key)) => return Err(lonely(key, keys.key, keys.certificate)),
        };
        let certificates = certificates(certificate, keys.certificate)?;
        let Some(own) = certificates.first() else { return Ok(()) };
        let pem = read(key, keys.key)?;
        // One that needs a password is left to whoever has it.
        if !contains(&pem, "ENCRYPTED") {
            let key_of = PKey::private_key_from_pem(&pem)
                .map_err(|_| format!("{} = {}: no key in PEM form", keys.key, key.display()))?;
            if own.public_key().is_ok_and(|public| !public.public_eq(&key_of)) {
                return Err(format!(
                    "the key of {} ({}) does not belong to the certificate of {} ({})",
                    keys.key,
                    key.display(),
                    keys.certificate,
                    certificate.display()
                ));
            }
        }
        if Asn1Time::days_from_now(0).is_ok_and(|now| *own.not_after() < *now) {
            return Err(format!(
                "the client certificate of {} ({}) has expired, on {}",
                keys.certificate,
                certificate.display(),
                own.not_after()
            ));
        }
        Ok(())
    }

    /// Whether the key is in another form than PKCS #8 without a password, the only one that some drivers take.
    pub(crate) fn key_is_not_pkcs8(&self) -> bool {
        self.key
            .as_ref()
            .and_then(|key| std::fs::read(key).ok())
            .is_some_and(|pem| !contains(&pem, "BEGIN PRIVATE KEY"))
    }
}

fn lonely(path: &Path, given: &str, missing: &str) -> String {
    format!("{given} = {} is of no use without {missing}. Write both", path.display())
}

fn read(path: &Path, key: &str) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("{key} = {}: cannot be read: {error}", path.display()))
}

fn certificates(path: &Path, key: &str) -> Result<Vec<X509>, String> {
    let found = X509::stack_from_pem(&read(path, key)?).unwrap_or_default();
    if found.is_empty() {
        return Err(format!("{key} = {}: no certificate in PEM form", path.display()));
    }
    Ok(found)
}

fn contains(bytes: &[u8], word: &str) -> bool {
    bytes.windows(word.len()).any(|window| window == word.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: Keys =
        Keys { address: "brokers", ca: "the.ca", certificate: "the.certificate", key: "the.key" };

    #[test]
    fn what_is_not_there_or_no_pem_is_named_by_its_key() {
        let nowhere = Some(PathBuf::from("/nowhere/at/all.pem"));
        let folder = std::env::temp_dir();
        let text = folder.join(format!("oncesink-no-pem-{}", std::process::id()));
        std::fs::write(&text, "no PEM").unwrap();
        let cases = [
            (
                Files { ca: nowhere.clone(), ..Files::default() },
                "the.ca = /nowhere/at/all.pem: cannot be read",
            ),
            (Files { ca: Some(text.clone()), ..Files::default() }, "no certificate in PEM form"),
            (Files { certificate: nowhere.clone(), ..Files::default() }, "without the.key"),
            (Files { key: nowhere.clone(), ..Files::default() }, "without the.certificate"),
            (
                Files { certificate: nowhere.clone(), key: Some(text.clone()), ..Files::default() },
                "the.certificate = /nowhere/at/all.pem: cannot be read",
            ),
        ];
        for (files, says) in cases {
            let flaw = files.flaw(&KEYS).expect("a flaw");
            assert!(flaw.contains(says), "{flaw}");
        }
        std::fs::remove_file(text).unwrap();
        assert_eq!(
            Files { ca: Some(folder), ..Files::default() }.flaw(&KEYS),
            None,
            "a folder of authorities"
        );
        assert_eq!(Files::default().flaw(&KEYS), None);
    }
}
