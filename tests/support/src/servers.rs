//! One Kafka and one Postgres for all tests of a process, or of a whole run.
//!
//! Invariant: they belong to the process, not to the runtime of the test that happened to come first; they end with
//! the process. Foreign ones, named by two variables, are used and never ended.

use std::env;
use std::sync::{Mutex, Once, OnceLock, PoisonError};
use std::thread;

use crate::kafka::{Kafka, KafkaCluster, KafkaOptions};
use crate::postgres::{Postgres, PostgresServer};

/// The variable that names running brokers: `host:port`, comma-separated.
pub const KAFKA_VARIABLE: &str = "ONCESINK_TEST_KAFKA";
/// The variable that names a running Postgres: a URL.
pub const POSTGRES_VARIABLE: &str = "ONCESINK_TEST_POSTGRES";

/// The servers that tests share. They may not stop, freeze or configure them: topics and schemas of their own only.
#[derive(Debug)]
pub struct Servers {
    kafka: Kafka,
    postgres: Postgres,
}

impl Servers {
    /// The shared servers, started by the first caller unless the variables name running ones.
    pub async fn shared() -> &'static Self {
        static SHARED: OnceLock<Servers> = OnceLock::new();
        tokio::task::spawn_blocking(|| SHARED.get_or_init(Self::find_or_start))
            .await
            .expect("starting the shared servers")
    }

    fn find_or_start() -> Self {
        let (kafka, postgres) = thread::scope(|scope| {
            let kafka = scope.spawn(|| named(KAFKA_VARIABLE).unwrap_or_else(own_kafka));
            let postgres = named(POSTGRES_VARIABLE).unwrap_or_else(own_postgres);
            (kafka.join().expect("starting Kafka"), postgres)
        });
        Self { kafka: Kafka::connect(&kafka), postgres: Postgres::connect(&postgres) }
    }

    /// The shared Kafka.
    pub fn kafka(&self) -> &Kafka {
        &self.kafka
    }

    /// The shared Postgres.
    pub fn postgres(&self) -> &Postgres {
        &self.postgres
    }
}

/// Servers that this process started for itself, to be ended when it ends.
static OWN_KAFKA: Mutex<Option<KafkaCluster>> = Mutex::new(None);
static OWN_POSTGRES: Mutex<Option<PostgresServer>> = Mutex::new(None);

fn named(variable: &str) -> Option<String> {
    env::var(variable).ok().filter(|value| !value.is_empty())
}

fn own_kafka() -> String {
    end_at_exit();
    let cluster = KafkaCluster::start_blocking(&KafkaOptions::one());
    let bootstrap = cluster.bootstrap().to_owned();
    *OWN_KAFKA.lock().expect("the lock of our Kafka") = Some(cluster);
    bootstrap
}

fn own_postgres() -> String {
    end_at_exit();
    let server = PostgresServer::start_blocking();
    let url = server.url().to_owned();
    *OWN_POSTGRES.lock().expect("the lock of our Postgres") = Some(server);
    url
}

/// Statics are not dropped. Without this the kernel would still end the servers, but their folders would stay.
fn end_at_exit() {
    extern "C" fn end() {
        drop(OWN_KAFKA.lock().unwrap_or_else(PoisonError::into_inner).take());
        drop(OWN_POSTGRES.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
    static REGISTERED: Once = Once::new();
    // SAFETY: `end` is a function for the whole life of the process and does not unwind.
    REGISTERED.call_once(|| unsafe {
        libc::atexit(end);
    });
}
