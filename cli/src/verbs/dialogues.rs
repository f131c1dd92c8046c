//! `kgfleet dialogues`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::bail;
use domain::glob::Glob;
use domain::{DialogueKey, ModelLabel, Outcome, Record, RunId, TaskLabel, TaskProvenance, spelling};
use report::export::score_at;
use report::table::{Cell, Table};
use results::Summary;
use tasks::Limit;

use crate::files::export::ExportSource;
use crate::files::tables::{self, TableFormat};
use crate::kit::exit_code::{ExitCode, usage};
use crate::kit::output::note;
use crate::place::data_dir::{DataDir, OpenedBenchmark};
use crate::place::remote::MaybeRemote;
use crate::place::{completing, fetch, names};

/// List dialogues of a run, by the names that `kgfleet show` takes; also of a judged benchmark.
///
/// All conditions must hold. Dialogues stand in the order of the plan, or with --worst by their scores. Records of a
/// fleet are fetched first.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[arg(help = names::HELP_OF_READERS, add = completing::runs())]
    run: String,
    /// Only of models with labels like this; `*` stands for any text.
    #[arg(long, value_name = "GLOB", add = completing::models())]
    model: Option<String>,
    /// Only of tasks with labels like this; `*` stands for any text.
    #[arg(long, value_name = "GLOB", add = completing::tasks())]
    task: Option<String>,
    /// Only those without scores.
    #[arg(long)]
    failed: bool,
    /// Only those with an answer that hit a limit of evaluation.
    #[arg(long)]
    limited: bool,
    /// Only those with an answer that is empty, or was cut by the limit of tokens or refused by a filter of the provider,
    /// or with a prompt that the server cut.
    #[arg(long)]
    cut: bool,
    /// Only this many of those with a score, the lowest first.
    #[arg(long, value_name = "N", conflicts_with = "failed")]
    worst: Option<usize>,
    #[arg(long, value_enum, default_value = "text")]
    format: TableFormat,
    /// Write into a file instead of standard output; `xlsx` needs one.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    remote: MaybeRemote,
    #[command(flatten)]
    data: DataDir,
}

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

/// `kgfleet dialogues`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    tables::check(arguments.format, arguments.out.as_deref())?;
    let (_fetched, OpenedBenchmark { name, runs, .. }) =
        fetch::open(&arguments.remote, &arguments.data, &arguments.run)?;
    let mut listed = Vec::new();
    let (mut models, mut tasks) = (BTreeSet::new(), BTreeSet::new());
    let (model, task) = (arguments.model.as_deref().map(Glob::new), arguments.task.as_deref().map(Glob::new));
    let fits = |glob: &Option<Glob>, label: &str| glob.as_ref().is_none_or(|glob| glob.matches(label));
    for (dir, manifest) in runs {
        let run = manifest.run.clone();
        for read in ExportSource::open(dir, manifest)?.records() {
            let dialogue = Listed::of(&read?);
            let DialogueKey { model: of_model, task: of_task, .. } = &dialogue.summary.key;
            let is_wanted = fits(&model, of_model.as_str())
                && fits(&task, of_task.as_str())
                && (!arguments.failed || dialogue.summary.outcome.failure().is_some())
                && (!arguments.limited || dialogue.limit.is_some())
                && (!arguments.cut || dialogue.summary.oddities().is_cut())
                && (arguments.worst.is_none() || dialogue.score().is_some());
            models.insert(of_model.clone());
            tasks.insert(of_task.clone());
            if is_wanted {
                listed.push((run.clone(), dialogue));
            }
        }
    }
    known(arguments.model.as_deref(), "model", models.iter().map(ModelLabel::as_str))?;
    known(arguments.task.as_deref(), "task", tasks.iter().map(TaskLabel::as_str))?;
    if let Some(worst) = arguments.worst {
        let score = |listed: &(_, Listed)| listed.1.score().unwrap_or(f64::INFINITY);
        listed.sort_by(|a, b| score(a).total_cmp(&score(b)));
        listed.truncate(worst);
    }
    if listed.is_empty() {
        note!("no dialogue of {name} is like this");
    }
    tables::print(None, &[table(&listed)], arguments.format, arguments.out.as_deref())?;
    Ok(ExitCode::Success)
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
