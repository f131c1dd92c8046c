//! Limits the dialogues in flight per server, so that the server is always full and never flooded.
//!
//! A plain state machine. A server that tells how many requests run and wait there (vLLM does) is held at its knee:
//! nothing waits, and the limit grows; more waits than the server takes in a step, and the limit shrinks by what is too
//! much. Every step of growth is at most what may wait, so that the step behind the knee floods nothing. Where several
//! workers ask one server, each corrects its share, and each aims at the same few waiting requests of its own, which
//! makes their shares equal in time.
//!
//! Of other servers only refusals are known. There the limit grows with every answer until the first refusal, then
//! slowly; a refusal shrinks it. Everywhere it grows only while it is fully used, so that it never exceeds what was
//! tested.

use std::time::Duration;

use domain::InFlightBounds;

/// Why a limit has its present value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitReason {
    /// It is set by hand.
    Fixed,
    /// Requests wait at the server: more dialogues would only wait longer.
    ServerQueue,
    /// The server refused a call, and the limit shrank.
    Refused,
    /// The bound is reached.
    Maximum,
    /// It is not used up, so nothing shows that it is too low.
    Unused,
    Growing,
    /// No question was answered yet: the first one is asked alone.
    FirstQuestion,
}

impl LimitReason {
    /// Every reason, in the words of metrics.
    pub const WORDS: [&'static str; 7] =
        ["fixed", "server-queue", "refused", "maximum", "unused", "growing", "first-question"];

    /// The word in metrics.
    pub fn as_str(self) -> &'static str {
        Self::WORDS[self as usize]
    }
}

/// What a server tells of the requests of all its clients.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Occupancy {
    pub running: f64,
    pub waiting: f64,
    /// Whether its cache is so full that it begins to evict requests.
    pub is_full: bool,
}

impl Occupancy {
    /// How many requests may wait: as many as a server with so many running ones takes in its next step, about.
    pub fn room(self) -> f64 {
        (self.running / RUNNING_PER_WAITING).max(1.0)
    }

    /// Whether one more request would wait.
    fn queues(self) -> bool {
        self.waiting >= 1.0 || self.is_full
    }
}

/// Running requests for each that may wait.
const RUNNING_PER_WAITING: f64 = 16.0;

/// Requests of its own that a worker lets wait at a server: from and to. Few, because a request that ends makes place
/// for only one; more than none, because the next dialogue comes a moment after the last one.
const OWN_WAITING_FROM: f64 = 1.5;
const OWN_WAITING_TO: f64 = 2.5;

/// Until the first queue is seen, a limit below its start grows by this share, from the start divided by
/// [`BELOW_START`]: a small server is not flooded by what a large one takes at once.
const FIRST_GROWTH: f64 = 0.25;
const BELOW_START: u32 = 8;

/// The limit to start with at a server that tells nothing: it may be a small one, or one whose first answers show that
/// it should not be asked.
const START_UNTOLD: u32 = 4;

/// Looks at a server that does not show new dialogues yet, before they are taken to be elsewhere, such as in judgement.
const DELAYS_MAX: u32 = 8;

/// Share of the requests at a server from which on they count as this worker's alone.
const OWN_SHARE: f64 = 0.75;

/// Factor of a shrink.
const SHRINK: f64 = 0.7;

/// When the worker wants to know the load of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LoadLook {
    /// When what was sent has arrived: the limit is used up and may grow.
    Soon,
    /// The same where others ask, too. What they sent looks like what this worker sent, so it waits longer.
    Shared,
    /// After a while: so many dialogues ended that, if the server had become slower, too many would wait.
    Settled,
}

impl LoadLook {
    /// The shortest pause before such a look.
    pub const fn pause(self) -> Duration {
        match self {
            Self::Soon => Duration::from_millis(10),
            Self::Shared => Duration::from_millis(15),
            Self::Settled => Duration::from_millis(250),
        }
    }
}

/// The limit of one server.
#[derive(Clone, Debug)]
pub struct Limiter {
    bounds: InFlightBounds,
    limit: f64,
    /// Set by a refusal; growth is slow until the server shows a queue.
    refused: bool,
    /// Completions from before the last shrink, which say nothing about the new limit.
    cooling: u32,
    /// What the server told last; `None` if it tells nothing.
    told: Option<Occupancy>,
    /// By how much the next step of growth may be; doubles as long as nothing waits. Without a bound until something
    /// does.
    stride: f64,
    /// The last growth, while nothing has waited since.
    grown: Option<Growth>,
    /// Looks since then that did not show the new dialogues.
    delays: u32,
    /// Share of this worker in the requests at the server.
    share: f64,
    /// Whether most of the dialogues in flight are at the server. Otherwise it is not the server that they wait for.
    fills: bool,
    /// Dialogues that ended, and how many of them had when the server told something last.
    ends: u64,
    ends_told: u64,
}

/// What was known when a limit grew.
#[derive(Clone, Copy, Debug)]
struct Growth {
    at_server: f64,
    in_flight: f64,
    ends: u64,
}

impl Limiter {
    /// A limiter with its initial limit.
    pub fn new(bounds: InFlightBounds) -> Self {
        let start = if bounds.is_fixed() { bounds.start } else { bounds.start.min(START_UNTOLD) };
        Self {
            bounds,
            limit: f64::from(start),
            refused: false,
            cooling: 0,
            told: None,
            stride: f64::INFINITY,
            grown: None,
            delays: 0,
            share: 1.0,
            fills: true,
            ends: 0,
            ends_told: 0,
        }
    }

    /// Whether it is not set by hand.
    pub fn adapts(&self) -> bool {
        !self.bounds.is_fixed()
    }

    /// Dialogues allowed in flight.
    pub fn limit(&self) -> usize {
        self.limit as usize
    }

    /// Why the limit has its present value, if so many dialogues are in flight.
    pub fn reason(&self, in_flight: u32) -> LimitReason {
        let min = self.bounds.min;
        if !self.adapts() {
            LimitReason::Fixed
        } else if self.queues() {
            LimitReason::ServerQueue
        } else if self.cooling > 0 || (self.refused && self.limit <= f64::from(min)) {
            LimitReason::Refused
        } else if self.limit >= self.max() {
            LimitReason::Maximum
        } else if (in_flight as usize) < self.limit() {
            LimitReason::Unused
        } else {
            LimitReason::Growing
        }
    }

    /// Changes the bounds and moves the limit into them.
    pub fn set_bounds(&mut self, bounds: InFlightBounds) {
        if bounds != self.bounds {
            self.bounds = bounds;
            self.keep_within_bounds();
        }
    }

    /// The server tells its load while so many dialogues are in flight.
    pub fn told(&mut self, now: Occupancy, in_flight: u32) {
        let is_first = self.told.replace(now).is_none();
        self.ends_told = self.ends;
        if !self.adapts() {
            return;
        }
        if now.waiting >= 1.0 && self.cooling == 0 {
            // Its queue says from now on what refusals said before.
            self.refused = false;
        }
        let (own, at_server) = (f64::from(in_flight), now.running + now.waiting);
        self.share = if at_server > own { own / at_server } else { 1.0 };
        self.fills = 2.0 * at_server >= own;
        let (own_waiting, room) = (self.share * now.waiting, now.room());
        // One request of its own may always wait, or clients who let more wait would push this one out.
        let surplus =
            (self.share * (now.waiting - room)).min(own_waiting - 1.0).max(own_waiting - OWN_WAITING_TO);
        if in_flight == 0 && (is_first || at_server >= 1.0) {
            // A server that nobody asks may be a small one; where others ask, the first step is one of growth.
            let first = f64::from((self.bounds.start / BELOW_START).max(1));
            let first = if at_server < 1.0 { first } else { first.min(room - now.waiting).max(1.0) };
            self.limit = self.limit.min(first);
            self.stride = f64::INFINITY;
            self.grown = Some(Growth { at_server, in_flight: own, ends: self.ends });
        } else if surplus > 0.0 {
            self.limit = self.limit.min(own - surplus);
            self.settle();
        } else if !now.queues() {
            if self.may_grow(in_flight) && self.has_arrived(at_server, own, room) {
                self.grow(own.min(now.running), room);
                self.grown = Some(Growth { at_server, in_flight: own, ends: self.ends });
            }
        } else {
            self.settle();
            let others_wait = own_waiting < OWN_WAITING_FROM && now.waiting <= room / 2.0 && !now.is_full;
            if others_wait && self.may_grow(in_flight) {
                self.raise(1.0);
            }
        }
        self.keep_within_bounds();
    }

    /// Nothing is known of the server's load any more.
    pub fn untold(&mut self) {
        self.told = None;
        self.limit = self.limit.min(self.max());
    }

    /// When the server's load should be known next, if so many dialogues are in flight; `None` if any time will do.
    pub fn look(&self, in_flight: u32) -> Option<LoadLook> {
        let told = self.told?;
        if !self.adapts() || (in_flight as usize) < self.limit() {
            None
        } else if !told.queues() && self.may_grow(in_flight) {
            Some(if self.share > OWN_SHARE { LoadLook::Soon } else { LoadLook::Shared })
        } else {
            ((self.ends - self.ends_told) as f64 >= self.share * told.room()).then_some(LoadLook::Settled)
        }
    }

    /// Records the end of a dialogue while `in_flight` others were running; `refused` if the server reported that it
    /// was full or that calls came too fast.
    pub fn ended(&mut self, refused: bool, in_flight: usize) {
        self.ends += 1;
        if self.cooling > 0 {
            self.cooling -= 1;
            return;
        }
        if refused {
            self.refused = true;
            self.limit = (self.limit * SHRINK).max(f64::from(self.bounds.min));
            self.cooling = self.limit as u32;
            self.stride = 1.0;
        } else if (self.told.is_none() || self.refused) && !self.queues() && in_flight + 1 >= self.limit() {
            self.raise(if self.refused { 1.0 / self.limit } else { 1.0 });
        }
    }

    /// Whether one more request would wait, as far as the server tells.
    fn queues(&self) -> bool {
        self.told.is_some_and(Occupancy::queues)
    }

    /// The bound of growth. A server that tells its load shows in time that it is full.
    fn max(&self) -> f64 {
        let is_measured = self.told.is_some() && self.fills;
        f64::from(if is_measured { self.bounds.measured_max } else { self.bounds.max })
    }

    fn raise(&mut self, by: f64) {
        self.limit = (self.limit + by).min(self.max()).max(self.limit);
    }

    fn keep_within_bounds(&mut self) {
        let InFlightBounds { min, measured_max, .. } = self.bounds;
        self.limit = self.limit.clamp(f64::from(min), f64::from(measured_max));
    }

    /// Whether what the server tells may raise the limit: it is used up, below its bound, and no refusal speaks against
    /// it.
    fn may_grow(&self, in_flight: u32) -> bool {
        let is_used = in_flight as usize + 1 >= self.limit();
        is_used && self.limit < self.max() && !self.refused && self.cooling == 0
    }

    /// A step of growth beyond what the server took.
    fn grow(&mut self, taken: f64, room: f64) {
        let is_first = self.stride.is_infinite() && self.limit < f64::from(self.bounds.start);
        let stride = if is_first { (FIRST_GROWTH * self.limit).max(1.0) } else { self.stride.min(room) };
        self.limit = self.limit.max(taken);
        self.raise(self.share * stride);
        self.stride *= 2.0;
    }

    /// The server is full: it may have room again, but from now on the limit feels its way.
    fn settle(&mut self) {
        (self.stride, self.grown, self.delays) = (1.0, None, 0);
    }

    /// Whether the server shows what the last growth began, or all of it has ended meanwhile. Otherwise what is on its
    /// way would be taken for room.
    fn has_arrived(&mut self, at_server: f64, own: f64, room: f64) -> bool {
        let shown = self.grown.is_none_or(|before| {
            let due = before.at_server + own - before.in_flight;
            at_server >= due - (room / 4.0).max(1.0) || (self.ends - before.ends) as f64 >= own
        });
        self.delays = if shown || self.delays == DELAYS_MAX { 0 } else { self.delays + 1 };
        self.delays == 0
    }
}

#[cfg(test)]
mod tests;
