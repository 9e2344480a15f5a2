//! psql, the other side: one binary `\copy` of a whole file in one transaction.

use std::path::Path;
use std::process::{Command, Stdio};

/// Writes a table's rows into a file.
pub(crate) fn dump(url: &str, file: &Path) {
    run(url, &format!("\\copy orders TO '{}' (FORMAT binary)", file.display()));
}

/// Reads the file into the table; gives the seconds that psql itself says that the command took, commit included, start and connection not.
pub(crate) fn load(url: &str, file: &Path) -> f64 {
    let said = run(url, &format!("\\copy orders FROM '{}' (FORMAT binary)", file.display()));
    let time = said.lines().find_map(|line| line.strip_prefix("Time: ")).expect("psql tells the time");
    let milliseconds = time.split(' ').next().expect("a number in front of the unit");
    milliseconds.parse::<f64>().expect("a number of milliseconds") / 1000.0
}

fn run(url: &str, command: &str) -> String {
    let output = Command::new("psql")
        .args(["--no-psqlrc", "--set=ON_ERROR_STOP=1", "-c", "\\timing on", "-c", command, url])
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .expect("running psql");
    assert!(output.status.success(), "psql: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
