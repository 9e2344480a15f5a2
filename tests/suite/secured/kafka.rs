//! What a secured broker refuses, and what the command says.

use super::stage::{Stage, refused};

#[tokio::test(flavor = "multi_thread")]
async fn what_a_broker_refuses_is_said_in_one_line() {
    let stage = Stage::new("kafka_refuses", 1).await;
    let secured = &stage.secured;
    let password = format!("localhost:{}", secured.kafka.password_port());
    let address = format!("127.0.0.1:{}", secured.kafka.password_port());
    let expired = format!("localhost:{}", secured.kafka.expired_port());
    let by_certificate = format!("localhost:{}", secured.kafka.certificate_port());
    let plain = secured.kafka.bootstrap().to_owned();
    let ca = format!("ssl.ca.location = \"{}\"", secured.ca().display());
    let strange = format!("ssl.ca.location = \"{}\"", secured.strange_ca().display());
    let user = format!("sasl.username = \"{}\"", stage.name);
    let (certificate, key) = secured.client("kafka-client");
    let (_, other_key) = secured.client("kafka-other");
    let pair = |certificate: &std::path::Path, key: &std::path::Path| {
        format!(
            "{ca}\nssl.certificate.location = \"{}\"\nssl.key.location = \"{}\"",
            certificate.display(),
            key.display()
        )
    };
    let missing = secured.path("nowhere.pem");
    let no_certificate = [(&*password, &*by_certificate), ("\"SASL_SSL\"", "\"SSL\"")];
    let rows = vec![
        refused("wrong CA", &[(&ca, &strange)], &[&password, "Kafka", "ssl.ca.location"]),
        refused("system CAs", &[(&ca, "")], &[&password, "Kafka", "ssl.ca.location"]),
        refused("wrong host name", &[(&password, &address)], &[&address, "Kafka", "brokers"]),
        refused("expired", &[(&password, &expired)], &[&expired, "Kafka", "expired"]),
        refused(
            "wrong password",
            &[("hunter2-s3cret\"\nssl", "wrong\"\nssl")],
            &[&password, "Kafka", "sasl.password"],
        ),
        refused(
            "unknown user",
            &[(&user, "sasl.username = \"nobody\"")],
            &[&password, "Kafka", "sasl.username"],
        ),
        refused("another mechanism", &[("SCRAM-SHA-512", "PLAIN")], &[&password, "Kafka", "sasl.mechanism"]),
        refused(
            "plaintext where TLS is demanded",
            &[("\"SASL_SSL\"", "\"PLAINTEXT\"")],
            &[&password, "Kafka", "security.protocol"],
        ),
        refused(
            "a password without TLS",
            &[("\"SASL_SSL\"", "\"SASL_PLAINTEXT\"")],
            &[&password, "Kafka", "security.protocol"],
        ),
        refused("TLS where there is none", &[(&password, &plain)], &[&plain, "Kafka", "security.protocol"]),
        refused(
            "TLS without a password",
            &[("\"SASL_SSL\"", "\"SSL\"")],
            &[&password, "Kafka", "security.protocol"],
        ),
        refused(
            "no client certificate",
            &no_certificate,
            &[&by_certificate, "Kafka", "ssl.certificate.location"],
        ),
        refused(
            "no CA file",
            &[(&ca, &format!("ssl.ca.location = \"{}\"", missing.display()))],
            &["Kafka", "ssl.ca.location"],
        ),
        refused(
            "no certificate file",
            &[(&ca, &pair(&missing, &key))],
            &["Kafka", "ssl.certificate.location"],
        ),
        refused("no key file", &[(&ca, &pair(&certificate, &missing))], &["Kafka", "ssl.key.location"]),
        refused(
            "a key of another certificate",
            &[(&ca, &pair(&certificate, &other_key))],
            &["Kafka", "ssl.key.location"],
        ),
        refused("no PEM", &[(&ca, &pair(&key, &key))], &["Kafka", "ssl.certificate.location"]),
    ];
    stage.all(rows).await;
}
