//! Certificates for the tests' secured servers and their clients, made in the test run.
//!
//! Invariant: nothing that is made here outlives its folder, and no key leaves the machine. Must not: be fit for anything but tests; every certificate
//! is short-lived and signed by an authority that nobody trusts.

use std::net::IpAddr;

use openssl::asn1::Asn1Time;
use openssl::bn::{BigNum, MsbOption};
use openssl::ec::{EcGroup, EcKey};
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::{PKey, Private};
use openssl::x509::extension::{BasicConstraints, KeyUsage, SubjectAlternativeName};
use openssl::x509::{X509, X509Builder, X509Name, X509NameBuilder};

const DAY: i64 = 86_400;

/// An authority that signs certificates.
pub struct Authority {
    name: X509Name,
    certificate: X509,
    key: PKey<Private>,
}

/// A certificate with its key, both as PEM.
#[derive(Clone)]
pub struct Identity {
    /// The certificate.
    pub certificate: String,
    /// Its key, PKCS #8.
    pub key: String,
}

impl Authority {
    /// A new authority with a certificate of its own.
    pub fn new(common_name: &str) -> Self {
        let (name, key) = (name(common_name), key());
        let mut builder = begun(&name, &name, &key, (-1, 2));
        let ca = BasicConstraints::new().critical().ca().build().expect("an extension");
        let usage = KeyUsage::new().critical().key_cert_sign().crl_sign().build().expect("an extension");
        builder.append_extension(ca).expect("an extension");
        builder.append_extension(usage).expect("an extension");
        builder.sign(&key, MessageDigest::sha256()).expect("signing a certificate");
        Self { name, certificate: builder.build(), key }
    }

    /// Its certificate as PEM, for whoever should trust it.
    pub fn certificate(&self) -> String {
        pem(self.certificate.to_pem())
    }

    /// A certificate for a server under these host names or addresses, or for a client that bears the name.
    pub fn issue(&self, common_name: &str, hosts: &[&str]) -> Identity {
        self.issue_within(common_name, hosts, (-1, 1))
    }

    /// The same, of yesterday.
    pub fn issue_expired(&self, common_name: &str, hosts: &[&str]) -> Identity {
        self.issue_within(common_name, hosts, (-2, -1))
    }

    fn issue_within(&self, common_name: &str, hosts: &[&str], days: (i64, i64)) -> Identity {
        let key = key();
        let mut builder = begun(&name(common_name), &self.name, &key, days);
        if !hosts.is_empty() {
            let mut names = SubjectAlternativeName::new();
            for host in hosts {
                if host.parse::<IpAddr>().is_ok() {
                    names.ip(host)
                } else {
                    names.dns(host)
                };
            }
            let names = names.build(&builder.x509v3_context(Some(&self.certificate), None));
            builder.append_extension(names.expect("an extension")).expect("an extension");
        }
        builder.sign(&self.key, MessageDigest::sha256()).expect("signing a certificate");
        let key = pem(key.private_key_to_pem_pkcs8());
        Identity { certificate: pem(builder.build().to_pem()), key }
    }
}

fn name(common_name: &str) -> X509Name {
    let mut name = X509NameBuilder::new().expect("a name");
    name.append_entry_by_text("CN", common_name).expect("a name");
    name.build()
}

fn key() -> PKey<Private> {
    let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).expect("a curve");
    PKey::from_ec_key(EcKey::generate(&group).expect("a key")).expect("a key")
}

/// All but extensions and signature; valid between these days, counted from now.
fn begun(subject: &X509Name, issuer: &X509Name, key: &PKey<Private>, days: (i64, i64)) -> X509Builder {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock");
    let now = i64::try_from(now.as_secs()).expect("a time");
    let at = |day: i64| Asn1Time::from_unix(now + day * DAY).expect("a time");
    let mut serial = BigNum::new().expect("a number");
    serial.rand(128, MsbOption::MAYBE_ZERO, false).expect("a number");
    let mut builder = X509::builder().expect("a certificate");
    builder.set_version(2).expect("a certificate");
    builder.set_serial_number(&serial.to_asn1_integer().expect("a number")).expect("a certificate");
    builder.set_subject_name(subject).expect("a certificate");
    builder.set_issuer_name(issuer).expect("a certificate");
    builder.set_pubkey(key).expect("a certificate");
    builder.set_not_before(&at(days.0)).expect("a certificate");
    builder.set_not_after(&at(days.1)).expect("a certificate");
    builder
}

fn pem(bytes: Result<Vec<u8>, openssl::error::ErrorStack>) -> String {
    String::from_utf8(bytes.expect("PEM")).expect("PEM is text")
}
