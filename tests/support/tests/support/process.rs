//! The helper for the command under test, tried on a shell.

use std::time::Duration;

use oncesink_test_support::process::{Launch, Stream};

const DEADLINE: Duration = Duration::from_secs(30);

fn shell(script: &str) -> Launch {
    Launch::new("/bin/sh").file("script", script).arg("script")
}

#[tokio::test]
async fn lines_and_exit_code_arrive() {
    let (code, lines) = shell("echo out; echo err >&2; printf last; exit 7").run(DEADLINE).await;
    assert_eq!(code, 7);
    let of = |stream| lines.iter().filter(|l| l.stream == stream).map(|l| &*l.text).collect::<Vec<_>>();
    assert_eq!((of(Stream::Out), of(Stream::Err)), (vec!["out", "last"], vec!["err"]));
}

#[tokio::test]
async fn a_line_is_waited_for() {
    let process = shell("echo one; sleep 0.2; echo two; exec sleep 60").start();
    let (at, _) = process.wait_for_line_after(0, |line| line.text == "one", DEADLINE).await;
    process.wait_for_line_after(at + 1, |line| line.text == "two", DEADLINE).await;
    assert!(process.is_running());
    let pid = process.pid();
    drop(process);
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
}

#[tokio::test]
#[should_panic(expected = "all lines:\nonly this")]
async fn a_line_that_never_comes_shows_the_others() {
    let process = shell("echo only this").start();
    process.wait_for_line(|line| line.text == "other", DEADLINE).await;
}

#[tokio::test]
async fn signals_reach_the_child() {
    let process = shell("trap 'echo term; exit 3' TERM; echo ready; while :; do sleep 0.01; done").start();
    process.wait_for_line(|line| line.text == "ready", DEADLINE).await;
    process.freeze();
    process.terminate();
    assert!(process.is_running());
    process.thaw();
    assert_eq!(process.wait_exit(DEADLINE).await, 3);
    assert_eq!(process.text(), "ready\nterm");

    let process = shell("echo ready; while :; do sleep 0.01; done").start();
    process.wait_for_line(|line| line.text == "ready", DEADLINE).await;
    process.kill9();
    assert_eq!(process.wait_exit(DEADLINE).await, 128 + 9);
}
