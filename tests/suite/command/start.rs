//! How `run` begins: what refuses ends it with 3, what does not answer is waited for.

use std::net::TcpListener;
use std::time::Duration;

use oncesink_test_support::process::Launch;

use super::bench::{Bench, run};

#[tokio::test]
async fn a_taken_port_names_its_key() {
    let bench = Bench::migrated("port").await;
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = holder.local_addr().unwrap().to_string();
    let file = bench.file().replace("127.0.0.1:0", &address);
    run(&file, "run").await.failed(3, &format!("http.listen: cannot listen on {address}: "));
}

#[tokio::test]
async fn a_server_that_refuses_ends_the_start() {
    let bench = Bench::migrated("refused").await;
    let (_, server) = bench.schema.url().split_once('@').expect("a URL with a user");
    let file = bench.file().replace(bench.schema.url(), &format!("postgres://nobody_of_this_name@{server}"));
    run(&file, "run").await.failed(3, "nobody_of_this_name");
}

#[tokio::test]
async fn silence_is_waited_for_and_sigterm_ends_the_wait_with_0() {
    let bench = Bench::migrated("silent").await;
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let file = bench.file().replace(&bench.kafka.bootstrap().to_owned(), &closed.to_string());
    run(&file, "check").await.failed(3, "Kafka does not answer");
    let process = Launch::new(env!("CARGO_BIN_EXE_oncesink")).file("oncesink.toml", &file).arg("run").start();
    process.wait_for_line(|line| line.text.contains("waiting for "), Duration::from_secs(60)).await;
    process.terminate();
    assert_eq!(process.wait_exit(Duration::from_secs(60)).await, 0);
}
