//! How long the calls of a model may take.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

/// From the request to the first token, where a model has no limit of its own: local models think, and wait in queues.
pub const FIRST_TOKEN: Duration = Duration::from_secs(15 * 60);

/// Between two tokens, where a model has no limit of its own.
pub const BETWEEN_TOKENS: Duration = Duration::from_secs(3 * 60);

/// From the request to the last token, where a model has no limit of its own.
pub const CALL: Duration = Duration::from_secs(60 * 60);

/// Longest limit that a model may have.
pub const TIME_LIMIT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Shortest time of a whole dialogue. Published ones took up to 7 130 s, nearly all of it waiting for providers.
pub const DIALOGUE_MIN: Duration = Duration::from_secs(2 * 60 * 60);

/// Calls for which a dialogue has time: one for each of its rounds.
const CALLS: u32 = 3;

/// The table `time_limits` of a model. What is not set has its default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimeLimits {
    /// From the request to the first token of an answer that is streamed. Default: [`FIRST_TOKEN`], or the whole call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_token: Option<HumanDuration>,
    /// Between two tokens of such an answer. Default: [`BETWEEN_TOKENS`], or the whole call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between_tokens: Option<HumanDuration>,
    /// From the request to the last token. Default: [`CALL`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<HumanDuration>,
}

impl TimeLimits {
    /// From the request to the first token.
    pub fn first_token(&self) -> Duration {
        self.first_token.map_or(FIRST_TOKEN, |limit| limit.0).min(self.call())
    }

    /// Between two tokens.
    pub fn between_tokens(&self) -> Duration {
        self.between_tokens.map_or(BETWEEN_TOKENS, |limit| limit.0).min(self.call())
    }

    /// From the request to the last token.
    pub fn call(&self) -> Duration {
        self.call.map_or(CALL, |limit| limit.0)
    }

    /// A whole dialogue. Calls that are repeated, and waits for rate budgets, share its time.
    pub fn dialogue(&self) -> Duration {
        (self.call() * CALLS).max(DIALOGUE_MIN)
    }

    /// The first limit that cannot be, and the problem. Only answers that are `streamed` have tokens.
    pub fn problem(&self, streamed: bool) -> Option<(&'static str, String)> {
        let call = HumanDuration(self.call());
        for (name, limit, is_of_tokens) in [
            ("time_limits.call", self.call, false),
            ("time_limits.first_token", self.first_token, true),
            ("time_limits.between_tokens", self.between_tokens, true),
        ] {
            let Some(limit) = limit else { continue };
            if is_of_tokens && !streamed {
                let problem = "is for answers that are streamed, which those of this model are not";
                return Some((name, format!("{problem}; `call` limits the others")));
            }
            if limit.0.is_zero() {
                return Some((name, "is 0; it must be above 0".to_owned()));
            }
            if limit.0 > TIME_LIMIT_MAX {
                return Some((
                    name,
                    format!("is {limit}; it may be {} at most", HumanDuration(TIME_LIMIT_MAX)),
                ));
            }
            if limit > call {
                return Some((name, format!("is {limit}, and longer than the whole call (`call`, {call})")));
            }
        }
        None
    }
}

/// A duration as people write it: `15m`, `1h 30m`, `2.5s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HumanDuration(pub Duration);

impl FromStr for HumanDuration {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parsed: Option<SignedDuration> = text.parse().ok();
        let duration = parsed.and_then(|parsed| Duration::try_from(parsed).ok());
        duration.map(Self).ok_or("expected a time such as \"15m\" or \"1h 30m\"")
    }
}

impl TryFrom<String> for HumanDuration {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<HumanDuration> for String {
    fn from(duration: HumanDuration) -> Self {
        duration.to_string()
    }
}

impl fmt::Display for HumanDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = SignedDuration::try_from(self.0).unwrap_or(SignedDuration::MAX);
        f.pad(&format!("{shown:#}"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn limits(json: Value) -> Result<TimeLimits, String> {
        serde_json::from_value(json).map_err(|error| error.to_string())
    }

    fn minutes(minutes: u64) -> Duration {
        Duration::from_secs(60 * minutes)
    }

    #[test]
    fn limits_are_written_as_people_do_and_read_back() {
        for (text, seconds, shown) in [
            ("15m", 900.0, "15m"),
            ("1h 30m", 5_400.0, "1h 30m"),
            ("90 seconds", 90.0, "1m 30s"),
            ("200ms", 0.2, "200ms"),
        ] {
            let duration: HumanDuration = text.parse().unwrap();
            assert_eq!((duration.0.as_secs_f64(), duration.to_string().as_str()), (seconds, shown), "{text}");
            let given = limits(json!({"call": text})).unwrap();
            assert_eq!(limits(serde_json::to_value(given).unwrap()), Ok(given));
        }
        for wrong in [json!("soon"), json!("-5m"), json!(""), json!("15")] {
            assert!(limits(json!({"call": wrong})).unwrap_err().contains("15m"), "{wrong}");
        }
        assert!(limits(json!({"call": 900})).unwrap_err().contains("expected a string"));
        assert!(limits(json!({"first_tokens": "1m"})).is_err());
    }

    #[test]
    fn what_is_not_set_has_its_default_and_no_wait_is_longer_than_the_call() {
        let default = TimeLimits::default();
        let told = |of: TimeLimits| [of.first_token(), of.between_tokens(), of.call(), of.dialogue()];
        assert_eq!(told(default), [minutes(15), minutes(3), minutes(60), minutes(180)]);
        let short = limits(json!({"call": "2m"})).unwrap();
        assert_eq!(told(short), [minutes(2), minutes(2), minutes(2), DIALOGUE_MIN]);
        let long = limits(json!({"call": "5h", "first_token": "4h"})).unwrap();
        assert_eq!(told(long), [minutes(240), minutes(3), minutes(300), minutes(900)]);
        assert_eq!([default, short, long].map(|limits| limits.problem(true)), [None, None, None]);
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        for (json, streamed, name, words) in [
            (json!({"call": "0s"}), true, "time_limits.call", "above 0"),
            (json!({"call": "25h"}), true, "time_limits.call", "is 25h; it may be 24h at most"),
            (
                json!({"between_tokens": "2h"}),
                true,
                "time_limits.between_tokens",
                "longer than the whole call (`call`, 1h)",
            ),
            (json!({"first_token": "20m", "call": "10m"}), true, "time_limits.first_token", "`call`, 10m"),
            (json!({"first_token": "1m"}), false, "time_limits.first_token", "`call` limits the others"),
        ] {
            let (field, problem) = limits(json.clone()).unwrap().problem(streamed).unwrap();
            assert!(field == name && problem.contains(words), "{json}: {field} {problem}");
        }
    }
}
