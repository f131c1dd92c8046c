//! A list of dialogues, by the names that `kgfleet show` takes.

use std::collections::BTreeSet;

use anyhow::bail;
use domain::glob::Glob;
use domain::{DialogueKey, ModelLabel, Outcome, Record, RunId, TaskLabel, TaskProvenance, spelling};
use report::export::score_at;
use report::table::{Cell, Table};
use results::Summary;
use tasks::Limit;

use super::Listing;
use crate::files::export::ExportSource;
use crate::files::tables;
use crate::kit::exit_code::usage;
use crate::kit::output::note;
use crate::place::opened::OpenedBenchmark;

/// A dialogue of the list.
struct Listed {
    summary: Summary,
    /// The limit that one of its answers hit.
    limit: Option<Limit>,
}

impl Listed {
    fn of(record: &Record) -> Self {
        let limit = match &record.outcome {
            Outcome::Scored { infos, .. } | Outcome::Unscored { infos, .. } => Limit::in_infos(infos),
            Outcome::Failed { .. } => None,
        };
        Self { summary: Summary::of(record), limit }
    }

    /// The score that stands for the dialogue.
    fn score(&self) -> Option<f64> {
        let TaskProvenance { class, version, .. } = &self.summary.provenance.task;
        score_at(self.summary.outcome.scores()?, report::input::headline(class, version))
    }
}

/// Lists those dialogues of a benchmark that are wanted.
pub(super) fn show(opened: &OpenedBenchmark, wanted: &Listing) -> anyhow::Result<()> {
    let mut listed = Vec::new();
    let (mut models, mut tasks) = (BTreeSet::new(), BTreeSet::new());
    let (model, task) = (wanted.model.as_deref().map(Glob::new), wanted.task.as_deref().map(Glob::new));
    let fits = |glob: &Option<Glob>, label: &str| glob.as_ref().is_none_or(|glob| glob.matches(label));
    for (dir, manifest) in &opened.runs {
        for read in ExportSource::open(dir, manifest)?.records() {
            let dialogue = Listed::of(&read?);
            let DialogueKey { model: of_model, task: of_task, .. } = &dialogue.summary.key;
            let is_wanted = fits(&model, of_model.as_str())
                && fits(&task, of_task.as_str())
                && (!wanted.failed || dialogue.summary.outcome.failure().is_some())
                && (!wanted.limited || dialogue.limit.is_some())
                && (!wanted.cut || dialogue.summary.oddities().is_cut())
                && (wanted.worst.is_none() || dialogue.score().is_some());
            models.insert(of_model.clone());
            tasks.insert(of_task.clone());
            if is_wanted {
                listed.push((manifest.run.clone(), dialogue));
            }
        }
    }
    known(wanted.model.as_deref(), "model", models.iter().map(ModelLabel::as_str))?;
    known(wanted.task.as_deref(), "task", tasks.iter().map(TaskLabel::as_str))?;
    if let Some(worst) = wanted.worst {
        let score = |listed: &(_, Listed)| listed.1.score().unwrap_or(f64::INFINITY);
        listed.sort_by(|a, b| score(a).total_cmp(&score(b)));
        listed.truncate(worst);
    }
    if listed.is_empty() {
        note!("no dialogue of {} is like this", opened.name);
    }
    tables::print(None, &[table(&listed)], wanted.format, wanted.out.as_deref())
}

fn table(listed: &[(RunId, Listed)]) -> Table {
    let mut table = Table::default()
        .left(["run", "dialogue"])
        .right(["score"])
        .left(["not scored", "limit", "odd", "case"])
        .right(["rounds", "seconds"]);
    for (run, dialogue) in listed {
        let summary = &dialogue.summary;
        table.row([
            Cell::from(run.as_str()),
            Cell::from(summary.key.to_string()),
            Cell::number(dialogue.score(), 3),
            summary.outcome.failure().map_or(Cell::Empty, |cause| Cell::from(cause.as_str())),
            dialogue.limit.map_or(Cell::Empty, |limit| Cell::from(limit.as_str())),
            Cell::from(summary.oddities().names()),
            Cell::from(summary.provenance.task.case.as_str()),
            Cell::Count(summary.rounds.len() as u64),
            Cell::Number(summary.time().dialogue_s, 2),
        ]);
    }
    table
}

/// Refuses a pattern that fits no label.
fn known<'k>(
    pattern: Option<&str>,
    what: &str,
    labels: impl Iterator<Item = &'k str> + Clone,
) -> anyhow::Result<()> {
    let Some(pattern) = pattern else { return Ok(()) };
    let glob = Glob::new(pattern);
    if !labels.clone().any(|label| glob.matches(label)) {
        let offered = spelling::offer(&pattern.replace('*', ""), labels);
        bail!(usage!("no {what} with a record is called `{pattern}`; {offered}"));
    }
    Ok(())
}
