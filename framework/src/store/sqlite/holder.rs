//! Who holds the write lock of a file, for people: as far as the system tells, without touching the file.
//!
//! Must not: open the database, its log or its index (see `lock.rs`); only the kernel's own list of locks is read.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The byte of the log's index on which SQLite locks for writing.
const WRITE_LOCK: u64 = 120;

/// The process that holds the write lock now, by the kernel's list.
pub(super) fn write_lock_holder(database: &Path) -> Option<String> {
    let path = std::fs::canonicalize(database).ok()?;
    let mut index = path.into_os_string();
    index.push("-shm");
    let inode = std::fs::metadata(index).ok()?.ino();
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let pid = locks.lines().find_map(|line| holder_in(line, inode))?;
    if pid == u64::from(std::process::id()) {
        return Some("this process itself".to_owned());
    }
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok();
    Some(match name.as_deref().map(str::trim) {
        Some(name) if !name.is_empty() => format!("process {pid} ({name})"),
        _ => format!("process {pid}"),
    })
}

/// Reads `3: POSIX  ADVISORY  WRITE 4711 08:01:1234 120 120`.
fn holder_in(line: &str, inode: u64) -> Option<u64> {
    let mut words = line.split_whitespace().skip(1);
    if words.next()? != "POSIX" {
        return None;
    }
    if words.nth(1)? != "WRITE" {
        return None;
    }
    let pid = words.next()?.parse().ok()?;
    let of: u64 = words.next()?.rsplit(':').next()?.parse().ok()?;
    let first: u64 = words.next()?.parse().ok()?;
    let last = words.next()?;
    let covers =
        first <= WRITE_LOCK && (last == "EOF" || last.parse().is_ok_and(|last: u64| WRITE_LOCK <= last));
    (of == inode && covers).then_some(pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_list_names_the_holder_of_the_write_byte() {
        let held = |line| holder_in(line, 1234);
        assert_eq!(held("3: POSIX  ADVISORY  WRITE 4711 08:01:1234 120 120"), Some(4711));
        assert_eq!(held("3: POSIX  ADVISORY  WRITE 4711 08:01:1234 120 122"), Some(4711));
        for other in [
            "3: POSIX  ADVISORY  WRITE 4711 08:01:1235 120 120",
            "3: POSIX  ADVISORY  READ 4711 08:01:1234 120 120",
            "3: POSIX  ADVISORY  WRITE 4711 08:01:1234 124 124",
            "3: -> POSIX  ADVISORY  WRITE 4711 08:01:1234 120 120",
            "3: FLOCK  ADVISORY  WRITE 4711 08:01:1234 0 EOF",
            "",
        ] {
            assert_eq!(held(other), None, "{other}");
        }
    }
}
