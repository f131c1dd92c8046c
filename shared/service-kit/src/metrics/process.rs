//! What the kernel reports about this process, under the names that Prometheus's own clients use.

use super::MetricDefinition as Metric;
use super::Unit::{Bytes, Count, Seconds};
use super::frame::{header, write_series};

/// The metrics of a process. Without `/proc` they have no values.
pub const DEFINITIONS: &[Metric] = &[
    Metric::counter(
        "process_cpu_seconds_total",
        Seconds,
        &[],
        "Processor time of the process, its children left out.",
    ),
    Metric::gauge("process_resident_memory_bytes", Bytes, &[], "Memory of the process that is in RAM."),
    Metric::gauge("process_open_fds", Count, &[], "Open file descriptors."),
    Metric::gauge("process_max_fds", Count, &[], "File descriptors that the process may open."),
    Metric::gauge("process_threads", Count, &[], "Threads of the process."),
    Metric::gauge(
        "process_start_time_seconds",
        Seconds,
        &[],
        "When the process started, since the Unix epoch.",
    ),
];

/// The state of this process now.
pub(super) fn render(out: &mut String) {
    let values = read();
    for (definition, value) in DEFINITIONS.iter().zip(values) {
        if let Some(value) = value {
            header(out, definition.name, Some(definition));
            write_series(out, definition.name, &[], value);
        }
    }
}

/// The values, in the order of the definitions.
fn read() -> [Option<f64>; 6] {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks = rustix::param::clock_ticks_per_second() as f64;
    let of_stat = |field| field_of(&stat, field);
    let cpu = of_stat(14).zip(of_stat(15)).map(|(user, system)| (user + system) / ticks);
    let resident = of_stat(24).map(|pages| pages * rustix::param::page_size() as f64);
    // One of them is the folder's own.
    let open = std::fs::read_dir("/proc/self/fd").ok().map(|fds| fds.count().saturating_sub(1) as f64);
    let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.map(|most| most as f64);
    let booted = std::fs::read_to_string("/proc/stat").ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("btime "))?;
        line.trim().parse::<f64>().ok()
    });
    let started = booted.zip(of_stat(22)).map(|(booted, after)| booted + after / ticks);
    [cpu, resident, open, most, of_stat(20), started]
}

/// A field of proc_pid_stat(5), numbered from 1. The second is a name in parentheses that may contain anything.
fn field_of(stat: &str, number: usize) -> Option<f64> {
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(number.checked_sub(3)?)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_past_any_name() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 100 0 0 0 250 13 0 0 20 0 2 0 99 4096 12 1";
        assert_eq!([14, 15, 20, 22, 24].map(|n| field_of(stat, n)), [250.0, 13.0, 2.0, 99.0, 12.0].map(Some));
        assert_eq!(field_of("7", 14), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_knows_itself() {
        let values = read().map(Option::unwrap);
        assert!(values[1] > 100_000.0 && values[2] >= 3.0 && values[4] >= 1.0, "{values:?}");
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
        assert!((0.0..3.0 * 3600.0).contains(&(now - values[5])), "{values:?} at {now}");
    }
}
