//! The limit beside the best fixed one, at the simulator's engine, in virtual time.

use std::collections::{HashMap, VecDeque};

use vllm_sim::latency::{CustomProfile, Engine, EngineEvent, EngineJob, JobId, Profile};

use super::super::*;

/// The machines that the simulator imitates.
const PROFILES: [Profile; 3] = [Profile::H1008b, Profile::H10070bTp8, Profile::L40s];

/// What the limit must reach of the best fixed one.
const SHARE: f64 = 0.97;

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The first seconds, and the seconds from five after the server became slower, and faster again.
const COLD: [Duration; 2] = [Duration::ZERO, seconds(20)];
const HALVED: [Duration; 2] = [seconds(25), seconds(32)];
const DOUBLED: [Duration; 2] = [seconds(37), seconds(44)];

/// A worker at the engine.
struct PlayedAsker {
    limiter: Limiter,
    in_flight: u32,
    /// When what was begun is at the server.
    arrivals: VecDeque<Duration>,
    looked_at: Duration,
    look_at: Duration,
    begins_at: Duration,
}

/// An engine and its askers.
struct AskedEngine {
    engine: Engine,
    now: Duration,
    /// From the end of a call to the arrival of the next one.
    turn: Duration,
    askers: Vec<PlayedAsker>,
    asker_of: HashMap<JobId, usize>,
    drawn: u64,
    /// The most that waited beyond what may wait.
    flood: f64,
}

impl AskedEngine {
    fn new(settings: CustomProfile, limiters: &[Limiter]) -> Self {
        let asker = |limiter: &Limiter| PlayedAsker {
            limiter: limiter.clone(),
            in_flight: 0,
            arrivals: VecDeque::new(),
            looked_at: Duration::ZERO,
            look_at: Duration::ZERO,
            begins_at: Duration::ZERO,
        };
        Self {
            engine: Engine::new(settings),
            now: Duration::ZERO,
            turn: Duration::from_millis(3),
            askers: limiters.iter().map(asker).collect(),
            asker_of: HashMap::new(),
            drawn: 0,
            flood: f64::MIN,
        }
    }

    /// An answer of 64 to 511 tokens to a prompt of 100.
    fn job(&mut self) -> EngineJob {
        self.drawn =
            self.drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let output_tokens = 64 + (self.drawn >> 33) as u32 % 448;
        EngineJob { prompt_tokens: 100, output_tokens, ..EngineJob::default() }
    }

    fn occupancy(&self) -> Occupancy {
        let load = self.engine.load();
        Occupancy { running: load.running.into(), waiting: load.waiting.into(), is_full: false }
    }

    fn run_until(&mut self, end: Duration) {
        while self.now < end {
            self.now += Duration::from_millis(1);
            self.engine.advance(self.now);
            for event in self.engine.take_events() {
                let EngineEvent::Finished(id, _) = event else { continue };
                let asker = &mut self.askers[self.asker_of[&id]];
                asker.in_flight -= 1;
                asker.limiter.ended(false, asker.in_flight as usize);
                asker.wants_look(self.now);
            }
            for at in 0..self.askers.len() {
                self.ask(at);
            }
            let load = self.occupancy();
            self.flood = self.flood.max(load.waiting - load.room());
        }
    }

    /// What an asker does at this moment.
    fn ask(&mut self, at: usize) {
        let (now, turn, load) = (self.now, self.turn, self.occupancy());
        let asker = &mut self.askers[at];
        if now >= asker.look_at {
            (asker.looked_at, asker.look_at) = (now, now + seconds(1));
            asker.limiter.told(load, asker.in_flight);
            asker.wants_look(now);
        }
        while now >= asker.begins_at && (asker.in_flight as usize) < asker.limiter.limit() {
            asker.in_flight += 1;
            asker.arrivals.push_back(now + turn);
            asker.wants_look(now);
        }
        while self.askers[at].arrivals.front().is_some_and(|arrival| *arrival <= now) {
            self.askers[at].arrivals.pop_front();
            let job = self.job();
            let id = self.engine.submit(now, job);
            self.asker_of.insert(id, at);
        }
    }

    /// Tokens made in a part of the time.
    fn tokens(&mut self, [begin, end]: [Duration; 2]) -> f64 {
        self.run_until(begin);
        let before = self.engine.generated();
        self.run_until(end);
        (self.engine.generated() - before) as f64
    }
}

impl PlayedAsker {
    fn wants_look(&mut self, now: Duration) {
        let at = match self.limiter.look(self.in_flight) {
            None => return,
            Some(LoadLook::Settled) => self.looked_at + LoadLook::Settled.pause(),
            Some(soon) => now + soon.pause(),
        };
        self.look_at = self.look_at.min(at);
    }
}

/// What limits brought in the three parts of the time.
struct KneeFigures {
    tokens: [f64; 3],
    /// The most that waited beyond what may wait, but for the seconds in which the engine holds more than it now takes.
    flood: f64,
}

impl KneeFigures {
    fn of(profile: &Profile, limiters: &[Limiter]) -> Self {
        let settings = profile.engine().expect("an engine");
        let mut asked = AskedEngine::new(settings, limiters);
        let cold = asked.tokens(COLD);
        let flood = asked.flood;
        asked.engine.resize(asked.now, settings.max_num_seqs / 2);
        let halved = asked.tokens(HALVED);
        asked.flood = flood;
        asked.engine.resize(asked.now, settings.max_num_seqs);
        let doubled = asked.tokens(DOUBLED);
        Self { tokens: [cold, halved, doubled], flood: asked.flood }
    }
}

#[test]
fn it_is_as_fast_as_the_best_fixed_limit_and_floods_nothing() {
    for profile in PROFILES {
        let seqs = profile.engine().expect("an engine").max_num_seqs;
        let fixed = [seqs / 2, seqs, seqs + seqs / 16, 2 * seqs].map(InFlightBounds::fixed);
        let fixed = fixed.map(|bounds| KneeFigures::of(&profile, &[Limiter::new(bounds)]).tokens);
        let best = [0, 1, 2].map(|at| fixed.iter().map(|tokens| tokens[at]).fold(0.0, f64::max));
        for workers in [1, 2] {
            let limiters = vec![Limiter::new(InFlightBounds::OWN_SERVER); workers];
            let KneeFigures { tokens, flood } = KneeFigures::of(&profile, &limiters);
            let shares = [0, 1, 2].map(|at| tokens[at] / best[at]);
            assert!(shares.iter().all(|share| *share >= SHARE), "{profile:?}, {workers} workers: {shares:?}");
            assert!(flood <= 0.0, "{profile:?}, {workers} workers: {flood} too many waited");
        }
    }
}

#[test]
fn a_second_worker_gets_its_share() {
    let settings = Profile::L40s.engine().expect("an engine");
    let mut asked = AskedEngine::new(settings, &[InFlightBounds::OWN_SERVER; 2].map(Limiter::new));
    asked.askers[1].begins_at = seconds(20);
    asked.askers[1].look_at = seconds(20);
    asked.run_until(seconds(600));
    let held: Vec<u32> = asked.askers.iter().map(|asker| asker.in_flight).collect();
    assert!(held.iter().all(|held| *held >= settings.max_num_seqs / 3), "{held:?}");
    assert!(asked.flood <= 0.0, "{} too many waited", asked.flood);
}

#[test]
fn requests_that_arrive_late_flood_nothing() {
    let settings = Profile::H1008b.engine().expect("an engine");
    let mut asked = AskedEngine::new(settings, &[Limiter::new(InFlightBounds::OWN_SERVER)]);
    asked.turn = Duration::from_millis(25);
    asked.run_until(seconds(20));
    assert!(asked.flood <= 0.0, "{} too many waited", asked.flood);
    assert!(asked.occupancy().waiting >= 1.0, "it is full");
}
