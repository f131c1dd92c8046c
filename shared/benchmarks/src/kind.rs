//! What a kind of benchmark says of itself.

use crate::judging::{Judging, Setting, Stage};
use crate::results;
use crate::showing::Showing;

/// A kind of benchmark. Whoever adds one is told by the compiler what is missing.
pub struct Kind {
    /// The name in configurations; those of [exact](crate::kinds::exact) benchmarks name no kind.
    pub name: &'static str,
    /// What it measures, for people.
    pub about: &'static str,
    /// How answers are judged; `None` where every score is computed from the answer alone.
    ///
    /// A benchmark without judges is one run: it is named by the time of its submission, its manifest is its document, and its
    /// rows are tasks. A judged one has a run for each model, so that answers are judged while other models are asked: it is
    /// named by what it asks, has a document of its own, and its rows are stages and results.
    pub judging: Option<&'static Judging>,
    /// How they are judged in earlier editions, the oldest first: in other words. A configuration that names no edition has the first;
    /// the one of `judging` is the newest.
    pub former: &'static [&'static Judging],
    /// Its tables and figures, beside the numbers that lists and pages show of all kinds: its own, or [`results::SHOWING`].
    pub showing: Option<&'static Showing>,
}

impl Kind {
    /// What it shows that not every kind does.
    pub fn own_showing(&self) -> Option<&'static Showing> {
        self.showing.filter(|showing| !std::ptr::eq(*showing, &results::SHOWING))
    }

    /// The number of the newest edition, from 1.
    pub fn edition(&self) -> u32 {
        self.former.len() as u32 + 1
    }

    /// How answers are judged in an edition, the first where none is named; `None` if there is none of this number.
    pub fn judging_in(&self, edition: Option<u32>) -> Option<&'static Judging> {
        let edition = edition.unwrap_or(1);
        if edition == self.edition() {
            return self.judging;
        }
        self.former.get(edition.checked_sub(1)? as usize).copied()
    }

    /// The judging stages; none of a kind without judges.
    pub fn stages(&self) -> &'static [Stage] {
        self.judging.map_or(&[], |judging| judging.stages)
    }

    /// The numbers that a configuration may choose otherwise.
    pub fn settings(&self) -> &'static [Setting] {
        self.judging.map_or(&[], |judging| judging.settings)
    }
}
