//! The scheduler of one simulated engine, as a plain state machine: requests in, events out, time as an argument.
//!
//! All running requests decode at the same speed, which changes whenever one starts or ends. So the engine keeps one
//! odometer of decoded tokens: a request that begins decoding at reading `r` and has `k` tokens to go ends at reading
//! `r + k`, whatever the speed does in between. Each change costs O(log n), and no token costs anything.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use super::blocks::{BlockPool, Holding};
use super::law::CustomProfile;

/// Names a request within its engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobId(u64);

/// A request as far as time is concerned.
#[derive(Clone, Debug, Default)]
pub struct EngineJob {
    pub prompt_tokens: u32,
    /// Tokens of the answer; at least one is always made.
    pub output_tokens: u32,
    /// Hashes of the prompt's full blocks (see [`super::blocks::block_hashes`]).
    pub prompt_blocks: Vec<u64>,
    /// Hashes of the full blocks after these, which the answer fills.
    pub answer_blocks: Vec<u64>,
}

/// An event of the engine; events are in the order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineEvent {
    /// A request's first token is there.
    FirstToken(JobId),
    /// A request's last token is there.
    Finished(JobId, EngineFinished),
}

/// When the phases of a request ended, in the engine's time, and what the cache spared it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineFinished {
    /// The request came.
    pub arrived: Duration,
    /// It left the queue.
    pub admitted: Duration,
    /// Its first token was there.
    pub first_token: Duration,
    /// Its last token was there.
    pub finished: Duration,
    /// Prompt tokens found in the prefix cache.
    pub cached_tokens: u32,
}

/// The gauges of an engine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EngineLoad {
    /// Requests being prefilled or decoded.
    pub running: u32,
    /// Requests in the queue.
    pub waiting: u32,
    /// KV-cache blocks held by requests.
    pub held_blocks: u32,
    /// All KV-cache blocks.
    pub total_blocks: u32,
}

/// Readings of the odometer: nanotokens, so that whole nanoseconds of any speed are told apart.
type Odometer = u128;
const TOKEN: Odometer = 1_000_000_000;

#[derive(Debug)]
struct QueuedJob {
    id: JobId,
    job: EngineJob,
    arrived: Duration,
}

#[derive(Debug)]
struct Running {
    holding: Holding,
    answer_blocks: Vec<u64>,
    output_tokens: u32,
    phase: Phase,
    times: EngineFinished,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Prefill { until: Duration },
    Decode { until: Odometer },
}

/// The scheduler; see the module.
#[derive(Debug)]
pub struct Engine {
    settings: CustomProfile,
    now: Duration,
    odometer: Odometer,
    blocks: BlockPool,
    waiting: VecDeque<QueuedJob>,
    running: HashMap<JobId, Running>,
    prefilling: BTreeSet<(Duration, JobId)>,
    decoding: BTreeSet<(Odometer, JobId)>,
    last_id: u64,
    /// Tokens of the requests that do not run any more.
    generated: u64,
    events: Vec<EngineEvent>,
}

impl Engine {
    /// An idle engine at time zero.
    pub fn new(settings: CustomProfile) -> Self {
        Self {
            settings,
            now: Duration::ZERO,
            odometer: 0,
            blocks: BlockPool::new(settings.num_gpu_blocks),
            waiting: VecDeque::new(),
            running: HashMap::new(),
            prefilling: BTreeSet::new(),
            decoding: BTreeSet::new(),
            last_id: 0,
            generated: 0,
            events: Vec::new(),
        }
    }

    /// Takes a request at `now`. It starts at once when there is room, else it waits its turn.
    pub fn submit(&mut self, now: Duration, job: EngineJob) -> JobId {
        self.advance(now);
        self.last_id += 1;
        let id = JobId(self.last_id);
        self.waiting.push_back(QueuedJob { id, job, arrived: self.now });
        self.admit();
        id
    }

    /// Forgets a request, as when its client has gone. Unknown and finished ones are no error.
    pub fn cancel(&mut self, now: Duration, id: JobId) {
        self.advance(now);
        if let Some(running) = self.running.remove(&id) {
            self.generated += u64::from(self.generated_of(&running));
            match running.phase {
                Phase::Prefill { until } => self.prefilling.remove(&(until, id)),
                Phase::Decode { until } => self.decoding.remove(&(until, id)),
            };
            self.blocks.release(running.holding, &[]);
        } else {
            self.waiting.retain(|waiting| waiting.id != id);
        }
        self.admit();
    }

    /// Changes how many requests are decoded at once. Those that run go on, also where they are more.
    pub fn resize(&mut self, now: Duration, max_num_seqs: u32) {
        self.advance(now);
        self.settings.max_num_seqs = max_num_seqs;
        self.admit();
    }

    /// Lets time pass until `now`; a time before the last one changes nothing. Collect the events with
    /// [`Engine::take_events`].
    pub fn advance(&mut self, now: Duration) {
        while let Some(at) = self.next_event().filter(|&at| at <= now) {
            self.pass_time_until(at);
            while let Some(&(until, id)) = self.prefilling.first()
                && until <= self.now
            {
                self.prefilling.pop_first();
                self.first_token(id);
            }
            while let Some(&(until, id)) = self.decoding.first()
                && until <= self.odometer
            {
                self.decoding.pop_first();
                self.finish(id);
            }
            self.admit();
        }
        self.pass_time_until(now);
    }

    /// The time of the next event if nothing is submitted or cancelled before; `None` when idle.
    pub fn next_event(&self) -> Option<Duration> {
        let prefill = self.prefilling.first().map(|&(until, _)| until);
        let decode = self.decoding.first().map(|&(until, _)| self.time_of(until));
        prefill.into_iter().chain(decode).min()
    }

    /// The events since the last call.
    pub fn take_events(&mut self) -> Vec<EngineEvent> {
        std::mem::take(&mut self.events)
    }

    /// Tokens that a running request has made so far, and when it makes the next one at the present speed. `None` for
    /// one that waits or is unknown.
    pub fn progress(&self, id: JobId) -> Option<(u32, Duration)> {
        let running = self.running.get(&id)?;
        Some(match running.phase {
            Phase::Prefill { until } => (0, until),
            Phase::Decode { until } => {
                let generated = self.generated_of(running);
                let to_go = running.output_tokens - generated;
                let next = until.saturating_sub(TOKEN * Odometer::from(to_go.saturating_sub(1)));
                (generated, self.time_of(next))
            }
        })
    }

    /// The gauges.
    pub fn load(&self) -> EngineLoad {
        EngineLoad {
            running: self.running_count(),
            waiting: u32::try_from(self.waiting.len()).unwrap_or(u32::MAX),
            held_blocks: self.blocks.held(),
            total_blocks: self.blocks.total(),
        }
    }

    /// Tokens generated so far, for requests that still run and aborted ones, too.
    pub fn generated(&self) -> u64 {
        let of_running = self.running.values().map(|running| u64::from(self.generated_of(running)));
        self.generated + of_running.sum::<u64>()
    }

    /// Tokens that a running request has made so far.
    fn generated_of(&self, running: &Running) -> u32 {
        match running.phase {
            Phase::Prefill { .. } => 0,
            Phase::Decode { until } => {
                let to_go = until.saturating_sub(self.odometer).div_ceil(TOKEN);
                running.output_tokens.saturating_sub(u32::try_from(to_go).unwrap_or(u32::MAX))
            }
        }
    }

    fn running_count(&self) -> u32 {
        u32::try_from(self.running.len()).unwrap_or(u32::MAX)
    }

    /// Nanoseconds per token at the present load. At least one, so that the odometer is never divided by zero; a law
    /// without decode time does not come here (see [`Engine::first_token`]).
    fn speed(&self) -> u64 {
        self.settings.inter_token_latency_ns(self.running_count()).max(1)
    }

    /// When the odometer shows `reading` at the present speed, never too early.
    fn time_of(&self, reading: Odometer) -> Duration {
        let to_go = reading.saturating_sub(self.odometer);
        let nanos = (to_go * Odometer::from(self.speed())).div_ceil(TOKEN);
        self.now + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    fn pass_time_until(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.now);
        if passed.is_zero() {
            return;
        }
        self.now = now;
        if self.decoding.is_empty() {
            return;
        }
        self.odometer += passed.as_nanos() * TOKEN / Odometer::from(self.speed());
    }

    fn admit(&mut self) {
        while self.running_count() < self.settings.max_num_seqs
            && let Some(first) = self.waiting.front_mut()
        {
            let prompt_tokens = first.job.prompt_tokens;
            let output_tokens = first.job.output_tokens.max(1);
            let all_tokens = prompt_tokens.saturating_add(output_tokens);
            let Some(holding) = self.blocks.acquire(&first.job.prompt_blocks, prompt_tokens, all_tokens)
            else {
                break;
            };
            let computed_tokens = prompt_tokens - holding.cached_tokens;
            let until = self.now + self.settings.time_to_first_token(computed_tokens);
            let times = EngineFinished {
                arrived: first.arrived,
                admitted: self.now,
                cached_tokens: holding.cached_tokens,
                ..EngineFinished::default()
            };
            let answer_blocks = std::mem::take(&mut first.job.answer_blocks);
            let phase = Phase::Prefill { until };
            let running = Running { holding, answer_blocks, output_tokens, phase, times };
            self.prefilling.insert((until, first.id));
            self.running.insert(first.id, running);
            self.waiting.pop_front();
        }
    }

    fn first_token(&mut self, id: JobId) {
        let Some(running) = self.running.get_mut(&id) else { return };
        running.times.first_token = self.now;
        let more = running.output_tokens - 1;
        self.events.push(EngineEvent::FirstToken(id));
        if more == 0 || self.settings.decode_per_token_ms == 0.0 {
            self.finish(id);
        } else {
            let until = self.odometer + TOKEN * Odometer::from(more);
            running.phase = Phase::Decode { until };
            self.decoding.insert((until, id));
        }
    }

    fn finish(&mut self, id: JobId) {
        let Some(running) = self.running.remove(&id) else { return };
        self.generated += u64::from(running.output_tokens);
        self.blocks.release(running.holding, &running.answer_blocks);
        self.events.push(EngineEvent::Finished(id, EngineFinished { finished: self.now, ..running.times }));
    }
}
