//! One process a file and one writer a process, and what is said to those who want more.

use super::rig::Rig;

#[tokio::test(flavor = "multi_thread")]
async fn a_second_process_is_told_who_has_the_file_and_does_no_harm_on_sqlite() {
    let mut rig = Rig::new("second", 1).await;
    rig.produce(100).await;
    let first = rig.run();
    rig.rows_reach(1).await;
    let second = rig.verb("run").await;
    second.failed(3, &format!("process {} on ", first.pid()));
    rig.produce(100).await;
    rig.rows_reach(200).await;
    first.kill9();
    rig.produce(100).await;
    rig.verb("run --until-end").await.done();
    rig.each_once().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_one_writer_is_refused_where_it_is_written_on_sqlite() {
    let mut rig = Rig::bare("writers", 1).await;
    rig.sink_lines = "writers = 2".to_owned();
    rig.verb("check").await.failed(2, "sinks.ledger.writers: kind = \"sqlite\" has one writer");
    rig.sink_lines = "writers = 1".to_owned();
    rig.verb("migrate").await.done();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_holds_rows_needs_a_word_before_a_first_pass_on_sqlite() {
    let mut rig = Rig::new("holds", 1).await;
    rig.file.execute(&format!("INSERT INTO \"{}\" (seq) VALUES (-1)", rig.topic)).await;
    rig.produce(10).await;
    rig.verb("run --until-end").await.failed(3, "into_rows");
    rig.sink_lines = "into_rows = \"accept\"".to_owned();
    rig.verb("run --until-end").await.done();
    assert_eq!(rig.count().await, 11);
}
