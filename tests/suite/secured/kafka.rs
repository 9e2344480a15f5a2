//! What a secured broker refuses, and what the command says.

use std::path::Path;

use oncesink_test_support::Secured;

use super::stage::{Row, Stage, refused};
use crate::rig::PATIENCE;

/// What stands in the file of a stage, to be changed.
struct File {
    password: String,
    by_certificate: String,
    ca: String,
}

impl File {
    fn of(secured: &Secured) -> Self {
        Self {
            password: format!("localhost:{}", secured.kafka.password_port()),
            by_certificate: format!("localhost:{}", secured.kafka.certificate_port()),
            ca: format!("ssl.ca.location = \"{}\"", secured.ca().display()),
        }
    }

    fn with_ca(&self, path: &Path) -> Vec<(&str, String)> {
        vec![(&self.ca, format!("ssl.ca.location = \"{}\"", path.display()))]
    }

    fn with_pair(&self, certificate: &Path, key: &Path) -> (&str, String) {
        let (certificate, key) = (certificate.display(), key.display());
        let lines = format!("ssl.certificate.location = \"{certificate}\"\nssl.key.location = \"{key}\"");
        (&self.ca, format!("{}\n{lines}", self.ca))
    }
}

/// A row whose words are owned.
fn row(what: &'static str, changes: &[(&str, String)], says: &[&str]) -> Row {
    let changes: Vec<(&str, &str)> = changes.iter().map(|(from, to)| (*from, to.as_str())).collect();
    refused(what, &changes, says)
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_that_are_not_good_are_named_by_cause_and_key() {
    let stage = Stage::new("kafka_tls", 1).await;
    let secured = &stage.secured;
    let file = File::of(secured);
    let address = format!("127.0.0.1:{}", secured.kafka.password_port());
    let expired = format!("localhost:{}", secured.kafka.expired_port());
    let (password, by_certificate, ca) = (&*file.password, &*file.by_certificate, &*file.ca);
    let strange = oncesink_test_support::tls::Authority::new("nobody").issue("stranger", &[]);
    let (certificate, key) = secured.client_files("kafka-stranger", &strange);
    let old = secured.authority.issue_expired("old", &[]);
    let (old_certificate, old_key) = secured.client_files("kafka-old", &old);
    let only = [(password, by_certificate.to_owned()), ("\"SASL_SSL\"", "\"SSL\"".to_owned())];
    let with = |certificate: &Path, key: &Path| [&only[..], &[file.with_pair(certificate, key)]].concat();
    let rows = vec![
        row(
            "wrong CA",
            &file.with_ca(&secured.strange_ca()),
            &[password, "Kafka", "authority", "ssl.ca.location"],
        ),
        row(
            "system CAs",
            &[(ca, String::new())],
            &[password, "Kafka", "this system does not trust", "ssl.ca.location"],
        ),
        row(
            "wrong host name",
            &[(password, address.clone())],
            &[&address, "Kafka", "does not bear the name", "brokers"],
        ),
        row("expired", &[(password, expired.clone())], &[&expired, "Kafka", "has expired"]),
        row(
            "no client certificate",
            &only,
            &[by_certificate, "Kafka", "demands", "ssl.certificate.location"],
        ),
        row(
            "strange client certificate",
            &with(&certificate, &key),
            &[by_certificate, "Kafka", "refuses", "ssl.certificate.location"],
        ),
        row(
            "expired client certificate",
            &with(&old_certificate, &old_key),
            &["Kafka", "has expired", "ssl.certificate.location"],
        ),
    ];
    stage.all(rows).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_that_speaks_otherwise_is_named_with_the_protocol_to_write() {
    let stage = Stage::new("kafka_protocol", 1).await;
    let file = File::of(&stage.secured);
    let (password, plain) = (&*file.password, stage.secured.kafka.bootstrap());
    let protocol = |to: &str| [("\"SASL_SSL\"", format!("\"{to}\""))];
    let rows = vec![
        row(
            "plaintext where TLS is demanded",
            &protocol("PLAINTEXT"),
            &[password, "Kafka", "demands TLS", "security.protocol"],
        ),
        row(
            "a password without TLS",
            &protocol("SASL_PLAINTEXT"),
            &[password, "Kafka", "demands TLS", "security.protocol = \"SASL_SSL\""],
        ),
        row(
            "TLS where there is none",
            &[(password, plain.to_owned())],
            &[plain, "Kafka", "no TLS", "security.protocol"],
        ),
        row(
            "TLS without a password",
            &protocol("SSL"),
            &[password, "Kafka", "demands a user", "SCRAM-SHA-512", "security.protocol = \"SASL_SSL\""],
        ),
    ];
    stage.all(rows).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_or_a_file_that_is_not_good_is_named_by_its_key() {
    let stage = Stage::new("kafka_login", 1).await;
    let secured = &stage.secured;
    let file = File::of(secured);
    let password = &*file.password;
    let user = format!("sasl.username = \"{}\"", stage.name);
    let (certificate, key) = secured.client("kafka-client");
    let (_, other_key) = secured.client("kafka-other");
    let missing = secured.path("nowhere.pem");
    let nowhere = missing.display().to_string();
    let pair = |certificate: &Path, key: &Path| [file.with_pair(certificate, key)];
    let login = [password, "Kafka", "sasl.username", "sasl.password"];
    let rows = vec![
        row("wrong password", &[("hunter2-s3cret\"\nssl", "wrong\"\nssl".to_owned())], &login),
        row("unknown user", &[(&user, "sasl.username = \"nobody\"".to_owned())], &login),
        row(
            "another mechanism",
            &[("SCRAM-SHA-512", "PLAIN".to_owned())],
            &[password, "Kafka", "SCRAM-SHA-512", "sasl.mechanism"],
        ),
        row("no CA file", &file.with_ca(&missing), &["Kafka", "ssl.ca.location", &nowhere]),
        row("no certificate file", &pair(&missing, &key), &["Kafka", "ssl.certificate.location", &nowhere]),
        row("no key file", &pair(&certificate, &missing), &["Kafka", "ssl.key.location", &nowhere]),
        row(
            "a key of another certificate",
            &pair(&certificate, &other_key),
            &["Kafka", "ssl.key.location", "does not belong"],
        ),
        row("no PEM", &pair(&key, &key), &["Kafka", "ssl.certificate.location", "no certificate"]),
    ];
    stage.all(rows).await;
}

/// Positive control for the rows about client certificates: with a good one the same listener lets us in.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_certificate_of_the_right_authority_is_taken() {
    let mut stage = Stage::new("kafka_certificate", 1).await;
    let (certificate, key) = stage.secured.client("kafka-welcome");
    stage.rig.brokers = format!("localhost:{}", stage.secured.kafka.certificate_port());
    stage.rig.kafka_lines = format!(
        "security.protocol = \"SSL\"\nssl.ca.location = \"{}\"\nssl.certificate.location = \"{}\"\nssl.key.location = \"{}\"\n",
        stage.secured.ca().display(),
        certificate.display(),
        key.display()
    );
    let (code, lines) = stage.rig.command(&["check"]).run(PATIENCE).await;
    assert_eq!(code, 0, "{lines:#?}");
}
