//! Which faults come, in which order and at which intervals: a function of the seed alone.

use std::fmt;
use std::time::Duration;

use domain::seed::SplitMix64;

/// Shortest and longest time between two faults, in milliseconds.
const GAP_MS: (u64, u64) = (100, 900);

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    KillWorker,
    KillAllWorkers,
    KillCoordinator,
    KillServer,
    KillEvaluator,
    StopWorker,
    StopCoordinator,
    StopServer,
    StopRedis,
    StopEvaluator,
    TermWorker,
    TermCoordinator,
    TermServer,
    TermRedis,
    TermEvaluator,
    RestartRedis,
    FlushRedis,
    CutRedis,
    FailOver,
    ClockOfRedis,
    ClockOfCoordinator,
    CutCoordinators,
    FullDisk,
    FullSpool,
    ReadOnlyDisk,
    ServerThrottles,
    ServerLies,
    ServerRefuses,
    PausesRace,
    CancelsRace,
    ExtensionsRace,
    RetriesRace,
    RemovalsRace,
    SubmissionsRace,
    ArchivesRace,
    OtherQueue,
    OlderQueue,
    FlipBit,
    CutTail,
    LoseSegment,
    OlderCopy,
}

impl Fault {
    /// Every class of faults.
    pub const ALL: [Self; 41] = [
        Self::KillWorker,
        Self::KillAllWorkers,
        Self::KillCoordinator,
        Self::KillServer,
        Self::KillEvaluator,
        Self::StopWorker,
        Self::StopCoordinator,
        Self::StopServer,
        Self::StopRedis,
        Self::StopEvaluator,
        Self::TermWorker,
        Self::TermCoordinator,
        Self::TermServer,
        Self::TermRedis,
        Self::TermEvaluator,
        Self::RestartRedis,
        Self::FlushRedis,
        Self::CutRedis,
        Self::FailOver,
        Self::ClockOfRedis,
        Self::ClockOfCoordinator,
        Self::CutCoordinators,
        Self::FullDisk,
        Self::FullSpool,
        Self::ReadOnlyDisk,
        Self::ServerThrottles,
        Self::ServerLies,
        Self::ServerRefuses,
        Self::PausesRace,
        Self::CancelsRace,
        Self::ExtensionsRace,
        Self::RetriesRace,
        Self::RemovalsRace,
        Self::SubmissionsRace,
        Self::ArchivesRace,
        Self::OtherQueue,
        Self::OlderQueue,
        Self::FlipBit,
        Self::CutTail,
        Self::LoseSegment,
        Self::OlderCopy,
    ];

    /// Those that come more often: they leave the others running.
    const MORE: [Self; 12] = [
        Self::KillWorker,
        Self::KillWorker,
        Self::KillCoordinator,
        Self::KillServer,
        Self::KillEvaluator,
        Self::KillEvaluator,
        Self::KillEvaluator,
        Self::StopEvaluator,
        Self::StopEvaluator,
        Self::TermEvaluator,
        Self::TermEvaluator,
        Self::TermWorker,
    ];

    /// What it concerns.
    pub fn area(self) -> Area {
        match self {
            Self::StopRedis
            | Self::TermRedis
            | Self::RestartRedis
            | Self::FlushRedis
            | Self::CutRedis
            | Self::FailOver
            | Self::ClockOfRedis => Area::Redis,
            Self::FullDisk | Self::FullSpool | Self::ReadOnlyDisk => Area::Disks,
            Self::PausesRace
            | Self::CancelsRace
            | Self::ExtensionsRace
            | Self::RetriesRace
            | Self::RemovalsRace
            | Self::SubmissionsRace
            | Self::ArchivesRace => Area::Commands,
            Self::OtherQueue | Self::OlderQueue => Area::Queues,
            Self::FlipBit | Self::CutTail | Self::LoseSegment | Self::OlderCopy => Area::Records,
            _ => Area::Processes,
        }
    }
}

/// What a fault concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Area {
    /// Processes of the cluster, and the lines between them.
    Processes,
    Redis,
    /// Room for records and spools.
    Disks,
    /// Commands of several people at once.
    Commands,
    /// Which queue coordinators serve.
    Queues,
    /// What the record store holds.
    Records,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::KillWorker => "worker killed",
            Self::KillAllWorkers => "all workers killed",
            Self::KillCoordinator => "coordinator killed",
            Self::KillServer => "server killed",
            Self::KillEvaluator => "evaluation process killed",
            Self::StopWorker => "worker stopped beyond its lease",
            Self::StopCoordinator => "coordinator stopped beyond a lease",
            Self::StopServer => "server hangs",
            Self::StopRedis => "Redis stopped beyond a lease",
            Self::StopEvaluator => "evaluation process stopped",
            Self::TermWorker => "worker terminated",
            Self::TermCoordinator => "coordinator terminated",
            Self::TermServer => "server terminated",
            Self::TermRedis => "Redis terminated",
            Self::TermEvaluator => "evaluation process terminated",
            Self::RestartRedis => "Redis killed and started again",
            Self::FlushRedis => "Redis flushed",
            Self::CutRedis => "Redis cut off",
            Self::FailOver => "failover by Sentinel that loses writes",
            Self::ClockOfRedis => "clock of Redis set",
            Self::ClockOfCoordinator => "clock of a coordinator set",
            Self::CutCoordinators => "coordinators cut from workers",
            Self::FullDisk => "disk of records full",
            Self::FullSpool => "disk of workers full",
            Self::ReadOnlyDisk => "disk of records read-only",
            Self::ServerThrottles => "server throttles",
            Self::ServerLies => "server lies",
            Self::ServerRefuses => "server refuses",
            Self::PausesRace => "pauses and resumptions race",
            Self::CancelsRace => "cancellations and resumptions race",
            Self::ExtensionsRace => "extensions race",
            Self::RetriesRace => "retries race",
            Self::RemovalsRace => "removals race with other commands",
            Self::SubmissionsRace => "submissions of one benchmark race",
            Self::ArchivesRace => "archives made while records come",
            Self::OtherQueue => "coordinator with another queue",
            Self::OlderQueue => "older queue comes back",
            Self::FlipBit => "bit of a record log flipped",
            Self::CutTail => "tail of a record log cut",
            Self::LoseSegment => "segment of a record log lost",
            Self::OlderCopy => "records restored from an older copy",
        })
    }
}

/// A fault of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// What.
    pub fault: Fault,
    /// Which of those that it could hit.
    pub pick: usize,
    /// How long after the one before.
    pub gap: Duration,
}

/// The faults of a seed, without end: decks of all classes, each shuffled, so that a short run meets every class too.
pub fn plan(seed: u64) -> impl Iterator<Item = Planned> {
    let mut random = SplitMix64::new(seed);
    let mut deck: Vec<Fault> = Vec::new();
    std::iter::from_fn(move || {
        if deck.is_empty() {
            deck.extend(Fault::ALL.iter().chain(&Fault::MORE));
            for last in (1..deck.len()).rev() {
                deck.swap(last, random.next_u64() as usize % (last + 1));
            }
        }
        let fault = deck.pop()?;
        let gap = GAP_MS.0 + random.next_u64() % (GAP_MS.1 - GAP_MS.0);
        Some(Planned { fault, pick: random.next_u64() as usize, gap: Duration::from_millis(gap) })
    })
}

#[test]
fn a_seed_repeats_its_plan_and_every_deck_has_every_class() {
    let deck = Fault::ALL.len() + Fault::MORE.len();
    let faults = |seed| plan(seed).take(3 * deck).collect::<Vec<_>>();
    assert_eq!(faults(7), faults(7));
    assert_ne!(faults(7), faults(8));
    for part in faults(7).chunks(deck) {
        assert!(Fault::ALL.iter().all(|class| part.iter().any(|planned| planned.fault == *class)));
    }
}
