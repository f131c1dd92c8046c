//! When a pool whose server ended may have another one.

use std::time::Duration;

use domain::pools::ServerEnd;

/// Whether another server may be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextTry {
    Ready,
    /// Not before then.
    Waits {
        until: Duration,
    },
    /// Not before somebody changed something.
    GivenUp,
}

/// After how long a pool is tried again, by how many of its servers failed in a row; then it is given up.
const RETRY_AFTER: [Duration; 3] = [minutes(5), minutes(15), minutes(45)];

/// After how long nodes are asked for again.
const NODES_AGAIN_AFTER: Duration = minutes(5);

const fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(60 * minutes)
}

/// What happened to the servers of a pool, as far as it decides about the next one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    in_a_row: usize,
    until: Duration,
    given_up: bool,
}

impl Failures {
    /// Takes the end of a server into account.
    pub fn note(&mut self, end: ServerEnd, at: Duration) {
        match end {
            ServerEnd::Done => *self = Self::default(),
            // That is about nodes, not about the model.
            ServerEnd::Disrupted => {}
            ServerEnd::NoNodes => self.until = at + NODES_AGAIN_AFTER,
            ServerEnd::Unusable => self.given_up = true,
            ServerEnd::Failed => {
                match RETRY_AFTER.get(self.in_a_row) {
                    Some(after) => self.until = at + *after,
                    None => self.given_up = true,
                }
                self.in_a_row += 1;
            }
        }
    }

    /// Takes it that a server came to serve: what failed before says nothing any more.
    pub fn note_serving(&mut self) {
        *self = Self::default();
    }

    /// Whether another server may be started.
    pub fn next_try(&self, now: Duration) -> NextTry {
        match self {
            Self { given_up: true, .. } => NextTry::GivenUp,
            Self { until, .. } if now < *until => NextTry::Waits { until: *until },
            _ => NextTry::Ready,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_about_the_model_counts_for_nothing_and_what_is_wrong_with_it_at_once() {
        let (mut failures, now) = (Failures::default(), minutes(7));
        failures.note(ServerEnd::Disrupted, now);
        assert_eq!(failures.next_try(now), NextTry::Ready);
        failures.note(ServerEnd::NoNodes, now);
        assert_eq!(failures.next_try(now), NextTry::Waits { until: minutes(12) });
        assert_eq!(failures.next_try(minutes(12)), NextTry::Ready);
        failures.note(ServerEnd::Failed, now);
        failures.note_serving();
        assert_eq!(failures, Failures::default());
        failures.note(ServerEnd::Unusable, now);
        assert_eq!(failures.next_try(minutes(999)), NextTry::GivenUp);
    }
}
