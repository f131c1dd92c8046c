//! What goes wrong in a night, and what others do on the same nodes.

use domain::seed::SplitMix64;

use super::*;

/// A world in which things go wrong.
#[derive(Clone, Debug)]
pub(super) struct RoughWorld {
    pub world: World,
    pub packs: bool,
    pub mishaps: MishapList,
}

impl RoughWorld {
    /// One in which nothing does yet.
    pub fn of(world: World) -> Self {
        Self { world, packs: false, mishaps: MishapList::default() }
    }

    /// The same seed gives the same outcome.
    pub fn run(&self, seed: u64) -> NightOutcome {
        let calendar = Calendar::of(&self.mishaps, seed);
        Night::of(&self.world, self.packs, Some(Box::new(calendar))).run()
    }
}

/// What goes wrong. Nothing does by default.
#[derive(Clone, Debug, Default)]
pub(super) struct MishapList {
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
pub(super) struct Eviction {
    pub at: Duration,
    pub node: usize,
}

/// Somebody else takes what is free on a node, up to so many GPUs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tenant {
    pub node: usize,
    pub gpus: u32,
    pub from: Duration,
    pub until: Duration,
}

/// All runs are paused.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pause {
    pub from: Duration,
    pub until: Duration,
}

/// A second run of all models comes.
#[derive(Clone, Copy, Debug)]
pub(super) struct SecondRun {
    pub at: Duration,
    /// Its size, as a multiple of the first one.
    pub share: f64,
}

/// A number of the standard normal distribution (Box and Muller 1958).
fn normal(random: &mut SplitMix64) -> f64 {
    let (radius, angle) = (1.0 - random.unit(), random.unit());
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

/// What is to happen, in order.
struct Calendar {
    list: MishapList,
    random: SplitMix64,
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

impl Calendar {
    fn of(mishaps: &MishapList, seed: u64) -> Self {
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
        let (list, random) = (mishaps.clone(), SplitMix64::new(seed));
        Self { list, random, events, taken: vec![0; mishaps.tenants.len()], paused: 0 }
    }
}

impl Mishaps for Calendar {
    fn load(&mut self) -> (f64, Duration, bool) {
        let (list, random) = (&self.list, &mut self.random);
        let longer = if list.load_spread > 0.0 { (list.load_spread * normal(random)).exp() } else { 1.0 };
        let fails = list.failing_loads > 0.0 && random.unit() < list.failing_loads;
        let pull =
            if list.pull_max.is_zero() { Duration::ZERO } else { list.pull_max.mul_f64(random.unit()) };
        (longer, pull, fails)
    }

    fn next(&self) -> Option<Duration> {
        self.events.last().map(|(at, _)| *at)
    }

    fn is_paused(&self) -> bool {
        self.paused > 0
    }

    fn brings_work(&self) -> bool {
        self.events.iter().any(|(_, event)| matches!(event, Event::SecondRun { .. }))
    }

    fn happen(&mut self, night: &mut Night<'_>) -> bool {
        let (mut is_any, mut evicted) = (false, Vec::new());
        let now = night.now;
        while let Some((_, event)) = self.events.pop_if(|(at, _)| *at <= now) {
            is_any = true;
            match event {
                Event::Evict { node } => evicted.push(node),
                Event::TenantComes { tenant, node, gpus } => {
                    self.taken[tenant] = gpus.min(night.cluster.free[node]);
                    night.cluster.free[node] -= self.taken[tenant];
                }
                Event::TenantGoes { tenant, node } => night.cluster.free[node] += self.taken[tenant],
                Event::Pause => self.paused += 1,
                Event::Resume => self.paused -= 1,
                Event::SecondRun { share } => {
                    for (pool, more) in night.left.iter_mut().enumerate() {
                        *more += share * night.world.pools[pool].dialogues;
                    }
                }
            }
        }
        evicted.into_iter().for_each(|node| night.evict(node));
        is_any
    }
}

impl Night<'_> {
    /// Evicts the parts on a node: a single server goes to another node, of several parts all go.
    fn evict(&mut self, node: usize) {
        let mut ended = Vec::new();
        for (at, server) in self.servers.iter_mut().enumerate() {
            if !server.parts.contains(&Some(node)) {
                continue;
            }
            if server.parts.len() > 1 {
                ended.push((at, ServerEnd::Disrupted));
                continue;
            }
            self.cluster.release(&server.parts, self.world.pools[server.pool].believed.gpus);
            *server = Running { parts: vec![None], loading: None, served_at: None, ..server.clone() };
        }
        self.end(ended);
    }
}
