//! Several processes on one file: one claims, the others are told who; what a killed one leaves is nothing but a free file.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use oncesink::Class;
use oncesink::sqlite::{Sqlite, SqliteConfig};
use oncesink::store::{Claim, EventRow, Store};
use oncesink_test_support::eventually;
use sqlx::Executor;

use super::{Bench, claimed, step, wanted};

const DEADLINE: Duration = Duration::from_secs(60);
/// What the child is to do, and where; without it the child's test does nothing.
const VARIABLE: &str = "ONCESINK_TEST_SQLITE_CHILD";

/// This binary once more, in which only [`the_child`] runs.
struct Other(Child);

impl Other {
    /// Starts it, and waits until it says that it is where it should be.
    fn start(bench: &Bench, what: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "store::sqlite::processes::the_child", "--nocapture", "--test-threads=1"])
            .env(VARIABLE, format!("{what}|{}|{}", bench.group, bench.schema.url()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let there = lines.map_while(Result::ok).any(|line| line.contains("the child is there"));
        assert!(there, "the child ended before it was there");
        Self(child)
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    /// SIGKILL; it is gone when this returns.
    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn the_child() {
    let Ok(order) = std::env::var(VARIABLE) else { return };
    let mut words = order.splitn(3, '|');
    let (what, group, url) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
    let bench = Bench { schema: oncesink_test_support::sqlite::File::new("child"), group: group.to_owned() };
    let store = Sqlite::new(SqliteConfig::new(url), group).unwrap();
    let _held;
    if what == "looks" {
        store.status(None).await.unwrap();
    } else if what == "tells" {
        for _ in 0..20 {
            store.record(&event()).await.unwrap();
        }
    } else if what == "commits" {
        // Transaction after transaction, until it is killed in one.
        let claimed = bench.claim(&store, 0).await;
        let (mut session, mut offset) = (store.connect().await.unwrap(), claimed.offset);
        loop {
            let mut tx = store.begin(session, oncesink::Statements::Foreign).await.unwrap();
            let step = step(0, claimed.fence, offset, offset + 2);
            assert_eq!(store.advance(&mut tx, &[step]).await.unwrap(), [true]);
            let insert = format!("INSERT INTO rows VALUES ({offset}), ({offset} + 1)");
            tx.sql().execute(&*insert).await.unwrap();
            store.guard(&mut tx).await.unwrap();
            session = store.commit(tx).await.map_err(|_| "commit").unwrap();
            if offset == claimed.offset {
                println!("the child is there");
            }
            offset += 2;
        }
    } else {
        let fence = bench.claim(&store, 0).await.fence;
        if what == "writes" {
            let mut tx =
                store.begin(store.connect().await.unwrap(), oncesink::Statements::Foreign).await.unwrap();
            assert_eq!(store.advance(&mut tx, &[step(0, fence, 10, 12)]).await.unwrap(), [true]);
            tx.sql().execute("INSERT INTO rows VALUES (10), (11)").await.unwrap();
            store.guard(&mut tx).await.unwrap();
            _held = tx;
        }
    }
    println!("the child is there");
    // Until it is killed, or its parent is gone.
    let _ = std::io::stdin().lines().next();
}

#[tokio::test]
async fn a_second_process_is_told_who_has_the_file_and_verbs_work_beside_it() {
    let bench = Bench::registered("processes_two", 1).await;
    // The bench's own store is gone, and with it the lock of this process.
    let other = Other::start(&bench, "claims");
    let store = bench.store();
    let failures = [
        store.take_possession().await.unwrap_err(),
        store.claim(&bench.identity("a"), &[wanted("t", 0)]).await.unwrap_err(),
        store.claim_waiting(&bench.identity("a"), &wanted("t", 0), true).await.unwrap_err(),
        store.register(&bench.identity("a"), &super::starts("u", 1, 0)).await.unwrap_err(),
    ];
    for failure in failures {
        assert_eq!(failure.class, Class::Fatal, "{failure}");
        let path = bench.schema.path().display().to_string();
        for part in [path.as_str(), &format!("process {} on ", other.pid()), "Stop that one first"] {
            assert!(failure.message.contains(part), "{part:?} is not in {failure}");
        }
    }
    assert_eq!(store.status(None).await.unwrap()[0].epoch, 1);
    store.skip(&wanted("t", 0).place, 10, "test").await.unwrap();
    assert_eq!(store.preflight().await.unwrap().problems, Vec::<String>::new());
    assert_eq!(store.verify().await.unwrap(), "kafka_offsets");

    other.kill();
    // The system let go of the lock with the process.
    assert_eq!(bench.claim(&store, 0).await.offset, 11);
}

#[tokio::test]
async fn a_process_that_only_looks_is_in_nobodys_way() {
    let bench = Bench::registered("processes_looks", 1).await;
    let other = Other::start(&bench, "looks");
    assert_eq!(bench.claim(&bench.store(), 0).await.offset, 10);
    other.kill();
}

fn event() -> EventRow {
    let (place, reason) = (wanted("t", 0).place, "test".to_owned());
    EventRow { place, kind: "rewound", old_offset: None, new_offset: None, reason }
}

#[tokio::test(flavor = "multi_thread")]
async fn beside_a_writer_without_a_pause_nobody_starves() {
    let bench = Bench::registered("processes_starve", 1).await;
    bench.schema.execute("CREATE TABLE copies (n bigint)").await;
    let store = Arc::new(bench.store());
    let fence = bench.claim(&store, 0).await.fence;
    let done = Arc::new(AtomicBool::new(false));
    let writer = tokio::spawn({
        let (store, done) = (Arc::clone(&store), Arc::clone(&done));
        async move {
            let mut session = store.connect().await.unwrap();
            let mut offset = 10;
            // Some tens of milliseconds each, and the next one at once.
            let rows = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) INSERT INTO copies SELECT i FROM n";
            while !done.load(Ordering::SeqCst) {
                let mut tx = store.begin(session, oncesink::Statements::Foreign).await.unwrap();
                assert_eq!(
                    store.advance(&mut tx, &[step(0, fence, offset, offset + 1)]).await.unwrap(),
                    [true]
                );
                tx.sql().execute(rows).await.unwrap();
                store.guard(&mut tx).await.unwrap();
                session = store.commit(tx).await.map_err(|_| "commit").unwrap();
                offset += 1;
            }
            offset
        }
    });
    // Of this process, and of another one, which knows no queue; each call gives up after a second.
    for _ in 0..20 {
        store.record(&event()).await.unwrap();
    }
    Other::start(&bench, "tells").kill();
    done.store(true, Ordering::SeqCst);
    let offset = writer.await.unwrap();
    assert_eq!((bench.events().await.len(), bench.offset(0).await), (40, offset));
    assert!(offset > 15, "the writer starved: {offset}");
}

#[tokio::test]
async fn killed_in_mid_transaction_it_leaves_nothing_and_the_next_claim_reads_on() {
    let bench = Bench::with_rows("processes_killed", 1).await;
    let other = Other::start(&bench, "writes");
    // Meanwhile the holder of the write lock is named by what waits for it.
    let store = bench.store();
    let failure = store.note_state(&wanted("t", 0).place, bench_fence(&store).await, "stopped", None).await;
    let failure = failure.unwrap_err();
    assert!(failure.message.contains(&format!("held by process {}", other.pid())), "{failure}");
    other.kill();
    let claim = eventually(DEADLINE, || async {
        let claims = store.claim(&bench.identity("next"), &[wanted("t", 0)]).await.unwrap();
        (claims[0] != Claim::Busy).then(|| claimed(&claims[0]))
    })
    .await;
    assert_eq!((claim.offset, claim.fence.epoch), (10, 2));
    assert_eq!(bench.schema.count("rows").await, 0);
    assert_eq!(bench.schema.value::<String>("PRAGMA integrity_check").await, "ok");
}

#[tokio::test]
async fn c131_killed_at_any_moment_also_under_commit_rows_and_offset_agree() {
    let bench = Bench::with_rows("processes_commit", 1).await;
    let mut stood = 10;
    for round in 0..12_u64 {
        let other = Other::start(&bench, "commits");
        // Not luck: whatever moment this hits, rows and offset must agree. A transaction takes about a millisecond, half of it its COMMIT.
        std::thread::sleep(Duration::from_micros(round * 870));
        other.kill();
        let offset = bench.offset(0).await;
        let (rows, different): (i64, i64) = (
            bench.schema.count("rows").await,
            bench.schema.value("SELECT count(DISTINCT n) FROM rows").await,
        );
        assert_eq!((rows, different), (offset - 10, offset - 10), "round {round}");
        assert!(offset > stood, "the child said that it had committed");
        stood = offset;
    }
    assert_eq!(bench.schema.value::<String>("PRAGMA integrity_check").await, "ok");
    assert_eq!(bench.claim(&bench.store(), 0).await.offset, stood);
}

async fn bench_fence(store: &Sqlite) -> oncesink::store::Fence {
    store.rows(&[wanted("t", 0).place]).await.unwrap()[0].fence
}

#[tokio::test]
async fn stores_of_one_process_share_the_lock_until_the_last_is_dropped() {
    let bench = Bench::registered("processes_share", 2).await;
    let (first, second) = (bench.store(), bench.store());
    bench.claim(&first, 0).await;
    bench.claim(&second, 1).await;
    drop(first);
    let side = bench.schema.folder().join("rows.db-oncesink");
    let locked = || {
        let file = std::fs::File::open(&side).unwrap();
        file.try_lock().is_err()
    };
    assert!(locked(), "the second store still runs");
    assert!(
        std::fs::read_to_string(&side).unwrap().starts_with(&format!("process {} on ", std::process::id()))
    );
    drop(second);
    assert!(!locked());
    Other::start(&bench, "claims").kill();
}

#[tokio::test]
async fn the_lock_file_of_a_dead_process_is_in_nobodys_way() {
    let bench = Bench::new("processes_dead").await;
    let side = bench.schema.folder().join("rows.db-oncesink");
    std::fs::write(&side, "process 1 on elsewhere, since long ago\nand more\n").unwrap();
    let store = bench.store();
    store.register(&bench.identity("a"), &super::starts("t", 1, 10)).await.unwrap();
    let says = std::fs::read_to_string(&side).unwrap();
    assert!(
        says.starts_with(&format!("process {} on ", std::process::id())) && !says.contains("more"),
        "{says}"
    );
    // The same file by another name is the same file.
    let link = bench.schema.folder().join("link.db");
    std::os::unix::fs::symlink(bench.schema.path(), &link).unwrap();
    let other = Sqlite::new(SqliteConfig::new(format!("sqlite://{}", link.display())), &bench.group).unwrap();
    assert_eq!(bench.claim(&other, 0).await.offset, 10);
}
