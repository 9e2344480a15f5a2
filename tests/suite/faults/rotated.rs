//! A password that is changed while the sink runs needs no restart: what stands in a file is read again at every connect.

use super::several::says;
use crate::rig::{PATIENCE, Rig};

#[tokio::test(flavor = "multi_thread")]
async fn a_password_changed_in_postgres_is_read_again_from_its_file() {
    let mut rig = Rig::new("rotated", 2).await;
    let (schema, topic) = (rig.schema.name().to_owned(), rig.topic.clone());
    let role = format!("r_{schema}");
    rig.schema
        .execute(&format!(
            "CREATE ROLE {role} LOGIN PASSWORD 'first-4711' IN ROLE oncesink_with_password;
             GRANT USAGE ON SCHEMA {schema} TO {role}; GRANT SELECT, INSERT ON \"{topic}\" TO {role};
             GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}"
        ))
        .await;
    let file = std::env::temp_dir().join(&role);
    std::fs::write(&file, "first-4711\n").expect("writing the secret");
    let url = rig.url.replacen("postgres@", &format!("{role}@"), 1);
    let config = rig.config().replace(
        &format!("url = \"{}\"", rig.url),
        &format!("url = \"{url}\", password = \"${{file:{}}}\"", file.display()),
    );
    let process = rig.command(&["run"]).file("oncesink.toml", &config).env("RUST_LOG", "info").start();
    rig.produce(10).await;
    rig.all_once().await;

    // The server first: until the file follows, it refuses, and that is waited for.
    rig.schema.execute(&format!("ALTER ROLE {role} PASSWORD 'second-4711'")).await;
    let end = format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{role}'");
    rig.schema.execute(&end).await;
    rig.produce(10).await;
    says(&process, &["28P01"]).await;
    std::fs::write(&file, "second-4711\n").expect("writing the secret");
    rig.all_once().await;
    assert!(process.is_running(), "{}", process.text());

    // The file is gone for a moment, as when it is replaced by hand.
    std::fs::remove_file(&file).expect("removing the secret");
    rig.schema.execute(&end).await;
    rig.produce(10).await;
    says(&process, &["cannot read "]).await;
    std::fs::write(&file, "second-4711").expect("writing the secret");
    rig.all_once().await;
    process.terminate();
    assert_eq!(process.wait_exit(PATIENCE).await, 0, "{}", process.text());
    std::fs::remove_file(&file).expect("removing the secret");
    assert!(!process.text().contains("-4711"), "{}", process.text());
}
