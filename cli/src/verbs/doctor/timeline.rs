//! What a benchmark did at each moment: dialogues that were open, and what they waited for.

/// Longest time without any open dialogue that still belongs to a benchmark, in seconds. A longer one is a pause, such as a night
/// between two commands.
const PAUSE_S: f64 = 30.0;

/// The share of the time in which at most so many dialogues were open that counts as all of it: the peak lasts a while.
const PEAK_SHARE: f64 = 0.9;

/// A dialogue with its times, in seconds since some moment.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AskedDialogue {
    pub name: String,
    pub model: String,
    /// The server that answered, as far as records tell servers of a model apart.
    pub replica: String,
    pub started_s: f64,
    pub ended_s: f64,
    pub calls: Vec<Call>,
    /// Calls that failed.
    pub failed: usize,
    /// Calls of rounds that were asked at two servers.
    pub hedged: Vec<CallOfTwo>,
    /// `None` if it has no headline score.
    pub scored: Option<ScoredCase>,
    /// How the server had answered the canary prompts, if it was asked.
    pub canary: Option<String>,
}

/// The headline score of a dialogue, and what it is about.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ScoredCase {
    /// The task, with its run.
    pub task: String,
    pub case: String,
    pub score: f64,
}

/// One of two calls for one answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CallOfTwo {
    pub server: String,
    /// Whether its answer counts.
    pub has_won: bool,
}

/// A call that was answered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Call {
    pub sent_s: f64,
    pub answered_s: f64,
    /// Tokens of the answer, if the server counts them.
    pub tokens: Option<u64>,
}

impl Call {
    pub(super) fn seconds(&self) -> f64 {
        (self.answered_s - self.sent_s).max(0.0)
    }

    /// Seconds for each token of the answer.
    pub(super) fn pace(&self) -> Option<f64> {
        let tokens = self.tokens.filter(|tokens| *tokens > 0)?;
        Some(self.seconds() / tokens as f64)
    }
}

impl AskedDialogue {
    pub(super) fn seconds(&self) -> f64 {
        (self.ended_s - self.started_s).max(0.0)
    }

    pub(super) fn asking_s(&self) -> f64 {
        self.calls.iter().map(Call::seconds).sum()
    }

    /// From its start to its first prompt.
    pub(super) fn before_s(&self) -> f64 {
        self.calls.first().map_or(0.0, |first| (first.sent_s - self.started_s).max(0.0))
    }

    /// Between an answer and the next prompt, and after the last answer: its answers were judged.
    pub(super) fn judging_s(&self) -> f64 {
        let between = self.calls.windows(2).map(|pair| (pair[1].sent_s - pair[0].answered_s).max(0.0));
        let after = self.calls.last().map_or(0.0, |last| (self.ended_s - last.answered_s).max(0.0));
        between.sum::<f64>() + after
    }
}

/// See the text of the module. Pauses are left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Timeline {
    /// From the first dialogue to the last, without pauses.
    pub wall_s: f64,
    pub pauses: usize,
    /// The most dialogues that were open at once, but for a tenth of the time.
    pub peak: usize,
    /// The share of the places at the peak that stood empty while dialogues were still to be begun.
    pub empty: f64,
    /// From the begin of the last dialogue to the end.
    pub tail_s: f64,
    /// The share of the places at the peak that stood empty in the tail.
    pub tail_empty: f64,
}

impl Timeline {
    pub(super) fn of(dialogues: &[AskedDialogue]) -> Self {
        // Each moment at which something changes, with how many more are open from then on.
        let mut changes: Vec<(f64, i64)> = Vec::with_capacity(2 * dialogues.len());
        for dialogue in dialogues {
            changes.push((dialogue.started_s, 1));
            changes.push((dialogue.ended_s.max(dialogue.started_s), -1));
        }
        // At one moment ends come first, so that a place that is taken at once counts once.
        changes.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let last_begun = dialogues.iter().map(|dialogue| dialogue.started_s).fold(f64::MIN, f64::max);
        // Stretches of time with so many open dialogues, before the last one began and after.
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let (mut open, mut pauses) = (0_i64, 0);
        for pair in changes.windows(2) {
            open += pair[0].1;
            let length = pair[1].0 - pair[0].0;
            if length <= 0.0 {
                continue;
            }
            if open <= 0 && length > PAUSE_S {
                pauses += 1;
                continue;
            }
            let open = usize::try_from(open).unwrap_or(0);
            let of = if pair[0].0 < last_begun { &mut before } else { &mut after };
            of.push((open, length));
        }
        let length = |stretches: &[(usize, f64)]| stretches.iter().map(|(_, length)| length).sum::<f64>();
        let peak = peak(before.iter().chain(&after).copied().collect());
        let empty = |stretches: &[(usize, f64)]| {
            let missing = stretches.iter().map(|(open, length)| peak.saturating_sub(*open) as f64 * length);
            let all = peak as f64 * length(stretches);
            if all > 0.0 { missing.sum::<f64>() / all } else { 0.0 }
        };
        Self {
            wall_s: length(&before) + length(&after),
            pauses,
            peak,
            empty: empty(&before),
            tail_s: length(&after),
            tail_empty: empty(&after),
        }
    }
}

fn peak(mut stretches: Vec<(usize, f64)>) -> usize {
    stretches.sort_by_key(|(open, _)| *open);
    let all: f64 = stretches.iter().map(|(_, length)| length).sum();
    let mut passed = 0.0;
    for (open, length) in &stretches {
        passed += length;
        if passed >= PEAK_SHARE * all {
            return *open;
        }
    }
    stretches.last().map_or(0, |(open, _)| *open)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dialogue(started_s: f64, ended_s: f64) -> AskedDialogue {
        let call = Call { sent_s: started_s, answered_s: ended_s, tokens: Some(10) };
        AskedDialogue {
            name: "m/t/0".to_owned(),
            model: "m".to_owned(),
            replica: "r".to_owned(),
            started_s,
            ended_s,
            calls: vec![call],
            failed: 0,
            hedged: Vec::new(),
            scored: None,
            canary: None,
        }
    }

    #[test]
    fn a_timeline_counts_places_and_leaves_pauses_out() {
        // Two places, full for ten seconds; then one of them, alone for five.
        let full = [dialogue(0.0, 5.0), dialogue(0.0, 5.0), dialogue(5.0, 10.0), dialogue(5.0, 15.0)];
        let timeline = Timeline::of(&full);
        assert_eq!((timeline.wall_s, timeline.peak, timeline.pauses), (15.0, 2, 0));
        assert_eq!((timeline.empty, timeline.tail_s), (0.0, 10.0));
        assert!((timeline.tail_empty - 0.25).abs() < 1e-9, "{timeline:?}");
        // The next morning.
        let with_night: Vec<AskedDialogue> = full
            .iter()
            .cloned()
            .chain([dialogue(50_000.0, 50_005.0), dialogue(50_000.0, 50_005.0)])
            .collect();
        let timeline = Timeline::of(&with_night);
        assert_eq!((timeline.wall_s, timeline.pauses), (20.0, 1));
        assert_eq!(Timeline::of(&[]), Timeline::default());
    }

    #[test]
    fn a_dialogue_is_asking_judging_or_neither() {
        let mut dialogue = dialogue(0.0, 20.0);
        dialogue.calls = vec![
            Call { sent_s: 1.0, answered_s: 4.0, tokens: Some(30) },
            Call { sent_s: 6.0, answered_s: 16.0, tokens: None },
        ];
        assert_eq!((dialogue.before_s(), dialogue.asking_s(), dialogue.judging_s()), (1.0, 13.0, 6.0));
        assert_eq!((dialogue.calls[0].pace(), dialogue.calls[1].pace()), (Some(0.1), None));
    }
}
