//! What happened in a run of faults, for people.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::{Duration, Instant};

use super::plan::Fault;

/// A process younger than this says nothing of how memory grows: it still loads what it needs.
const GROWN_UP: Duration = Duration::from_secs(15);

/// A process that was not watched for so long after that says nothing either: what is kept for the work at hand comes and
/// goes within seconds.
const WATCHED_FOR: Duration = Duration::from_secs(120);

/// Faults, how long it took to go on, and memory.
#[derive(Default)]
pub struct Tally {
    faults: BTreeMap<Fault, Of>,
    /// Faults of which the cluster has not stored a record since, and from when on that counts.
    waiting: Vec<(Fault, Instant)>,
    memory: BTreeMap<&'static str, Memory>,
}

#[derive(Default)]
struct Of {
    count: u64,
    recovered: Vec<Duration>,
}

/// Sums of a line through points of (age in seconds, megabytes), each process around its own mean.
#[derive(Default)]
struct Memory {
    lives: BTreeMap<u32, Vec<(f64, f64)>>,
    most: f64,
}

impl Tally {
    /// A fault, which lasts until `healed`.
    pub fn fault(&mut self, fault: Fault, healed: Instant) {
        self.faults.entry(fault).or_default().count += 1;
        self.waiting.push((fault, healed));
    }

    /// A record was stored just now.
    pub fn stored(&mut self, now: Instant) {
        let (over, waiting): (Vec<_>, Vec<_>) = self.waiting.drain(..).partition(|(_, healed)| *healed < now);
        self.waiting = waiting;
        for (fault, healed) in over {
            self.faults.entry(fault).or_default().recovered.push(now - healed);
        }
    }

    /// The memory of a process at some age.
    pub fn memory(&mut self, role: &'static str, pid: u32, age: Duration, megabytes: f64) {
        let memory = self.memory.entry(role).or_default();
        memory.most = memory.most.max(megabytes);
        if age >= GROWN_UP {
            memory.lives.entry(pid).or_default().push((age.as_secs_f64(), megabytes));
        }
    }

    /// Faults so far.
    pub fn total(&self) -> u64 {
        self.faults.values().map(|of| of.count).sum()
    }

    /// The whole as a table.
    pub fn table(&self) -> String {
        let mut text = format!("{:<38} {:>6} {:>8} {:>8}\n", "fault", "count", "p50 s", "p99 s");
        let mut all = Vec::new();
        for (fault, of) in &self.faults {
            all.extend(&of.recovered);
            line(&mut text, &fault.to_string(), of.count, &of.recovered);
        }
        line(&mut text, "all: until a record is stored again", self.total(), &all);
        let none = || format!("no slope: none was watched for {} s", WATCHED_FOR.as_secs());
        for (role, memory) in &self.memory {
            let slope = memory.slope().map_or_else(none, |(mb, s)| format!("{mb:+.1} MB/h over {s:.0} s"));
            let _ = writeln!(text, "memory of {role}: {:.0} MB at most, {slope}", memory.most);
        }
        text
    }
}

fn line(text: &mut String, name: &str, count: u64, recovered: &[Duration]) {
    let mut sorted = recovered.to_vec();
    sorted.sort();
    let at = |share: usize| {
        let index = (sorted.len() * share / 100).min(sorted.len().saturating_sub(1));
        sorted.get(index).map_or("-".to_owned(), |time| format!("{:.2}", time.as_secs_f64()))
    };
    let _ = writeln!(text, "{name:<38} {count:>6} {:>8} {:>8}", at(50), at(99));
}

/// For how many seconds a life was watched.
fn watched(life: &[(f64, f64)]) -> f64 {
    life.first().zip(life.last()).map_or(0.0, |(first, last)| last.0 - first.0)
}

impl Memory {
    /// Megabytes in an hour of life, by the processes that were watched for long enough, and the seconds of the longest.
    fn slope(&self) -> Option<(f64, f64)> {
        let (mut up, mut over, mut longest) = (0.0, 0.0, 0.0_f64);
        for life in self.lives.values().filter(|life| watched(life) >= WATCHED_FOR.as_secs_f64()) {
            longest = longest.max(watched(life));
            let mean = |of: fn(&(f64, f64)) -> f64| life.iter().map(of).sum::<f64>() / life.len() as f64;
            let (age, megabytes) = (mean(|point| point.0), mean(|point| point.1));
            up += life.iter().map(|point| (point.0 - age) * (point.1 - megabytes)).sum::<f64>();
            over += life.iter().map(|point| (point.0 - age).powi(2)).sum::<f64>();
        }
        (over > 0.0).then(|| (3600.0 * up / over, longest))
    }
}

#[test]
fn recovery_counts_from_the_end_of_a_fault_and_memory_from_the_life_of_a_process() {
    let (mut tally, begin) = (Tally::default(), Instant::now());
    let at = |ms| begin + Duration::from_millis(ms);
    tally.fault(Fault::KillWorker, at(100));
    tally.fault(Fault::KillWorker, at(3_000));
    tally.stored(at(600));
    tally.stored(at(5_000));
    for (pid, base) in [(1, 10.0), (2, 90.0)] {
        for age in 15..136_u32 {
            tally.memory("workers", pid, Duration::from_secs(age.into()), base + f64::from(age) / 3600.0);
        }
    }
    // A short life, in which memory doubles, does not count.
    tally.memory("workers", 3, Duration::from_secs(15), 10.0);
    tally.memory("workers", 3, Duration::from_secs(100), 20.0);
    tally.memory("coordinators", 4, Duration::from_secs(100), 20.0);
    let table = tally.table();
    assert!(table.contains("memory of coordinators: 20 MB at most, no slope"), "{table}");
    assert!(table.contains("worker killed                               2     2.00     2.00"), "{table}");
    assert!(table.contains("memory of workers: 90 MB at most, +1.0 MB/h over 120 s"), "{table}");
}
