//! Re-evaluation: judges recorded answers again and compares every value with the recorded one. On published dialogues, it
//! must give the published scores.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context;
use domain::Scores;
use indicatif::ProgressBar;
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

pub use graphs::Recordings;
pub use tally::{AgreementCounts, Reevaluation, TaskCounts};

use crate::engine::worker::threads;
use crate::files::exercises::BuiltExercises;
use crate::files::tables::create;
use crate::kit::output::{printable, spinner};
use crate::place::packs::open_pack;
use compare::{LeafVerdict, Side, compare};
use differences::{Difference, DifferencePlace};
use pipeline::ReplayEvent;
use tally::AgreementTally;

/// What to re-evaluate and what to write.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    recordings: Recordings,
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
    let mut session = Session {
        options,
        talk: Talk { progress: spinner("{spinner} {pos} dialogues, {per_sec}, {elapsed}"), problems: 0 },
        effort: Effort::full(rules.limits),
        tally: AgreementTally::default(),
        verdicts: options.verdicts.as_deref().map(create).transpose()?,
        differences: options.differences.as_deref().map(create).transpose()?,
    };
    let mut documents = Vec::new();
    for found in discover(&options.recordings.paths, options.recordings.password.as_deref()) {
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
    if let Some(differences) = &mut session.differences {
        differences.flush().context("cannot write the differences")?;
    }
    if let Some(verdicts) = &mut session.verdicts {
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
        let graphs = packs::import::library(of_pack, &options.recordings.graphs()?);
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

fn write_line(file: &mut BufWriter<File>, line: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *file, line)?;
    file.write_all(b"\n")
}

struct Session<'a> {
    options: &'a Options,
    talk: Talk,
    effort: Effort,
    verdicts: Option<BufWriter<File>>,
    tally: AgreementTally,
    differences: Option<BufWriter<File>>,
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
                    self.tally.add(place.task, &rejudged, &leaves);
                    if let Some(verdicts) = &mut self.verdicts {
                        let line = VerdictLine { place, recorded: recorded.scores, ours: ours.scores };
                        write_line(verdicts, &line)?;
                    }
                    if let Some(differences) = &mut self.differences {
                        let hide = documents[document].is_protected() && !self.options.plaintext;
                        for leaf in leaves.iter().filter(|leaf| leaf.verdict == LeafVerdict::Different) {
                            write_line(differences, &Difference::of_leaf(place, leaf, hide))?;
                        }
                        for (round, step) in rejudged.steps.iter().enumerate() {
                            if !step.is_equal() {
                                write_line(differences, &Difference::of_step(place, round, *step))?;
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
        let hide = document.is_protected() && !self.options.plaintext;
        let password = self.options.recordings.password.as_deref().filter(|_| hide);
        let archive = password.map(|password| writer::Archive { member: &member, password });
        let path = folder.join(&member);
        let path = if archive.is_some() { path.with_extension("zip") } else { path };
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
