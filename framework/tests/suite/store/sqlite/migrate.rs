//! Our tables: created once, by one of many, in a file that may not be there, and never over somebody else's.

use oncesink::Class;
use oncesink::sqlite::{Sqlite, SqliteConfig, unfit};
use oncesink::store::Store;
use oncesink::store::operate::Meaning;
use sqlx::Executor;

use super::{Bench, starts, wanted};

const RECIPE: &str = "
    CREATE TABLE kafka_offsets (topic varchar(249), partition_id int, last_offset bigint, PRIMARY KEY (topic, partition_id));
    INSERT INTO kafka_offsets VALUES ('t', 0, 41), ('t', 1, 0)";

#[tokio::test]
async fn the_file_is_made_once_and_again_does_nothing() {
    let bench = Bench::empty("migrate_again");
    let store = bench.store();
    for failure in [store.preflight().await.unwrap_err(), store.connect().await.err().expect("no file")] {
        assert_eq!(failure.class, Class::Fatal);
        assert!(failure.message.contains("there is no such file. Run: oncesink migrate"), "{failure}");
    }
    assert!(!bench.schema.path().exists(), "only migrate makes the file");
    assert_eq!(store.apply(None).await.unwrap(), ["created kafka_offsets (version 1)"]);
    assert_eq!(store.apply(None).await.unwrap(), Vec::<String>::new());
    assert_eq!(store.pending().await.unwrap(), Vec::<i32>::new());
    let found = store.preflight().await.unwrap();
    assert_eq!((found.problems.len(), found.offsets.as_str(), found.role), (0, "kafka_offsets", None));
    assert!(found.server_version.starts_with("SQLite 3."), "{}", found.server_version);
    assert_eq!(store.verify().await.unwrap(), "kafka_offsets");
}

#[tokio::test]
async fn many_at_once_create_one() {
    let bench = Bench::empty("migrate_race");
    let runs = (0..8).map(|_| {
        let store = bench.store();
        tokio::spawn(async move { store.apply(None).await })
    });
    let mut created = 0;
    for run in futures_util::future::join_all(runs).await {
        created += run.unwrap().unwrap().len();
    }
    assert_eq!(created, 1);
}

#[tokio::test]
async fn a_dba_can_apply_what_is_printed() {
    let bench = Bench::empty("migrate_print");
    let store = bench.store();
    let text = store.print();
    assert!(text.contains("CREATE TABLE main.\"kafka_offsets\""), "{text}");
    assert!(!text.contains('@'), "a placeholder is left: {text}");
    assert!(!bench.schema.path().exists(), "printing opens nothing");
    bench.schema.execute(&text).await;
    assert_eq!(store.apply(None).await.unwrap(), Vec::<String>::new());
    assert_eq!(store.preflight().await.unwrap().problems, Vec::<String>::new());
}

#[tokio::test]
async fn two_tables_of_offsets_may_stand_in_one_file() {
    let bench = Bench::new("migrate_two").await;
    let config = SqliteConfig::new(bench.schema.url()).with_offsets("Other offsets");
    let store = Sqlite::new(config, &bench.group).unwrap();
    assert!(store.verify().await.unwrap_err().message.contains("Other offsets: no such table"));
    assert_eq!(store.apply(None).await.unwrap(), ["created Other offsets (version 1)"]);
    assert_eq!(store.preflight().await.unwrap().problems, Vec::<String>::new());
    store.register(&bench.identity("a"), &starts("t", 1, 5)).await.unwrap();
    assert_eq!(bench.schema.count("kafka_offsets").await, 0);
    assert_eq!(bench.schema.count("\"Other offsets\"").await, 1);
    // SQLite takes names that differ in case for the same table.
    let config = SqliteConfig::new(bench.schema.url()).with_offsets("KAFKA_offsets");
    assert_eq!(Sqlite::new(config, "g").unwrap().apply(None).await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn the_old_recipes_table_is_asked_about_and_taken_over() {
    for (meaning, expected) in [(Meaning::Next, [41, 0]), (Meaning::Processed, [42, 1])] {
        let bench = Bench::empty("migrate_adopt");
        bench.schema.execute(RECIPE).await;
        let store = bench.store();
        let failure = store.apply(None).await.unwrap_err();
        assert_eq!(failure.class, Class::Fatal);
        assert!(failure.message.contains("--adopt next|processed --group G"), "{failure}");
        assert!(store.preflight().await.unwrap().problems[0].contains("--adopt"));
        assert_eq!(bench.schema.count("kafka_offsets").await, 2);

        let done = store.apply(Some(meaning)).await.unwrap();
        assert_eq!(done.len(), 3, "{done:?}");
        let offsets: Vec<i64> =
            bench.schema.column("SELECT last_offset FROM kafka_offsets ORDER BY partition_id").await;
        assert_eq!(offsets, expected);
        let old: Vec<i64> = bench
            .schema
            .column("SELECT last_offset FROM kafka_offsets_before_oncesink ORDER BY partition_id")
            .await;
        assert_eq!(old, [41, 0]);
        assert_eq!(bench.events().await, ["adopted", "adopted"]);
        assert_eq!(store.preflight().await.unwrap().problems, Vec::<String>::new());
        assert_eq!(store.apply(Some(meaning)).await.unwrap_err().class, Class::Fatal, "adopted twice");
        store.register(&bench.identity("a"), &starts("t", 3, 100)).await.unwrap();
        let claims = store
            .claim(&bench.identity("a"), &[wanted("t", 0), wanted("t", 1), wanted("t", 2)])
            .await
            .unwrap();
        let offsets: Vec<i64> = claims.iter().map(|claim| super::claimed(claim).offset).collect();
        assert_eq!(offsets, [expected[0], expected[1], 100]);
    }
}

#[tokio::test]
async fn a_failed_adoption_leaves_everything_as_it_was() {
    // An offset that cannot be, and text where SQLite lets a column of numbers hold it.
    for odd in ["('t', 2, -1)", "('t', 2, 'abc')"] {
        let bench = Bench::empty("migrate_failed");
        bench.schema.execute(RECIPE).await;
        bench.schema.execute(&format!("INSERT INTO kafka_offsets VALUES {odd}")).await;
        bench.store().apply(Some(Meaning::Next)).await.unwrap_err();
        assert_eq!(bench.schema.count("kafka_offsets").await, 3);
        assert_eq!(bench.schema.count("sqlite_schema WHERE type = 'table'").await, 1);
    }
}

#[tokio::test]
async fn a_strangers_table_is_not_ours() {
    let bench = Bench::empty("migrate_stranger");
    bench.schema.execute("CREATE TABLE kafka_offsets (id int)").await;
    for adopt in [None, Some(Meaning::Next)] {
        let failure = bench.store().apply(adopt).await.unwrap_err();
        assert_eq!(failure.class, Class::Fatal);
        assert!(failure.message.contains("choose another name, offsets = \"table\""), "{failure}");
    }
    assert!(bench.store().preflight().await.unwrap().problems[0].contains("choose another name"));
}

#[tokio::test]
async fn each_problem_names_the_object_and_what_helps() {
    let bench = Bench::new("migrate_problems").await;
    bench.schema.execute("DROP TABLE oncesink_topics; DROP TABLE oncesink_dead_letters").await;
    let problems = bench.store().preflight().await.unwrap().problems;
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].starts_with("oncesink_topics: no such table. Run: oncesink migrate"), "{problems:?}");
    assert!(problems[1].starts_with("oncesink_dead_letters: no such table"), "{problems:?}");

    let bench = Bench::new("migrate_newer").await;
    bench
        .schema
        .execute("INSERT INTO oncesink_migrations (offsets_table, version) VALUES ('kafka_offsets', 99)")
        .await;
    let problems = bench.store().preflight().await.unwrap().problems;
    assert!(problems[0].contains("at version 99, written by a newer release"), "{problems:?}");
}

#[tokio::test]
async fn a_place_or_a_file_that_cannot_be_is_refused_with_the_remedy() {
    let bench = Bench::empty("migrate_place");
    let at = |name: &str| {
        let path = bench.schema.folder().join(name);
        Sqlite::new(SqliteConfig::new(format!("sqlite://{}", path.display())), "g").unwrap()
    };
    std::fs::write(
        bench.schema.folder().join("text.db"),
        "this is not a database, and long enough to tell".repeat(50),
    )
    .unwrap();
    std::fs::create_dir(bench.schema.folder().join("folder.db")).unwrap();
    for (name, says) in [
        ("absent/rows.db", "Check that its folder is there"),
        ("text.db", "Name another file, or check what this one is"),
        ("folder.db", "Check that its folder is there"),
    ] {
        let failure = at(name).apply(None).await.unwrap_err();
        assert_eq!(failure.class, Class::Fatal, "{name}: {failure}");
        assert!(failure.message.contains(says) && failure.message.contains(name), "{name}: {failure}");
    }
    for (url, offsets, group) in [
        ("sqlite::memory:", None, "g"),
        ("sqlite:x.db?mode=ro", None, "g"),
        ("sqlite:x.db", Some("ops.kafka_offsets"), "g"),
        ("sqlite:x.db", None, ""),
    ] {
        let config = SqliteConfig { offsets: offsets.map(str::to_owned), ..SqliteConfig::new(url) };
        assert_eq!(Sqlite::new(config, group).err().expect("refused").class, Class::Fatal, "{url}");
    }
}

#[tokio::test]
async fn targets_that_are_no_table_of_the_file_are_known() {
    let bench = Bench::new("migrate_unfit").await;
    bench
        .schema
        .execute(
            "CREATE TABLE good (n int); CREATE TABLE hidden (n int);
             CREATE VIEW seen AS SELECT * FROM good;
             CREATE VIRTUAL TABLE found USING fts5 (words)",
        )
        .await;
    let store = bench.store();
    let mut tx = store.begin(store.connect().await.unwrap(), oncesink::Statements::Foreign).await.unwrap();
    tx.sql().execute("CREATE TEMPORARY TABLE hidden (n int)").await.unwrap();
    for (table, expected) in [
        ("good", None),
        ("GOOD", None),
        ("hidden", Some("is a temporary table")),
        ("seen", Some("is a view")),
        ("found", Some("is a virtual table")),
        ("absent", Some("no such table")),
    ] {
        match (expected, unfit(&mut tx, table).await.unwrap()) {
            (None, None) => {}
            (Some(expected), Some(problem)) => assert!(problem.contains(expected), "{table}: {problem}"),
            (expected, problem) => panic!("{table}: {problem:?} instead of {expected:?}"),
        }
    }
}
