//! The folder outside of the tree where jars, the class archive and the database template are kept between runs.
//!
//! Invariant: an entry is whole or absent. It is made beside its place under a lock and renamed into it, so that two
//! test processes, or one that was killed, never leave half an entry.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// `$XDG_CACHE_HOME/oncesink-tests`, by default in `~/.cache`.
pub(crate) fn folder() -> PathBuf {
    let base = match std::env::var_os("XDG_CACHE_HOME") {
        Some(set) if !set.is_empty() => PathBuf::from(set),
        _ => Path::new(&std::env::var_os("HOME").expect("HOME or XDG_CACHE_HOME must be set")).join(".cache"),
    };
    base.join("oncesink-tests")
}

/// The entry `name`, made by `make` at the path it is given unless it is there already.
pub(crate) fn entry(name: &str, make: impl FnOnce(&Path)) -> PathBuf {
    let place = folder().join(name);
    if place.exists() {
        return place;
    }
    let parent = place.parent().expect("an entry has a folder");
    fs::create_dir_all(parent).expect("making the cache folder");
    let lock = File::create(folder().join("lock")).expect("making the cache's lock file");
    lock.lock().expect("locking the cache");
    if !place.exists() {
        let half = parent.join(crate::unique("half"));
        make(&half);
        fs::rename(&half, &place).expect("renaming a cache entry into its place");
    }
    place
}
