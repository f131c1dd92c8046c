//! What goes wrong in a night, and what others do on the same nodes.

use std::time::Duration;

use domain::seed::SplitMix64;

use super::cluster::FreeNodes;

/// What goes wrong. Nothing does by default.
#[derive(Clone, Debug, Default)]
pub struct Mishaps {
    /// The share of loads that fail, in [0, 1].
    pub failing_loads: f64,
    /// By how much loads differ from each other: sigma of a log-normal factor.
    pub load_spread: f64,
    /// The longest time that an image takes to be pulled; each takes a part of it.
    pub pull_max: Duration,
    pub evictions: Vec<Eviction>,
    pub tenants: Vec<Tenant>,
    pub pauses: Vec<Pause>,
    pub second_run: Option<SecondRun>,
}

/// All pods leave a node, which can be used again at once.
#[derive(Clone, Copy, Debug)]
pub struct Eviction {
    pub at: Duration,
    pub node: usize,
}

/// Somebody else takes what is free on a node, up to so many GPUs.
#[derive(Clone, Copy, Debug)]
pub struct Tenant {
    pub node: usize,
    pub gpus: u32,
    pub from: Duration,
    pub until: Duration,
}

/// All runs are paused.
#[derive(Clone, Copy, Debug)]
pub struct Pause {
    pub from: Duration,
    pub until: Duration,
}

/// A second run of all models comes.
#[derive(Clone, Copy, Debug)]
pub struct SecondRun {
    pub at: Duration,
    /// Its size, as a multiple of the first one.
    pub share: f64,
}

impl Mishaps {
    /// By which factor a load takes longer, and whether it fails in the end.
    pub(super) fn draw_load(&self, random: &mut SplitMix64) -> (f64, bool) {
        let longer = if self.load_spread > 0.0 { (self.load_spread * normal(random)).exp() } else { 1.0 };
        let fails = self.failing_loads > 0.0 && random.unit() < self.failing_loads;
        (longer, fails)
    }

    /// How long an image takes to be pulled.
    pub(super) fn draw_pull(&self, random: &mut SplitMix64) -> Duration {
        if self.pull_max.is_zero() { Duration::ZERO } else { self.pull_max.mul_f64(random.unit()) }
    }
}

/// A number of the standard normal distribution (Box and Muller 1958).
fn normal(random: &mut SplitMix64) -> f64 {
    let (radius, angle) = (1.0 - random.unit(), random.unit());
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

/// What is to happen, in order.
#[derive(Debug)]
pub(super) struct Calendar {
    /// The next ones last.
    events: Vec<(Duration, Event)>,
    /// What tenants got, by their number.
    taken: Vec<u32>,
    paused: u32,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Evict { node: usize },
    TenantComes { tenant: usize, node: usize, gpus: u32 },
    TenantGoes { tenant: usize, node: usize },
    Pause,
    Resume,
    SecondRun { share: f64 },
}

/// What happened at a time.
#[derive(Debug, Default)]
pub(super) struct Happened {
    pub is_any: bool,
    pub evicted: Vec<usize>,
    /// Dialogues that came, as a multiple of those of the first run.
    pub dialogues_more: f64,
}

impl Calendar {
    pub(super) fn of(mishaps: &Mishaps) -> Self {
        let mut events = Vec::new();
        events.extend(
            mishaps.evictions.iter().map(|evicted| (evicted.at, Event::Evict { node: evicted.node })),
        );
        for (tenant, Tenant { node, gpus, from, until }) in mishaps.tenants.iter().copied().enumerate() {
            events.push((from, Event::TenantComes { tenant, node, gpus }));
            events.push((until, Event::TenantGoes { tenant, node }));
        }
        for pause in &mishaps.pauses {
            events.extend([(pause.from, Event::Pause), (pause.until, Event::Resume)]);
        }
        events.extend(mishaps.second_run.map(|run| (run.at, Event::SecondRun { share: run.share })));
        events.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        Self { events, taken: vec![0; mishaps.tenants.len()], paused: 0 }
    }

    pub(super) fn next(&self) -> Option<Duration> {
        self.events.last().map(|(at, _)| *at)
    }

    pub(super) fn is_paused(&self) -> bool {
        self.paused > 0
    }

    /// Whether no more dialogues will come.
    pub(super) fn brings_no_work(&self) -> bool {
        !self.events.iter().any(|(_, event)| matches!(event, Event::SecondRun { .. }))
    }

    /// Lets happen what is due.
    pub(super) fn happen(&mut self, now: Duration, cluster: &mut FreeNodes) -> Happened {
        let mut happened = Happened::default();
        while let Some((_, event)) = self.events.pop_if(|(at, _)| *at <= now) {
            happened.is_any = true;
            match event {
                Event::Evict { node } => happened.evicted.push(node),
                Event::TenantComes { tenant, node, gpus } => self.taken[tenant] = cluster.take(node, gpus),
                Event::TenantGoes { tenant, node } => cluster.give_back(node, self.taken[tenant]),
                Event::Pause => self.paused += 1,
                Event::Resume => self.paused -= 1,
                Event::SecondRun { share } => happened.dialogues_more += share,
            }
        }
        happened
    }
}
