//! What these tests work with: a rig between the secured servers, and what a refused connection must say.

use std::path::Path;
use std::sync::Arc;

use oncesink_test_support::kafka::Kafka;
use oncesink_test_support::postgres::SecuredPostgres;
use oncesink_test_support::process::{Line, Stream};
use oncesink_test_support::{Secured, eventually};
use tokio::sync::Semaphore;

use crate::rig::{PATIENCE, Rig};

/// Bears a marker: no line of the command may hold it.
pub(super) const PASSWORD: &str = "hunter2-s3cret";

/// A rig whose sink comes to Kafka as a user and to the database as a role of its own.
pub(super) struct Stage {
    pub(super) secured: Arc<Secured>,
    pub(super) rig: Rig,
    /// The name of user and role.
    pub(super) name: String,
}

impl Stage {
    pub(super) async fn new(stem: &str, partitions: i32) -> Self {
        let secured = Secured::shared().await;
        Self::on(&secured, &secured.postgres, stem, partitions).await
    }

    /// The same on a database server of the test's own.
    pub(super) async fn on(
        secured: &Arc<Secured>,
        postgres: &SecuredPostgres,
        stem: &str,
        partitions: i32,
    ) -> Self {
        let kafka: &'static Kafka = Box::leak(Box::new(Kafka::connect(secured.kafka.bootstrap())));
        let mut rig = Rig::between(kafka, postgres, stem, partitions).await;
        let name = rig.schema.name().to_owned();
        let user = name.clone();
        let shared = Arc::clone(secured);
        tokio::task::spawn_blocking(move || shared.kafka.set_password(&user, PASSWORD)).await.unwrap();
        rig.schema
            .execute(&format!(
                "CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}' IN ROLE oncesink_by_both;
                 GRANT USAGE ON SCHEMA {name} TO {name}; GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA {name} TO {name};
                 GRANT USAGE ON ALL SEQUENCES IN SCHEMA {name} TO {name}"
            ))
            .await;
        rig.brokers = format!("localhost:{}", secured.kafka.password_port());
        rig.kafka_lines = kafka_lines(&name, PASSWORD, &secured.ca());
        let (certificate, key) = secured.client(&name);
        rig.url = url(
            &format!("{name}:{PASSWORD}@localhost:{}", postgres.port()),
            &[
                ("sslmode", "verify-full"),
                ("sslrootcert", &secured.ca().display().to_string()),
                ("sslcert", &certificate.display().to_string()),
                ("sslkey", &key.display().to_string()),
                ("options", &format!("-c%20search_path%3D{name}")),
            ],
        );
        Self { secured: Arc::clone(secured), rig, name }
    }

    /// The file with these changes.
    fn changed(&self, changes: &[(String, String)]) -> String {
        let mut file = self.rig.config();
        for (from, to) in changes {
            assert!(file.contains(from.as_str()), "{from} is in the file:\n{file}");
            file = file.replace(from.as_str(), to);
        }
        file
    }

    /// What is wrong with a row's outcome, for people.
    async fn row(&self, row: &Row) -> Option<String> {
        let file = self.changed(&row.changes);
        let command = |verb| self.rig.command(&[verb]).file("oncesink.toml", &file);
        let mut problems = Vec::new();
        let process = command("run").start();
        let (code, lines) = command("check").run(PATIENCE).await;
        look(row, "check", (code, 3), &lines, &mut problems);
        eventually(PATIENCE, || async {
            (process.text().contains("waiting for ") || !process.is_running()).then_some(())
        })
        .await;
        if process.is_running() {
            process.terminate();
        }
        let code = process.wait_exit(PATIENCE).await;
        look(row, "run", (code, 3), &process.lines(), &mut problems);
        (!problems.is_empty()).then(|| format!("## {}\n{}", row.what, problems.join("\n")))
    }

    /// Runs all rows, some at a time.
    pub(super) async fn all(self, rows: Vec<Row>) {
        let (stage, few) = (Arc::new(self), Arc::new(Semaphore::new(3)));
        let mut running = tokio::task::JoinSet::new();
        for row in rows {
            let (stage, few) = (Arc::clone(&stage), Arc::clone(&few));
            running.spawn(async move {
                let _turn = few.acquire().await.unwrap();
                stage.row(&row).await
            });
        }
        let problems: Vec<String> = running.join_all().await.into_iter().flatten().collect();
        assert!(problems.is_empty(), "{}", problems.join("\n\n"));
    }
}

/// The lines of `[kafka]` for a user.
pub(super) fn kafka_lines(user: &str, password: &str, ca: &Path) -> String {
    format!(
        "security.protocol = \"SASL_SSL\"\nsasl.mechanism = \"SCRAM-SHA-512\"\nsasl.username = \"{user}\"\n\
         sasl.password = \"{password}\"\nssl.ca.location = \"{}\"\n",
        ca.display()
    )
}

/// A URL with parameters.
pub(super) fn url(place: &str, parameters: &[(&str, &str)]) -> String {
    let parameters: Vec<String> = parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
    format!("postgres://{place}/postgres?{}", parameters.join("&"))
}

/// A change of the file, and what comes of it.
pub(super) struct Row {
    pub(super) what: &'static str,
    pub(super) changes: Vec<(String, String)>,
    /// What the one line contains: the side, the cause, the key.
    pub(super) says: Vec<String>,
}

/// A row in which both verbs end with 3.
pub(super) fn refused(what: &'static str, changes: &[(&str, &str)], says: &[&str]) -> Row {
    let changes = changes.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned())).collect();
    Row { what, changes, says: says.iter().map(|part| (*part).to_owned()).collect() }
}

fn look(row: &Row, verb: &str, (code, expected): (i32, i32), lines: &[Line], problems: &mut Vec<String>) {
    let text: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
    let text = text.join("\n");
    // In a line of JSON a quote is escaped.
    let plain = |line: &Line| line.text.replace("\\\"", "\"").replace("\\\\", "\\");
    let says = |line: &Line| row.says.iter().all(|part| plain(line).contains(part.as_str()));
    if text.contains(PASSWORD) || text.contains("PRIVATE KEY") {
        problems.push(format!("{verb} tells a secret:\n{text}"));
    }
    let telling = lines.iter().filter(|line| says(line)).count();
    let troubled = |line: &&Line| {
        line.stream == Stream::Err
            && !line.text.contains("CONFWARN")
            && (line.text.contains("\"level\":\"WARN\"") || line.text.contains("\"level\":\"ERROR\""))
    };
    let troubled = lines.iter().filter(troubled).count();
    let most = usize::from(verb == "run");
    if code != expected || telling != 1 || troubled > most {
        problems.push(format!(
            "{verb}: exit {code}, expected {expected}; {telling} lines say {:?}; {troubled} warnings and errors:\n{text}",
            row.says
        ));
    }
}
