//! What processes cost, from /proc: CPU time on the schedulers' books, memory at its peak.

use std::collections::BTreeMap;
use std::fs;

/// CPU seconds by thread name, and the peak of resident memory, at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample {
    /// Seconds since 1970.
    pub(crate) at: f64,
    pub(crate) threads: BTreeMap<String, f64>,
    pub(crate) peak_mb: f64,
}

/// The threads and the memory of a process; none when it is gone.
pub(crate) fn sample(pid: u32) -> Option<Sample> {
    let mut threads = BTreeMap::new();
    for task in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let read = |file: &str| fs::read_to_string(task.path().join(file)).ok();
        let (Some(name), Some(schedule)) = (read("comm"), read("schedstat")) else { continue };
        let nanos: f64 = schedule.split(' ').next()?.parse().ok()?;
        *threads.entry(name.trim().to_owned()).or_insert(0.0) += nanos / 1e9;
    }
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: f64 = peak.trim().trim_end_matches(" kB").trim().parse().ok()?;
    Some(Sample { at: now(), threads, peak_mb: kilobytes / 1024.0 })
}

/// Seconds since 1970, by the clock that the server's commit times come from.
pub(crate) fn now() -> f64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("a clock after 1970")
        .as_secs_f64()
}

/// CPU seconds by thread within a time, from the samples next to its ends.
pub(crate) fn within(samples: &[Sample], from: f64, to: f64) -> BTreeMap<String, f64> {
    let near = |time: f64| samples.iter().min_by(|a, b| (a.at - time).abs().total_cmp(&(b.at - time).abs()));
    let (Some(first), Some(last)) = (near(from), near(to)) else { return BTreeMap::new() };
    let spent = |(name, seconds): (&String, &f64)| {
        (name.clone(), (seconds - first.threads.get(name).copied().unwrap_or(0.0)).max(0.0))
    };
    last.threads.iter().map(spent).collect()
}

/// CPU seconds of a process and all of its children, those that have ended and were waited for among them.
pub(crate) fn family(pid: u32) -> f64 {
    let own = stat(pid).map_or(0.0, |stat| stat.own + stat.waited_for);
    let children = fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|entry| {
        let child = entry.file_name().to_str()?.parse().ok()?;
        stat(child).filter(|stat| stat.parent == pid).map(|stat| stat.own)
    });
    own + children.sum::<f64>()
}

struct Stat {
    parent: u32,
    own: f64,
    waited_for: f64,
}

fn stat(pid: u32) -> Option<Stat> {
    /// Linux reports in hundredths of a second, whatever the kernel's own tick.
    const TICKS: f64 = 100.0;
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may hold blanks.
    let fields: Vec<&str> = text.rsplit_once(") ")?.1.split(' ').collect();
    let seconds = |index: usize| Some(fields.get(index)?.parse::<f64>().ok()? / TICKS);
    Some(Stat {
        parent: fields.get(1)?.parse().ok()?,
        own: seconds(11)? + seconds(12)?,
        waited_for: seconds(13)? + seconds(14)?,
    })
}

/// How busy the machine is, so that a reader knows what the absolute figures are worth.
pub(crate) fn print_load() {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    eprintln!("load {} on {cores} cores", load.split(' ').take(3).collect::<Vec<_>>().join(" "));
}
