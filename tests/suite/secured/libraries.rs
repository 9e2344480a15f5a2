//! What the command needs of the system when it runs, and how open connections are said to be.

use std::process::Command;

use crate::rig::{PATIENCE, Rig};

/// What every system has, then the libraries of the README: zlib and OpenSSL.
const NAMED: [&str; 11] = [
    "linux-vdso",
    "ld-linux",
    "libc.",
    "libm.",
    "libgcc_s.",
    "libpthread.",
    "libdl.",
    "librt.",
    "libz.",
    "libssl.",
    "libcrypto.",
];

#[test]
fn only_libraries_that_the_readme_names_are_linked() {
    let output = Command::new("ldd").arg(env!("CARGO_BIN_EXE_oncesink")).output().expect("running ldd");
    let listed = String::from_utf8_lossy(&output.stdout).into_owned();
    let libraries: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    // The test can see what is linked: these two always are.
    assert!(libraries.iter().any(|library| library.starts_with("libssl.")), "{listed}");
    assert!(libraries.iter().any(|library| library.starts_with("libc.")), "{listed}");
    for library in libraries {
        let name = library.rsplit('/').next().unwrap_or(library);
        assert!(
            NAMED.iter().any(|named| name.starts_with(named)),
            "{name} is linked and the README does not name it"
        );
    }
    let readme = include_str!("../../../README.md");
    assert!(readme.contains("zlib and OpenSSL"), "the README names both");
}

/// Positive control for what the secured servers' test reads out of `check`.
#[tokio::test(flavor = "multi_thread")]
async fn connections_without_tls_are_said_to_be_open() {
    let rig = Rig::new("open", 1).await;
    let (code, lines) = rig.command(&["check"]).run(PATIENCE).await;
    assert_eq!(code, 0, "{lines:#?}");
    for what in ["kafka ", "target "] {
        let open = |text: &str| text.starts_with(what) && text.contains("; not encrypted");
        assert!(lines.iter().any(|line| open(&line.text)), "{what}: {lines:#?}");
    }
}
