//! A cluster in virtual time: nodes, a scheduler, servers that load and work, and what goes wrong. Whoever decides about servers is
//! [`decide()`] itself, every [`DECIDES_EVERY`].

mod cluster;

use std::time::Duration;

use domain::pools::ServerEnd;

use self::cluster::FreeNodes;
use crate::pool::decide::{Act, Wait, decide};
use crate::pool::failures::{Failures, NextTry};
use crate::pool::view::{Limits, Needs, Pool, PoolNeed, PoolServer, PoolServerPhase, PoolView, PoolsView};

/// How often a conductor decides.
pub const DECIDES_EVERY: Duration = Duration::from_secs(10);

/// How long after the last dialogue a server ends: two looks at the outlook that are 5 s apart, and its processes.
const ENDS_AFTER: Duration = Duration::from_secs(10);

/// For how long at least, and at most, a server stays when there is work later but not now; in between, as long as it loads.
const IDLE_MIN: Duration = Duration::from_secs(5 * 60);
const IDLE_MAX: Duration = Duration::from_secs(60 * 60);

/// No night is longer. A world that is not over by then has a server that goes round in circles.
const TIME_MAX: Duration = Duration::from_secs(60 * 24 * 3600);

/// A pool as it is, beside what is believed of it.
#[derive(Clone, Debug)]
pub struct WorldPool {
    /// What the conductor believes.
    pub believed: Pool,
    /// What is true: how long a server loads.
    pub load: Duration,
    /// Dialogues per second of one server.
    pub rate: f64,
    /// Dialogues to ask.
    pub dialogues: f64,
}

impl WorldPool {
    /// A pool that is as it is believed to be.
    pub fn exact(believed: Pool, dialogues: f64) -> Self {
        Self { load: believed.load, rate: believed.rate, dialogues, believed }
    }
}

/// A cluster with its pools, before anything has started.
#[derive(Clone, Debug)]
pub struct World {
    /// GPUs of each node.
    pub nodes: Vec<u32>,
    pub pools: Vec<WorldPool>,
    pub limits: Limits,
}

/// A server that was, in the order of their starts.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerRow {
    /// Which of [`World::pools`] it was of.
    pub pool: usize,
    /// Its number in the pool, from 1.
    pub number: u32,
    pub created_at: Duration,
    /// `None`: it never served.
    pub served_at: Option<Duration>,
    pub ended_at: Duration,
    pub end: ServerEnd,
}

/// What became of a world.
#[derive(Clone, Debug, Default)]
pub struct NightOutcome {
    /// When the last pool was done, or given up.
    pub over_at: Duration,
    pub servers: Vec<ServerRow>,
    /// GPU-hours of servers while they loaded, worked, had nothing to do, and waited for the rest of their nodes.
    pub gpu_hours: GpuHours,
    /// GPUs of all servers that had not ended, at most.
    pub gpus_max: u32,
    /// The pools that were given up, with what they had left.
    pub given_up: Vec<usize>,
    /// The pools for which the budget had no GPU-hours left.
    pub over_budget: Vec<usize>,
    /// Other pools with work for which nothing would ever have happened again; none is what is wanted.
    pub stuck: Vec<usize>,
}

/// GPU-hours by what was done with them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GpuHours {
    pub load: f64,
    pub work: f64,
    pub idle: f64,
    pub waiting: f64,
}

impl GpuHours {
    /// All of them.
    pub fn total(&self) -> f64 {
        self.load + self.work + self.idle + self.waiting
    }
}

/// A server in the world.
#[derive(Clone, Debug)]
struct Running {
    pool: usize,
    number: u32,
    created_at: Duration,
    /// The node of each part.
    parts: Vec<Option<usize>>,
    loading: Option<Loading>,
    served_at: Option<Duration>,
    /// Since when it has had nothing to do.
    idle_since: Option<Duration>,
    ends_at: Option<Duration>,
}

#[derive(Clone, Copy, Debug)]
struct Loading {
    since: Duration,
    until: Duration,
    /// Whether the model will not come.
    fails: bool,
}

impl Running {
    fn is_scheduled(&self) -> bool {
        self.parts.iter().all(Option::is_some)
    }

    fn phase(&self) -> PoolServerPhase {
        match (self.served_at, self.loading) {
            (Some(_), _) => PoolServerPhase::Serving,
            (None, Some(Loading { since, .. })) => PoolServerPhase::Loading { since },
            (None, None) => PoolServerPhase::Unscheduled,
        }
    }
}

impl World {
    /// Lets it run until everything is done, given up, or stuck.
    pub fn run(&self) -> NightOutcome {
        Night::of(self, false, None).run()
    }
}

/// What goes wrong in a night, and what others do on the same nodes: nothing in what is planned, much in tests.
trait Mishaps {
    /// By which factor a load takes longer, how long its image is pulled, and whether the model will not come.
    fn load(&mut self) -> (f64, Duration, bool);

    /// When the next thing happens.
    fn next(&self) -> Option<Duration>;

    /// Whether all runs are paused.
    fn is_paused(&self) -> bool;

    /// Whether more dialogues will come.
    fn brings_work(&self) -> bool;

    /// Lets happen what is due; returns whether anything was.
    fn happen(&mut self, night: &mut Night<'_>) -> bool;
}

/// A world under way.
struct Night<'w> {
    world: &'w World,
    now: Duration,
    cluster: FreeNodes,
    failures: Vec<Failures>,
    /// Dialogues that each pool has left.
    left: Vec<f64>,
    /// Number of the last server of each pool.
    numbers: Vec<u32>,
    servers: Vec<Running>,
    /// When a decision is due.
    decides_at: Option<Duration>,
    /// Who waited for what at the last one.
    waits: Vec<(usize, Wait)>,
    mishaps: Option<Box<dyn Mishaps>>,
    outcome: NightOutcome,
}

impl<'w> Night<'w> {
    fn of(world: &'w World, packs: bool, mishaps: Option<Box<dyn Mishaps>>) -> Self {
        Self {
            world,
            now: Duration::ZERO,
            cluster: FreeNodes::new(&world.nodes, packs),
            failures: vec![Failures::default(); world.pools.len()],
            left: world.pools.iter().map(|pool| pool.dialogues).collect(),
            numbers: vec![0; world.pools.len()],
            servers: Vec::new(),
            decides_at: Some(Duration::ZERO),
            waits: Vec::new(),
            mishaps,
            outcome: NightOutcome::default(),
        }
    }

    fn run(mut self) -> NightOutcome {
        while self.step() {}
        self.outcome()
    }

    /// Goes on to the next thing that happens; `false` if nothing does.
    fn step(&mut self) -> bool {
        self.schedule();
        self.note_idle();
        let Some(next) = self.next_event() else { return false };
        if next > TIME_MAX {
            return false;
        }
        self.pass(next);
        self.happen();
        if self.decides_at.is_some_and(|at| at <= self.now) {
            self.decide();
        }
        !self.is_over()
    }

    fn is_over(&self) -> bool {
        let is_open =
            |pool: usize| self.left[pool] > 0.0 && self.failures[pool].next_try(self.now) != NextTry::GivenUp;
        let more_comes = self.mishaps.as_ref().is_some_and(|mishaps| mishaps.brings_work());
        self.servers.is_empty() && !more_comes && !(0..self.left.len()).any(is_open)
    }

    /// Whether a pool may ask now.
    fn has_work(&self, pool: usize) -> bool {
        self.left[pool] > 0.0 && !self.mishaps.as_ref().is_some_and(|mishaps| mishaps.is_paused())
    }

    /// Dialogues per second of all servers of a pool.
    fn rate(&self, pool: usize) -> f64 {
        let serving = self.servers.iter().filter(|server| server.pool == pool && server.served_at.is_some());
        serving.count() as f64 * self.world.pools[pool].rate
    }

    /// Puts parts on nodes, the oldest server first, and begins to load what has all of its nodes.
    fn schedule(&mut self) {
        for server in &mut self.servers {
            let pool = &self.world.pools[server.pool];
            if !server.is_scheduled() {
                self.cluster.place(&mut server.parts, pool.believed.gpus, self.world.limits.admits_whole);
            }
            if server.is_scheduled() && server.loading.is_none() {
                let drawn = self.mishaps.as_mut().map(|mishaps| mishaps.load());
                let (longer, pull, fails) = drawn.unwrap_or((1.0, Duration::ZERO, false));
                let until = self.now + pool.load.mul_f64(longer) + pull;
                server.loading = Some(Loading { since: self.now, until, fails });
            }
        }
    }

    /// Notes of each server whether it has something to do, and when it ends if it has not.
    fn note_idle(&mut self) {
        for at in 0..self.servers.len() {
            let pool = self.servers[at].pool;
            let (is_done, has_work) = (self.left[pool] <= 0.0, self.has_work(pool));
            let server = &mut self.servers[at];
            if has_work {
                (server.idle_since, server.ends_at) = (None, None);
            } else if server.idle_since.is_none() {
                server.idle_since = Some(self.now);
                let stays =
                    if is_done { ENDS_AFTER } else { self.world.pools[pool].load.clamp(IDLE_MIN, IDLE_MAX) };
                server.ends_at = Some(self.now + stays);
            } else if is_done {
                // What there was to be later was taken by others, or is gone.
                let soon = self.now + ENDS_AFTER;
                server.ends_at = server.ends_at.map(|at| at.min(soon));
            }
        }
    }

    fn next_event(&self) -> Option<Duration> {
        let of_servers = self.servers.iter().flat_map(|server| {
            let loaded = server.loading.filter(|_| server.served_at.is_none()).map(|loading| loading.until);
            [loaded, server.ends_at]
        });
        let done = (0..self.left.len()).map(|pool| {
            let rate = self.rate(pool);
            (self.has_work(pool) && rate > 0.0).then(|| self.now + seconds(self.left[pool] / rate))
        });
        let mishap = self.mishaps.as_ref().and_then(|mishaps| mishaps.next());
        let timers = [self.decides_at, mishap];
        of_servers.chain(done).chain(timers).flatten().min().map(|next| next.max(self.now))
    }

    /// Lets time pass, in which servers work or take GPUs for nothing.
    fn pass(&mut self, next: Duration) {
        let hours = (next - self.now).as_secs_f64() / 3600.0;
        for server in &self.servers {
            let gpus = self.world.pools[server.pool].believed.gpus;
            let held = server.parts.iter().flatten().count() as f64 * f64::from(gpus) * hours;
            let spent = &mut self.outcome.gpu_hours;
            *match server.phase() {
                PoolServerPhase::Unscheduled => &mut spent.waiting,
                PoolServerPhase::Loading { .. } => &mut spent.load,
                PoolServerPhase::Serving if server.idle_since.is_some() => &mut spent.idle,
                PoolServerPhase::Serving => &mut spent.work,
            } += held;
        }
        for pool in 0..self.left.len() {
            if self.has_work(pool) {
                let asked = self.rate(pool) * hours * 3600.0;
                self.left[pool] -= asked;
                // What is left of a dialogue by rounding is none.
                if self.left[pool] < DIALOGUES_MIN && asked > 0.0 {
                    self.left[pool] = 0.0;
                }
            }
        }
        self.now = next;
    }

    /// What happens now: models are loaded or not, servers end, and mishaps.
    fn happen(&mut self) {
        let mut ended: Vec<(usize, ServerEnd)> = Vec::new();
        for (at, server) in self.servers.iter_mut().enumerate() {
            match server.loading {
                Some(loading) if server.served_at.is_none() && loading.until <= self.now => {
                    if loading.fails {
                        ended.push((at, ServerEnd::Failed));
                        continue;
                    }
                    server.served_at = Some(self.now);
                    self.failures[server.pool].note_serving();
                }
                _ => {}
            }
            if server.ends_at.is_some_and(|at| at <= self.now) {
                ended.push((at, ServerEnd::Done));
            }
        }
        let mut is_any = !ended.is_empty();
        self.end(ended);
        if let Some(mut mishaps) = self.mishaps.take() {
            is_any |= mishaps.happen(self);
            self.mishaps = Some(mishaps);
        }
        if is_any {
            self.decide_soon(self.now);
        }
    }

    /// Ends servers, by their places in the list.
    fn end(&mut self, ended: Vec<(usize, ServerEnd)>) {
        for (at, end) in ended.into_iter().rev() {
            let server = self.servers.remove(at);
            self.cluster.release(&server.parts, self.world.pools[server.pool].believed.gpus);
            self.failures[server.pool].note(end, self.now);
            let Running { pool, number, created_at, served_at, .. } = server;
            self.outcome.servers.push(ServerRow {
                pool,
                number,
                created_at,
                served_at,
                ended_at: self.now,
                end,
            });
        }
    }

    /// The next decision is made at the first look after `at`.
    fn decide_soon(&mut self, at: Duration) {
        let every = DECIDES_EVERY.as_secs();
        let look = Duration::from_secs(at.as_secs().div_ceil(every) * every);
        let look = if look < at { look + DECIDES_EVERY } else { look };
        self.decides_at = Some(self.decides_at.map_or(look, |known| known.min(look)));
    }

    fn decide(&mut self) {
        self.decides_at = None;
        let need = |pool: usize| {
            let now = if self.has_work(pool) { self.left[pool].ceil() as u64 } else { 0 };
            let measured = self.outcome.servers.iter().any(|row| row.pool == pool) || self.rate(pool) > 0.0;
            Some(PoolNeed { now, rate: measured.then_some(self.world.pools[pool].rate) })
        };
        let needs = Needs { read_at: self.now, of: (0..self.left.len()).map(need).collect() };
        let pools: Vec<PoolView> = (self.world.pools.iter().zip(&self.failures))
            .map(|(pool, failures)| PoolView { pool: pool.believed.clone(), failures: failures.clone() })
            .collect();
        let servers: Vec<PoolServer> = self.servers.iter().map(of_running).collect();
        let decision = decide(&PoolsView {
            now: self.now,
            needs: Some(&needs),
            pools: &pools,
            servers: &servers,
            limits: &self.world.limits,
            gpu_hours_used: self.outcome.gpu_hours.total(),
        });
        for act in &decision.acts {
            match *act {
                Act::Start { pool } => self.start(pool),
                Act::GiveUp { pool, number } => {
                    let is_it = |server: &Running| server.pool == pool && server.number == number;
                    let found = self.servers.iter().position(is_it);
                    self.end(found.map(|at| (at, ServerEnd::NoNodes)).into_iter().collect());
                }
            }
        }
        self.waits = decision.waits;
        let in_use =
            self.servers.iter().map(|server| self.world.pools[server.pool].believed.server_gpus()).sum();
        self.outcome.gpus_max = self.outcome.gpus_max.max(in_use);
        if !decision.acts.is_empty() {
            self.decide_soon(self.now + DECIDES_EVERY);
        }
        // Nothing else happens when a pool may be tried again, or a server has waited for too long.
        let retries = self.failures.iter().filter_map(|failures| match failures.next_try(self.now) {
            NextTry::Waits { until } => Some(until),
            NextTry::Ready | NextTry::GivenUp => None,
        });
        let waiting = self.servers.iter().filter(|server| !server.is_scheduled() && server.parts.len() > 1);
        let timeouts = waiting.map(|server| server.created_at + self.world.limits.gang_timeout);
        if let Some(next) = retries.chain(timeouts).filter(|next| *next > self.now).min() {
            self.decide_soon(next);
        }
    }

    fn start(&mut self, pool: usize) {
        self.numbers[pool] += 1;
        self.servers.push(Running {
            pool,
            number: self.numbers[pool],
            created_at: self.now,
            parts: vec![None; self.world.pools[pool].believed.parts as usize],
            loading: None,
            served_at: None,
            idle_since: None,
            ends_at: None,
        });
    }

    fn outcome(mut self) -> NightOutcome {
        let has_left = |pool: &usize| self.left[*pool] > 0.0;
        let is_given_up = |pool: &usize| self.failures[*pool].next_try(self.now) == NextTry::GivenUp;
        let waits_for_budget = |pool: &usize| self.waits.contains(&(*pool, Wait::Budget));
        let open = (0..self.left.len()).filter(has_left);
        let (given_up, open): (Vec<usize>, Vec<usize>) = open.partition(is_given_up);
        (self.outcome.over_budget, self.outcome.stuck) = open.into_iter().partition(waits_for_budget);
        self.outcome.given_up = given_up;
        self.outcome.over_at = self.now;
        self.outcome.servers.sort_by_key(|row| (row.created_at, row.pool, row.number));
        self.outcome
    }
}

/// Fewer dialogues than this are none.
const DIALOGUES_MIN: f64 = 1e-6;

fn of_running(server: &Running) -> PoolServer {
    let Running { pool, number, created_at, .. } = *server;
    PoolServer { pool, number, created_at, phase: server.phase() }
}

/// A time from seconds, as finely as it is told.
fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(TIME_MAX).min(TIME_MAX)
}

#[cfg(test)]
mod tests;
