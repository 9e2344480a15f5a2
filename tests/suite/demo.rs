//! `oncesink demo` into SQLite, as a stranger runs it, with fewer orders.

use std::fs;
use std::path::{Path, PathBuf};

use oncesink_test_support::eventually_within;
use oncesink_test_support::process::{Launch, Line, Stream};

use crate::rig::PATIENCE;

fn demo(args: &[&str]) -> Launch {
    Launch::new(env!("CARGO_BIN_EXE_oncesink")).arg("demo").args(args.iter().copied())
}

fn text(lines: &[Line], stream: Stream) -> String {
    lines.iter().filter(|line| line.stream == stream).map(|line| line.text.clone() + "\n").collect()
}

/// Figures, with the blanks in front of them, and the words that depend on one.
fn masked(text: &str) -> String {
    let mut masked = String::new();
    for letter in text.replace("the same kills", "9 kills").chars() {
        match letter {
            '0'..='9' | ',' if masked.ends_with('N') => {}
            '0'..='9' => {
                masked.truncate(masked.trim_end_matches(' ').len() + usize::from(masked.ends_with(' ')));
                masked.push('N');
            }
            other => masked.push(other),
        }
    }
    masked
}

/// The processes that have this working folder.
fn processes_in(folder: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir("/proc").expect("processes").filter_map(Result::ok).map(|entry| entry.path());
    all.filter(|process| fs::read_link(process.join("cwd")).is_ok_and(|there| there == folder)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_the_table_has_its_shape_and_the_file_can_be_looked_into() {
    let process = demo(&["--orders", "3000", "--kills", "5"]).start();
    let code = process.wait_exit(PATIENCE).await;
    let out = text(&process.lines(), Stream::Out);
    assert_eq!(code, 0, "{}", process.text());
    assert_eq!(
        masked(&out),
        "mock Kafka in this process: topic orders, N partitions, N orders.  SQLite demo.db: no key that could hide a duplicate\n\
         oncesink  ████████████████████ N/N N kills with SIGKILL, N of them inside a transaction\n\
         naive     ████████████████████ N/N N kills; writes rows, then commits to Kafka\n\
         \u{20}             rows   missing  duplicates\n\
         oncesink N N N\n\
         naive N N N      <- what the usual order of commits costs; also proves that this count can see it\n\
         look: oncesink demo query \"SELECT * FROM kafka_offsets\"\n"
    );
    let oncesink = out.lines().rfind(|line| line.starts_with("oncesink")).expect("a line");
    assert_eq!(oncesink.split_whitespace().collect::<Vec<_>>(), ["oncesink", "3,000", "0", "0"]);

    let query = |sql: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_oncesink"));
        command.current_dir(process.folder()).args(["demo", "query", sql]).output().expect("a query")
    };
    let offsets = query("SELECT topic, sum(last_offset) AS reached FROM kafka_offsets GROUP BY topic");
    assert_eq!(String::from_utf8_lossy(&offsets.stdout), "topic   reached\norders  3000\n");
    let refused = query("DELETE FROM orders");
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert_eq!(String::from_utf8_lossy(&query("SELECT count(*) FROM orders").stdout), "count(*)\n3000\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_a_file_that_no_demo_made_is_left_alone() {
    for (name, text) in [("demo.db", "mine"), ("demo-naive.db", "mine"), ("demo.toml", "[kafka]\n")] {
        let launch = demo(&[]).file(name, text);
        let process = launch.start();
        assert_eq!(process.wait_exit(PATIENCE).await, 3, "{}", process.text());
        assert!(process.text().contains(&format!("{name} is there already and no demo made it")));
        let names: Vec<_> =
            fs::read_dir(process.folder()).expect("a folder").filter_map(Result::ok).collect();
        assert_eq!(names.len(), 1, "{names:?}");
        assert_eq!(fs::read_to_string(process.folder().join(name)).expect("the file"), text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_the_children_end_with_the_demo() {
    for interrupted in [true, false] {
        let process = demo(&["--orders", "60000"]).start();
        let folder = process.folder().canonicalize().expect("a folder");
        // The demo and both sides.
        eventually_within(PATIENCE, || async { processes_in(&folder).len() }, |count| *count >= 3).await;
        if interrupted {
            process.interrupt();
        } else {
            process.kill9();
        }
        eventually_within(PATIENCE, || async { processes_in(&folder).len() }, |count| *count == 0).await;
    }
}
