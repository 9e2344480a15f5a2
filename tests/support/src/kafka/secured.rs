//! A broker that is spoken to through TLS: with a password, with a client certificate, and under an expired certificate; beside the plain listener,
//! which the tests' own clients use.
//!
//! Invariant: the certificates name `localhost`, never an address, so that a client which connects to `127.0.0.1` meets a wrong host name.

use std::fs;
use std::ops::Deref;
use std::path::PathBuf;

use super::client::plain_consumer;
use super::{Kafka, KafkaCluster, KafkaOptions, scram};
use crate::ports;
use crate::tls::{Authority, Identity};
use crate::workdir::Workdir;

/// A cluster of one broker with secured listeners.
#[derive(Debug)]
pub struct SecuredKafka {
    // Before the folder: the broker reads its certificates when it pleases.
    cluster: KafkaCluster,
    ports: Ports,
    _folder: Workdir,
}

#[derive(Debug, Clone, Copy)]
struct Ports {
    password: u16,
    certificate: u16,
    expired: u16,
}

impl SecuredKafka {
    /// Starts the broker, with server certificates of this authority, whose clients it believes.
    pub fn start_blocking(authority: &Authority) -> Self {
        let folder = Workdir::new("kafka-tls");
        let ports = Ports { password: ports::free(), certificate: ports::free(), expired: ports::free() };
        let good = keystore(&folder, "good", &authority.issue("broker", &["localhost"]));
        let old = keystore(&folder, "expired", &authority.issue_expired("broker", &["localhost"]));
        let trusted = folder.path().join("ca.pem");
        fs::write(&trusted, authority.certificate()).expect("writing a certificate");
        let trusted = trusted.display().to_string();
        let mut options = KafkaOptions::one()
            .listener("PASSWORD", ports.password)
            .listener("CERTIFICATE", ports.certificate)
            .listener("EXPIRED", ports.expired)
            .set(
                "listener.security.protocol.map",
                "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,PASSWORD:SASL_SSL,CERTIFICATE:SSL,EXPIRED:SASL_SSL",
            )
            .set("sasl.enabled.mechanisms", "SCRAM-SHA-512")
            .set("ssl.keystore.type", "PEM")
            .set("ssl.truststore.type", "PEM")
            .set("ssl.truststore.location", &trusted)
            .set("listener.name.certificate.ssl.client.auth", "required");
        for (listener, store) in [("password", &good), ("certificate", &good), ("expired", &old)] {
            let key = format!("listener.name.{listener}.ssl.keystore.location");
            options = options.set(&key, &store.display().to_string());
        }
        for listener in ["password", "expired"] {
            options = options.set(
                &format!("listener.name.{listener}.scram-sha-512.sasl.jaas.config"),
                "org.apache.kafka.common.security.scram.ScramLoginModule required;",
            );
        }
        Self { cluster: KafkaCluster::start_blocking(&options), ports, _folder: folder }
    }

    /// Makes a user, or gives it another password. A short moment passes until the broker believes it.
    pub fn set_password(&self, user: &str, password: &str) {
        scram::set_password(&plain_consumer(self.cluster.bootstrap(), &[]), user, password);
    }

    /// The port of SASL_SSL with SCRAM-SHA-512; reached as `localhost`.
    pub fn password_port(&self) -> u16 {
        self.ports.password
    }

    /// The port of SSL that demands a client certificate.
    pub fn certificate_port(&self) -> u16 {
        self.ports.certificate
    }

    /// The port of SASL_SSL whose server certificate has expired.
    pub fn expired_port(&self) -> u16 {
        self.ports.expired
    }
}

/// The plain listener.
impl Deref for SecuredKafka {
    type Target = Kafka;

    fn deref(&self) -> &Kafka {
        &self.cluster
    }
}

/// What a broker calls a keystore: key and certificate in one file.
fn keystore(folder: &Workdir, name: &str, identity: &Identity) -> PathBuf {
    let path = folder.path().join(format!("{name}.pem"));
    fs::write(&path, format!("{}{}", identity.key, identity.certificate)).expect("writing a keystore");
    path
}
