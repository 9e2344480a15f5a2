//! The database as such: what refuses ends both verbs, what does not answer is waited for by `run`.

use super::stage::{Row, Run, refused};

const fn silent(
    what: &'static str,
    sql: &'static str,
    file: &'static [(&'static str, &'static str)],
    says: &'static [&'static str],
) -> Row {
    Row { what, sql, file, exit: 3, says, run: Run::Waits }
}

#[tokio::test(flavor = "multi_thread")]
async fn servers() {
    let rows = vec![
        silent(
            "nobody listens",
            "",
            &[("@url", "postgres://u@127.0.0.1:1/d")],
            &["connecting to Postgres at 127.0.0.1:1", "Check host and port in the target's url"],
        ),
        silent(
            "a broker's port",
            "",
            &[("@url", "postgres://u@@kafka/d")],
            &["connecting to Postgres at @kafka", "Is this a Postgres server?", "Check host and port"],
        ),
        silent(
            "no such host",
            "",
            &[("@url", "postgres://u@database.invalid/d")],
            &["connecting to Postgres at database.invalid", "Check host and port"],
        ),
        silent(
            "read-only",
            "ALTER ROLE @r SET default_transaction_read_only = on",
            &[("@url", "@role")],
            &["@postgres is read-only", "Name the primary in the target's url"],
        ),
        refused(
            "no such database",
            "",
            &[("@url", "postgres://postgres@@postgres/nowhere")],
            &["database \"nowhere\" does not exist", "3D000", "Create it, or name another"],
        ),
        refused(
            "no such role",
            "",
            &[("@url", "postgres://nobody_here@@postgres/postgres")],
            &["role \"nobody_here\" does not exist", "28000", "Check the user in the target's url"],
        ),
        refused(
            "a wrong password",
            "ALTER ROLE @r PASSWORD 'right'; GRANT oncesink_with_password TO @r",
            &[("@url", "postgres://@r:wrong@@postgres/postgres")],
            &["\"@r\"", "28P01", "Check the user and the password in the target's url, or its key password"],
        ),
        refused(
            "no password",
            "ALTER ROLE @r PASSWORD 'right'; GRANT oncesink_with_password TO @r",
            &[("@url", "postgres://@r@@postgres/postgres")],
            &["\"@r\"", "Check the user and the password"],
        ),
        refused(
            "no TLS",
            "",
            &[("@url", "postgres://postgres@@postgres/postgres?sslmode=require")],
            &["server does not support TLS", "Switch TLS on in the server, or write another sslmode"],
        ),
        Row {
            what: "a misspelt parameter",
            sql: "",
            file: &[("@url", "postgres://postgres@@postgres/postgres?sslmod=hunter2")],
            exit: 2,
            says: &[
                "oncesink.toml:13: sinks.s.target.url: ",
                "unknown parameter \"sslmod\"; known are sslmode, ",
            ],
            run: Run::Ends,
        },
    ];
    super::all("database", rows).await;
}

/// Positive control for the rows about passwords: with the right one the server lets the role in.
#[tokio::test(flavor = "multi_thread")]
async fn the_right_password_is_taken() {
    use oncesink::sqlx::{Connection, PgConnection};

    let postgres = oncesink_test_support::Servers::shared().await.postgres();
    let schema = postgres.schema("password").await;
    let role = format!("r_{}", schema.name());
    schema
        .execute(&format!("CREATE ROLE {role} LOGIN PASSWORD 'right' IN ROLE oncesink_with_password"))
        .await;
    for (password, lets_in) in [("right", true), ("wrong", false)] {
        let url = format!("postgres://{role}:{password}@{}/postgres", postgres.address());
        assert_eq!(PgConnection::connect(&url).await.is_ok(), lets_in, "{password}");
    }
}
