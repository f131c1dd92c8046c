//! Re-evaluation: judges recorded answers again and compares every value with the recorded one. On published dialogues, it
//! must give the published scores.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use domain::Scores;
use indicatif::{ProgressBar, ProgressStyle};
use jiff::tz::TimeZone;
use results::llmkgbench::{Document, discover, python_time, writer};
use serde::Serialize;
use tasks::{Compat, Effort, EvaluationLimits, GraphLibrary};

mod compare;
mod differences;
mod graphs;
mod pipeline;
mod replay;
mod tally;

pub use graphs::GraphArgument;
pub use graphs::documents as graph_documents;
pub use tally::{AgreementCounts, Reevaluation, TaskCounts};

use crate::engine::worker::threads;
use crate::files::exercises::BuiltExercises;
use crate::files::tables::create;
use crate::kit::output::printable;
use crate::place::packs::open_pack;
use compare::{LeafVerdict, Side, compare};
use differences::{DifferencePlace, Differences};
use pipeline::ReplayEvent;
use tally::AgreementTally;

/// What to re-evaluate and what to write.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Result files, folders or zip archives.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Password of encrypted archives.
    #[arg(long, value_name = "P", env = "KGFLEET_PASSWORD", hide_env_values = true)]
    password: Option<String>,
    /// A graph that recorded cases refer to: a document (.ttl .nt .jsonld .rdf) or a zip archive with one.
    #[arg(long = "graph", value_name = "NAME=FILE")]
    graphs: Vec<GraphArgument>,
    /// The pack that the records belong to: its graphs, compatibility mode and limits. Default: published exercises,
    /// judged as in the published run.
    #[arg(long, value_name = "PACK")]
    pack: Option<String>,
    /// Write the recorded and the new scores of every record as JSON lines: file, record, recorded, ours.
    #[arg(long, value_name = "FILE")]
    verdicts: Option<PathBuf>,
    /// Write every difference as a JSON line: file, record, key, recorded, ours.
    #[arg(long, value_name = "FILE")]
    differences: Option<PathBuf>,
    /// Write the re-evaluated result files into this folder; those of encrypted archives are encrypted again.
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Write texts of encrypted archives in plaintext, in --differences and --output.
    #[arg(long)]
    plaintext: bool,
    /// Number of judging threads. Default: one per CPU.
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
}

/// Problems that are printed one by one; the rest is counted.
const PROBLEMS_PRINTED_MAX: u64 = 20;

/// Progress and problems on standard error.
struct Talk {
    progress: ProgressBar,
    problems: u64,
}

impl Talk {
    fn new() -> Self {
        let progress =
            if io::stderr().is_terminal() { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
        if let Ok(style) = ProgressStyle::with_template("{spinner} {pos} dialogues, {per_sec}, {elapsed}") {
            progress.set_style(style);
        }
        progress.enable_steady_tick(Duration::from_millis(100));
        Self { progress, problems: 0 }
    }

    /// A file or record could not be used.
    fn problem(&mut self, message: &str) {
        self.problems += 1;
        if self.problems <= PROBLEMS_PRINTED_MAX {
            let message = printable(message);
            self.progress.suspend(|| eprintln!("{message}"));
        }
    }

    fn finish(&self) {
        self.progress.finish_and_clear();
        if self.problems > PROBLEMS_PRINTED_MAX {
            eprintln!("… and {} more problems like these", self.problems - PROBLEMS_PRINTED_MAX);
        }
    }
}

/// Re-evaluates.
///
/// # Errors
/// Nothing can be read or written. Errors of single files and records are told and counted.
pub fn run(options: &Options) -> anyhow::Result<Reevaluation> {
    let started = Instant::now();
    let rules = Rules::of(options)?;
    let exercises = BuiltExercises::new(rules.graphs, rules.compat);
    let differences = |file| Differences::new(file, options.plaintext);
    let mut session = Session {
        options,
        talk: Talk::new(),
        effort: Effort::full(rules.limits),
        tally: AgreementTally::default(),
        verdicts: options.verdicts.as_deref().map(create).transpose()?,
        differences: options.differences.as_deref().map(create).transpose()?.map(differences),
    };
    let mut documents = Vec::new();
    for found in discover(&options.paths, options.password.as_deref()) {
        match found {
            Ok(document) => documents.push(document),
            Err(error) => session.file_problem(&error.to_string()),
        }
    }
    match &options.output {
        None => session.judge(&documents, &exercises, |_| Ok(()))?,
        Some(folder) => {
            std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
            for document in &documents {
                session.judge_into(document, &exercises, folder)?;
            }
        }
    }
    if let Some(differences) = session.differences.take() {
        differences.finish().context("cannot write the differences")?;
    }
    if let Some(mut verdicts) = session.verdicts.take() {
        verdicts.flush().context("cannot write the verdicts")?;
    }
    session.talk.finish();
    Ok(session.tally.finish(started.elapsed()))
}

/// The rules of judging: those of the published run, or of a pack.
struct Rules {
    graphs: GraphLibrary,
    compat: Compat,
    limits: EvaluationLimits,
}

impl Rules {
    fn of(options: &Options) -> anyhow::Result<Self> {
        let pack = options.pack.as_deref().map(open_pack).transpose()?;
        let (of_pack, compat, limits) = match &pack {
            None => (GraphLibrary::builder(), Compat::PUBLISHED, EvaluationLimits::compat()),
            Some(pack) => (pack.graphs()?, pack.header().compat, pack.header().limits),
        };
        let graphs = graphs::library(of_pack, &options.graphs, options.password.as_deref())?;
        Ok(Self { graphs, compat, limits })
    }
}

/// Recorded and new scores of a record, as written to [`Options::verdicts`].
#[derive(Serialize)]
struct VerdictLine<'a> {
    #[serde(flatten)]
    place: DifferencePlace<'a>,
    recorded: &'a Scores,
    ours: &'a Scores,
}

struct Session<'a> {
    options: &'a Options,
    talk: Talk,
    effort: Effort,
    verdicts: Option<BufWriter<File>>,
    tally: AgreementTally,
    differences: Option<Differences<BufWriter<File>>>,
}

impl Session<'_> {
    /// Judges documents; `keep` gets every readable record, with its new verdict if there is one.
    fn judge(
        &mut self,
        documents: &[Document],
        exercises: &BuiltExercises,
        mut keep: impl FnMut(&results::llmkgbench::ResultRecord) -> Result<(), writer::WriteError>,
    ) -> anyhow::Result<()> {
        let names: Vec<String> = documents.iter().map(Document::name).collect();
        let protected: Vec<bool> = documents.iter().map(Document::is_protected).collect();
        let effort = self.effort;
        let keeps = self.options.output.is_some();
        pipeline::run(documents, exercises, &effort, threads(self.options.threads), |event| {
            match event {
                ReplayEvent::File(error) => self.file_problem(&error.to_string()),
                ReplayEvent::Unreadable(error) => self.record_problem(&error.to_string()),
                ReplayEvent::Unusable { document, read, error } => {
                    self.record_problem(&format!("{}: record {}: {error}", names[document], read.index));
                    keep(&read.record)?;
                }
                ReplayEvent::Judged { document, mut read, class, rejudged } => {
                    for repair in &read.repairs {
                        self.talk.problem(&format!("{}: record {}: {repair}", names[document], read.index));
                    }
                    let place = DifferencePlace {
                        file: &names[document],
                        record: read.index,
                        model: read.record.model_id(),
                        task: read.record.task_label(),
                    };
                    let recorded = Side { scores: read.record.scores(), infos: read.record.infos() };
                    let ours =
                        Side { scores: &rejudged.evaluation.scores, infos: &rejudged.evaluation.infos };
                    let leaves = compare(class, recorded, ours);
                    self.tally.of(place.task).add(&rejudged, &leaves);
                    if let Some(verdicts) = &mut self.verdicts {
                        let line = VerdictLine { place, recorded: recorded.scores, ours: ours.scores };
                        serde_json::to_writer(&mut *verdicts, &line)?;
                        writeln!(verdicts)?;
                    }
                    if let Some(differences) = &mut self.differences {
                        for leaf in leaves.iter().filter(|leaf| leaf.verdict == LeafVerdict::Different) {
                            differences.leaf(place, protected[document], leaf)?;
                        }
                        for (round, step) in rejudged.steps.iter().enumerate() {
                            if !step.is_equal() {
                                differences.step(place, round, *step)?;
                            }
                        }
                    }
                    self.talk.progress.inc(1);
                    if keeps {
                        let evaluation = rejudged.evaluation;
                        let now = python_time::local_time(jiff::Timestamp::now(), &TimeZone::UTC);
                        read.record.reevaluate(evaluation.scores, evaluation.infos, now);
                        keep(&read.record)?;
                    }
                }
            }
            anyhow::Ok(())
        })
    }

    /// Judges a document and writes a file of the same name; an encrypted archive if the document is protected.
    fn judge_into(
        &mut self,
        document: &Document,
        exercises: &BuiltExercises,
        folder: &std::path::Path,
    ) -> anyhow::Result<()> {
        let member = document.file_name();
        let password =
            self.options.password.clone().filter(|_| document.is_protected() && !self.options.plaintext);
        let path = match &password {
            Some(_) => folder.join(&member).with_extension("zip"),
            None => folder.join(&member),
        };
        let archive = password.as_deref().map(|password| writer::Archive { member: &member, password });
        writer::write(&path, archive, |list| {
            self.judge(std::slice::from_ref(document), exercises, |record| list.write(record))
        })
    }

    fn file_problem(&mut self, message: &str) {
        self.tally.file_errors += 1;
        self.talk.problem(message);
    }

    fn record_problem(&mut self, message: &str) {
        self.tally.record_errors += 1;
        self.talk.problem(message);
    }
}
