//! Data folders in the system's temporary folder, whose names carry the pid of their owner.
//!
//! Invariant: a folder is removed by its owner when it ends, or, when the owner was killed, by the next process that
//! makes one; a folder of a living process is never touched.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Once;

const PREFIX: &str = "oncesink-tests-";

/// A folder that is removed with the value.
#[derive(Debug)]
pub(crate) struct Workdir(PathBuf);

impl Workdir {
    pub(crate) fn new(stem: &str) -> Self {
        static SWEEP: Once = Once::new();
        SWEEP.call_once(sweep);
        let name = format!("{PREFIX}{}-{}", std::process::id(), crate::unique(stem));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("making a work folder");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Workdir {
    fn drop(&mut self) {
        // Somebody who could not remove the folder now leaves it to the next sweep.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn sweep() {
    let Ok(entries) = fs::read_dir(std::env::temp_dir()) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next());
        if let Some(owner) = owner
            && !Path::new("/proc").join(owner).exists()
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
