//! Prints runs and their models as lines and tables. The coordinator computes the values, `report` makes the tables.

use std::io::{self, Write};

use domain::TaskLabel;
use domain::control::BenchmarkView;
pub use report::tables::fleet::{
    counts_and_pace, headline, limits, models, pools, progress, runs, share, spent, stage_runs, trouble,
};
use report::views::Grid;

use crate::kit::output::printable;
use crate::kit::screen::Screen;

/// Maximum number of messages below a table.
const MESSAGES_SHOWN_MAX: usize = 3;

/// Who did what to a run.
pub fn history(view: &BenchmarkView, out: &mut dyn Write) -> io::Result<()> {
    for entry in &view.history {
        let at = entry.at.strftime("%Y-%m-%d %H:%M:%S");
        writeln!(out, "{at} {} by {}", printable(&entry.what), printable(&entry.who))?;
    }
    Ok(())
}

/// Mean headline scores by task and model, and below them the reasons for missing scores. `score_of` returns the
/// score of a task, if known.
pub fn scores(
    view: &BenchmarkView,
    score_of: impl Fn(&TaskLabel) -> Option<String>,
    screen: Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    screen.table(&Grid::of_view(view, score_of).table(), out)?;
    failures(view, screen, out)
}

/// Why dialogues have no scores: counts by cause, and the most frequent messages.
pub fn failures(view: &BenchmarkView, screen: Screen, out: &mut dyn Write) -> io::Result<()> {
    for (cause, count) in &view.failures {
        screen.line(&format!("not scored: {count} dialogues ({cause})"), out)?;
        let of_cause = view.refusals.iter().filter(|refusal| refusal.cause == *cause);
        for refusal in of_cause.take(MESSAGES_SHOWN_MAX) {
            let (model, message) = (printable(refusal.model.as_str()), printable(&refusal.message));
            screen.line(&format!("  {} times {model}: {message}", refusal.dialogues), out)?;
        }
    }
    Ok(())
}

/// Prints notes on reading the scores on standard error, once.
pub fn warn(view: &BenchmarkView) {
    for note in &view.notes {
        eprintln!("warning: {}", printable(note));
    }
}

#[cfg(test)]
mod tests {
    use domain::control::{CellView, Condition, ModelView, Pace, RefusalView, RunPhase};
    use domain::{FailureCause, Mean};

    use super::*;

    /// A model with 26 tasks of one dialogue each, the first of them scored.
    fn model(name: &str, scored: u64) -> ModelView {
        ModelView {
            model: name.into(),
            planned: 26,
            scored,
            failed: 0,
            units_pending: 3,
            units_leased: 0,
            units_dead: 0,
            units_suspect: 0,
            workers: 1,
            parked: None,
            pace: Pace { rate: 1.26, tokens_per_second: 333.3, eta_s: Some(13.6) },
            blocked: None,
            mean: Mean::of((0..26).map(|task| (task < scored).then_some(0.148))),
            ..ModelView::default()
        }
    }

    fn run(models: Vec<ModelView>) -> BenchmarkView {
        let sum = |of: fn(&ModelView) -> u64| models.iter().map(of).sum();
        let cells = (0..26_u64).flat_map(|task| {
            models.iter().map(move |model| CellView {
                task: format!("task-{task}").as_str().into(),
                model: model.model.clone(),
                scored: u64::from(task < model.scored),
                failed: 0,
                planned: 1,
                mean: (task < model.scored).then_some(0.148),
                missing: 0,
                odd: Vec::new(),
            })
        });
        BenchmarkView {
            run: "20261122-120000-abcdef01".into(),
            name: "name".to_owned(),
            phase: RunPhase::Active,
            created_at: "2026-11-22T12:00:00Z".parse().unwrap(),
            generation: 1,
            planned: sum(|model| model.planned),
            scored: sum(|model| model.scored),
            failed: 0,
            failures: Vec::new(),
            rate: models.iter().map(|model| model.pace.rate).sum(),
            tokens_per_second: models.iter().map(|model| model.pace.tokens_per_second).sum(),
            eta_s: models.iter().filter_map(|model| model.pace.eta_s).reduce(f64::max),
            trouble: None,
            cells: cells.collect(),
            models,
            ..BenchmarkView::default()
        }
    }

    #[test]
    fn an_interrupted_run_says_what_its_means_cover() {
        let mut out = Vec::new();
        let view = run(vec![model("part", 9), model("whole", 26), model("none", 0)]);
        scores(&view, |_| None, Screen::FILE, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let total = text.lines().last().unwrap();
        assert_eq!(
            total.split_whitespace().collect::<Vec<_>>().join(" "),
            "mean of tasks 0.148 (9/26) 0.148 -"
        );
    }

    #[test]
    fn what_nobody_works_at_has_no_pace() {
        let run = BenchmarkView {
            condition: Some(Condition::Interrupted),
            trouble: Some("the record log is damaged".to_owned()),
            ..run(vec![model("m", 9)])
        };
        let expected =
            format!("run {} interrupted: 9/26 dialogues, 0 failed; the record log is damaged", run.run);
        assert_eq!(headline(&run), expected);
    }

    #[test]
    fn the_commonest_words_of_a_server_stand_under_the_table() {
        let refusal = RefusalView {
            model: "m".into(),
            cause: FailureCause::BadRequest,
            message: "HTTP 404 from http://h/x: Not Found".to_owned(),
            dialogues: 520,
        };
        let view = BenchmarkView {
            failures: vec![(FailureCause::BadRequest, 520)],
            refusals: vec![refusal],
            ..run(vec![model("m", 0)])
        };
        let mut out = Vec::new();
        scores(&view, |_| None, Screen::FILE, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let expected =
            "not scored: 520 dialogues (bad-request)\n  520 times m: HTTP 404 from http://h/x: Not Found\n";
        assert!(text.ends_with(expected), "{text}");
    }
}
