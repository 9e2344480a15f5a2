//! `servers -- COMMAND...`: starts one Kafka and one Postgres, names them in the environment, runs the command, ends
//! them, and exits with the command's status.
//!
//! Also tells the versions, as the running servers report them, alone on a line.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode};

use oncesink_test_support::kafka::{self, KafkaCluster, KafkaOptions};
use oncesink_test_support::postgres::PostgresServer;
use oncesink_test_support::{KAFKA_VARIABLE, POSTGRES_VARIABLE};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).skip_while(|argument| argument == "--");
    let Some(program) = arguments.next() else {
        eprintln!("usage: servers -- COMMAND [ARGUMENT...]");
        return ExitCode::from(2);
    };
    let mut command = Command::new(program);
    command.args(arguments);

    let (kafka, postgres) = tokio::join!(KafkaCluster::start(KafkaOptions::one()), PostgresServer::start());
    println!("versions: kafka {}, postgres {}", kafka::installed_version(), postgres.version().await);
    command.env(KAFKA_VARIABLE, kafka.bootstrap()).env(POSTGRES_VARIABLE, postgres.url());
    let status = command.status();
    drop((kafka, postgres));
    match status {
        // As a shell tells it: 128 and the signal for a command that a signal ended.
        Ok(status) => {
            let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
            ExitCode::from(u8::try_from(code).unwrap_or(1))
        }
        Err(e) => {
            eprintln!("cannot run {}: {e}", command.get_program().display());
            ExitCode::from(127)
        }
    }
}
