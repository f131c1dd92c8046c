//! Limits the dialogues in flight per server.
//!
//! A plain state machine. The limit grows fast until the first refusal, then slowly; a refusal shrinks it. It grows
//! only while it is fully used, so that it never exceeds what was tested.

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
}

impl LimitReason {
    /// Every reason, in the words of metrics.
    pub const WORDS: [&'static str; 6] = ["fixed", "server-queue", "refused", "maximum", "unused", "growing"];

    /// The word in metrics.
    pub fn as_str(self) -> &'static str {
        Self::WORDS[self as usize]
    }
}

/// Factor of a shrink.
const SHRINK: f64 = 0.7;

/// The limit of one server.
#[derive(Clone, Debug)]
pub struct Limiter {
    bounds: InFlightBounds,
    limit: f64,
    /// Set by the first refusal; growth is slow from then on.
    refused: bool,
    /// Completions from before the last shrink, which say nothing about the new limit.
    cooling: u32,
    /// Requests queued at the server.
    waiting: u32,
}

impl Limiter {
    /// A limiter with its initial limit.
    pub fn new(bounds: InFlightBounds) -> Self {
        Self { bounds, limit: f64::from(bounds.start), refused: false, cooling: 0, waiting: 0 }
    }

    /// Dialogues allowed in flight.
    pub fn limit(&self) -> usize {
        self.limit as usize
    }

    /// Why the limit has its present value, if so many dialogues are in flight.
    pub fn reason(&self, in_flight: u32) -> LimitReason {
        let InFlightBounds { min, max, .. } = self.bounds;
        if min == max {
            LimitReason::Fixed
        } else if self.waiting > 0 {
            LimitReason::ServerQueue
        } else if self.cooling > 0 || (self.refused && self.limit <= f64::from(min)) {
            LimitReason::Refused
        } else if self.limit >= f64::from(max) {
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
            self.limit = self.limit.clamp(f64::from(bounds.min), f64::from(bounds.max));
        }
    }

    /// Sets the number of requests queued at the server. While there are any, the limit does not grow: more dialogues
    /// would only wait longer.
    pub fn pressure(&mut self, waiting: u32) {
        self.waiting = waiting;
    }

    /// Records the end of a dialogue while `in_flight` others were running; `refused` if the server reported that it
    /// was full or that calls came too fast.
    pub fn ended(&mut self, refused: bool, in_flight: usize) {
        if self.cooling > 0 {
            self.cooling -= 1;
            return;
        }
        if refused {
            self.refused = true;
            self.limit = (self.limit * SHRINK).max(f64::from(self.bounds.min));
            self.cooling = self.limit as u32;
        } else if self.waiting == 0 && in_flight + 1 >= self.limit() {
            self.limit += if self.refused { 1.0 / self.limit } else { 1.0 };
            self.limit = self.limit.min(f64::from(self.bounds.max));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_while_used_and_shrinks_once_per_refusal() {
        let mut limiter = Limiter::new(InFlightBounds { start: 4, min: 2, max: 16 });
        for _ in 0..20 {
            limiter.ended(false, 0);
        }
        assert_eq!(limiter.limit(), 4, "an unused limit does not grow");
        for _ in 0..20 {
            let in_flight = limiter.limit() - 1;
            limiter.ended(false, in_flight);
        }
        assert_eq!(limiter.limit(), 16);
        for _ in 0..5 {
            limiter.ended(true, 15);
        }
        assert_eq!(limiter.limit(), 11, "refusals of one burst count once");
        for _ in 0..200 {
            limiter.ended(true, 3);
        }
        assert_eq!(limiter.limit(), 2);
        limiter.ended(false, 1);
        assert_eq!(limiter.limit(), 2, "growth is slow after a refusal");
    }

    #[test]
    fn it_does_not_grow_while_requests_wait_at_the_server() {
        let mut limiter = Limiter::new(InFlightBounds { start: 4, min: 2, max: 16 });
        limiter.pressure(3);
        limiter.ended(false, 3);
        assert_eq!(limiter.limit(), 4);
        limiter.pressure(0);
        limiter.ended(false, 3);
        assert_eq!(limiter.limit(), 5);
    }

    #[test]
    fn a_limit_says_why_it_stands_where_it_does() {
        let mut limiter = Limiter::new(InFlightBounds { start: 4, min: 2, max: 5 });
        assert_eq!([3, 4].map(|n| limiter.reason(n)), [LimitReason::Unused, LimitReason::Growing]);
        limiter.ended(false, 3);
        assert_eq!(limiter.reason(5), LimitReason::Maximum);
        limiter.pressure(1);
        assert_eq!(limiter.reason(5), LimitReason::ServerQueue);
        limiter.pressure(0);
        limiter.ended(true, 4);
        assert_eq!(limiter.reason(3), LimitReason::Refused);
        assert_eq!(Limiter::new(InFlightBounds::fixed(8)).reason(8).as_str(), "fixed");
    }

    #[test]
    fn other_bounds_move_the_limit_as_far_as_they_must() {
        let mut limiter = Limiter::new(InFlightBounds { start: 32, min: 1, max: 256 });
        limiter.set_bounds(InFlightBounds { start: 8, min: 1, max: 64 });
        assert_eq!(limiter.limit(), 32);
        limiter.set_bounds(InFlightBounds::fixed(128));
        assert_eq!(limiter.limit(), 128);
    }

    #[test]
    fn a_fixed_limit_stays() {
        let mut limiter = Limiter::new(InFlightBounds::fixed(8));
        for refused in [true, false, true, false] {
            for _ in 0..30 {
                limiter.ended(refused, 7);
            }
        }
        assert_eq!(limiter.limit(), 8);
    }
}
