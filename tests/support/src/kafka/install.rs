//! What a broker needs on disk before its first start: jars, a formatted folder, an archive of loaded classes.
//!
//! All three are made once and cached outside of the tree; the archive takes a start from 5.5 s of CPU to about 3.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::cache;

/// The version that the pom asks for; names the cache's folder.
const VERSION: &str = "4.4.0";

/// Paths of the cached pieces.
#[derive(Debug)]
pub(super) struct Installed {
    pub(super) class_path: String,
    pub(super) formatted: PathBuf,
    /// Absent while the run that makes it is under way.
    pub(super) archive: Option<PathBuf>,
}

/// Installs what is missing, once a process.
pub(super) fn installed() -> &'static Installed {
    static INSTALLED: OnceLock<Installed> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        let jars = cache::entry(&format!("kafka-{VERSION}/jars"), fetch_jars);
        let class_path = class_path(&jars);
        let formatted =
            cache::entry(&format!("kafka-{VERSION}/formatted"), |place| format(&class_path, place));
        let name = format!("kafka-{VERSION}/classes-{:016x}.jsa", java_identity(&class_path));
        let archive = cache::entry(&name, |place| {
            let bare =
                Installed { class_path: class_path.clone(), formatted: formatted.clone(), archive: None };
            super::cluster::record_classes(&bare, place);
        });
        Installed { class_path, formatted, archive: Some(archive) }
    })
}

/// The version of the broker's jar, as installed.
pub fn installed_version() -> String {
    let jar = installed().class_path.rsplit("kafka_2.13-").next().expect("the broker's jar");
    jar.split(".jar").next().expect("a version").to_owned()
}

fn fetch_jars(place: &Path) {
    eprintln!("kafka {VERSION}: fetching the jars by Maven, once");
    let pom = Path::new(env!("CARGO_MANIFEST_DIR")).join("kafka/pom.xml");
    let mut maven = Command::new("mvn");
    maven.args(["--batch-mode", "--quiet", "--file"]).arg(pom);
    maven.args(["dependency:copy-dependencies", "-DincludeScope=runtime"]);
    maven.arg(format!("-DoutputDirectory={}", place.display()));
    run(maven);
}

/// In sorted order and spelled out: the archive is valid for exactly one class path.
fn class_path(jars: &Path) -> String {
    let mut paths: Vec<String> = fs::read_dir(jars)
        .expect("reading the folder of jars")
        .map(|entry| entry.expect("reading the folder of jars").path().display().to_string())
        .collect();
    paths.sort();
    paths.join(":")
}

/// A formatted folder is the same for every cluster but for one file, `meta.properties`, which the broker writes for
/// itself; formatting anew costs a JVM.
fn format(class_path: &str, place: &Path) {
    fs::create_dir_all(place).expect("making the folder to format");
    let properties = place.join("format.properties");
    let text = format!(
        "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:9093\n\
         listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093\n\
         controller.listener.names=CONTROLLER\nlog.dirs={}\n",
        place.display()
    );
    fs::write(&properties, text).expect("writing the properties to format with");
    let mut java = Command::new("java");
    java.args(["-XX:TieredStopAtLevel=1", "-cp", class_path, "kafka.tools.StorageTool", "format"]);
    java.args(["--cluster-id", "b25jZXNpbmstdGVzdHM", "--config"]).arg(&properties);
    run(java);
    fs::remove_file(properties).expect("removing the properties");
    fs::remove_file(place.join("meta.properties")).expect("formatting wrote meta.properties");
}

/// Changes with the JVM and with the jars, both of which an archive of classes is bound to.
fn java_identity(class_path: &str) -> u64 {
    let mut java = Command::new("java");
    java.arg("-version");
    let version = java.output().expect("running java, which Kafka needs").stderr;
    let mut hasher = DefaultHasher::new();
    (version, class_path).hash(&mut hasher);
    hasher.finish()
}

fn run(mut command: Command) {
    let output =
        command.stdin(Stdio::null()).output().unwrap_or_else(|e| panic!("cannot run {command:?}: {e}"));
    assert!(
        output.status.success(),
        "{command:?} failed:\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
