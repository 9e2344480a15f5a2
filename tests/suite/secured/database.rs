//! What a secured database refuses, and what the command says.

use super::stage::{Stage, refused};

#[tokio::test(flavor = "multi_thread")]
async fn what_postgres_refuses_is_said_in_one_line() {
    let stage = Stage::new("database_refuses", 1).await;
    let secured = &stage.secured;
    let place = format!("localhost:{}", secured.postgres.port());
    let address = format!("127.0.0.1:{}", secured.postgres.port());
    let ca = format!("sslrootcert={}", secured.ca().display());
    let strange = format!("sslrootcert={}", secured.strange_ca().display());
    let nowhere = secured.path("nowhere.pem");
    let (certificate, key) =
        (secured.path(&format!("{}.pem", stage.name)), secured.path(&format!("{}.key", stage.name)));
    let certificate = format!("sslcert={}", certificate.display());
    let key = format!("sslkey={}", key.display());
    let (other_certificate, other_key) = secured.client("database-other");
    let strange_identity = oncesink_test_support::tls::Authority::new("nobody").issue(&stage.name, &[]);
    let (strange_certificate, strange_key) = secured.client_files("database-stranger", &strange_identity);
    let old = secured.authority.issue_expired(&stage.name, &[]);
    let (old_certificate, old_key) = secured.client_files("database-old", &old);
    let pair = |c: &std::path::Path, k: &std::path::Path| {
        [
            (certificate.clone(), format!("sslcert={}", c.display())),
            (key.clone(), format!("sslkey={}", k.display())),
        ]
    };
    fn as_str(pair: &[(String, String); 2]) -> [(&str, &str); 2] {
        [(&pair[0].0, &pair[0].1), (&pair[1].0, &pair[1].1)]
    }
    let user = format!("{}:", stage.name);
    let with_certificate = format!("&{certificate}&{key}");
    let rows = vec![
        refused("wrong CA", &[(&ca, &strange)], &[&place, "Postgres", "sslrootcert"]),
        refused("system CAs", &[(&format!("&{ca}"), "")], &[&place, "Postgres", "sslrootcert"]),
        refused("wrong host name", &[(&place, &address)], &[&address, "Postgres", "url"]),
        refused("wrong password", &[("hunter2-s3cret@", "wrong@")], &[&place, "password"]),
        refused("unknown role", &[(&user, "nobody_here:")], &[&place, "nobody_here"]),
        refused(
            "plaintext where TLS is demanded",
            &[("sslmode=verify-full", "sslmode=disable")],
            &[&place, "sslmode"],
        ),
        refused("no client certificate", &[(&with_certificate, "")], &[&place, "sslcert"]),
        refused(
            "certificate of another name",
            &as_str(&pair(&other_certificate, &other_key)),
            &[&place, "sslcert"],
        ),
        refused(
            "certificate of another authority",
            &as_str(&pair(&strange_certificate, &strange_key)),
            &[&place, "sslcert"],
        ),
        refused(
            "expired client certificate",
            &as_str(&pair(&old_certificate, &old_key)),
            &[&place, "sslcert"],
        ),
        refused(
            "no CA file",
            &[(&ca, &format!("sslrootcert={}", nowhere.display()))],
            &[&place, "sslrootcert"],
        ),
        refused(
            "no certificate file",
            &[(&certificate, &format!("sslcert={}", nowhere.display()))],
            &[&place, "sslcert"],
        ),
        refused("no key file", &[(&key, &format!("sslkey={}", nowhere.display()))], &[&place, "sslkey"]),
        refused(
            "a key of another certificate",
            &[(&key, &format!("sslkey={}", other_key.display()))],
            &[&place, "sslkey"],
        ),
        refused("a certificate without its key", &[(&format!("&{key}"), "")], &[&place, "sslkey"]),
        refused("no PEM", &[(&key, &format!("sslkey={}", secured.ca().display()))], &[&place, "sslkey"]),
    ];
    stage.all(rows).await;
}
