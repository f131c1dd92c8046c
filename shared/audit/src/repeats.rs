//! Counts repetitions of the same deed together: a plain state machine that takes the time.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;

use crate::entry::Deed;

/// Different deeds whose repetitions are counted at a time. What comes beyond them is counted as one deed of many.
pub(crate) const DEEDS_MAX: usize = 1_024;

/// What the deeds beyond [`DEEDS_MAX`] are called.
const OTHERS: &str = "others";

/// Deeds of the latest window of each.
#[derive(Debug, Default)]
pub(crate) struct Repeats(HashMap<Deed, Heard>);

/// When a deed was heard of.
#[derive(Debug)]
struct Heard {
    since: Duration,
    window: Duration,
    last: Timestamp,
    /// Repetitions that no line says yet.
    unsaid: u64,
}

impl Repeats {
    /// Hears of a deed. Returns the deed to write now; `None` if it is a repetition within `window`, which is counted.
    pub(crate) fn hear(
        &mut self,
        deed: Deed,
        window: Duration,
        now: Duration,
        at: Timestamp,
    ) -> Option<Deed> {
        let is_new = !self.0.contains_key(&deed);
        let deed = if is_new && self.0.len() >= DEEDS_MAX {
            Deed { act: deed.act, who: OTHERS.to_owned(), ..Deed::default() }
        } else {
            deed
        };
        match self.0.get_mut(&deed) {
            Some(heard) => {
                heard.unsaid += 1;
                heard.last = at;
                None
            }
            None => {
                self.0.insert(deed.clone(), Heard { since: now, window, last: at, unsaid: 0 });
                Some(deed)
            }
        }
    }

    /// Forgets a deed whose line could not be written, so that the next one is tried again.
    pub(crate) fn forget(&mut self, deed: &Deed) {
        self.0.remove(deed);
    }

    /// Ends the windows that are over, or all of them, and returns the repetitions that no line says yet: the deed, its last
    /// time and how many.
    pub(crate) fn due(&mut self, now: Duration, all: bool) -> Vec<(Deed, Timestamp, u64)> {
        let over = |heard: &Heard| all || now.saturating_sub(heard.since) >= heard.window;
        let ended: Vec<Deed> =
            self.0.iter().filter(|(_, heard)| over(heard)).map(|(deed, _)| deed.clone()).collect();
        let mut due = Vec::new();
        for deed in ended {
            let Some(heard) = self.0.remove(&deed) else { continue };
            if heard.unsaid > 0 {
                due.push((deed, heard.last, heard.unsaid));
            }
        }
        due.sort_by_key(|(_, last, _)| *last);
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn refused(from: &str) -> Deed {
        Deed { from: from.to_owned(), act: "refused".to_owned(), ..Deed::default() }
    }

    #[test]
    fn a_flood_is_two_lines_however_long_it_is() {
        let (mut repeats, at) = (Repeats::default(), Timestamp::UNIX_EPOCH);
        assert_eq!(repeats.hear(refused("a"), MINUTE, Duration::ZERO, at), Some(refused("a")));
        for _ in 0..1_000 {
            assert_eq!(repeats.hear(refused("a"), MINUTE, MINUTE / 2, at), None);
        }
        assert!(repeats.due(MINUTE / 2, false).is_empty());
        assert_eq!(repeats.due(MINUTE, false), [(refused("a"), at, 1_000)]);
        assert!(repeats.due(MINUTE * 9, true).is_empty(), "all is said");
        assert!(repeats.hear(refused("a"), MINUTE, MINUTE, at).is_some(), "a new window");
    }

    #[test]
    fn what_is_kept_is_bounded_however_many_there_are() {
        let (mut repeats, at) = (Repeats::default(), Timestamp::UNIX_EPOCH);
        let written = (0..10 * DEEDS_MAX)
            .filter_map(|number| repeats.hear(refused(&number.to_string()), MINUTE, Duration::ZERO, at));
        assert_eq!(written.count(), DEEDS_MAX + 1);
        assert_eq!(repeats.0.len(), DEEDS_MAX + 1);
        let due = repeats.due(MINUTE, false);
        assert_eq!((due.len(), due[0].0.who.as_str()), (1, OTHERS));
        assert_eq!(due[0].2 as usize, 9 * DEEDS_MAX - 1);
    }
}
