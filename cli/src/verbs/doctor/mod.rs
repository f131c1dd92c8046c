//! `kgfleet doctor`.

mod drift;
mod findings;
mod timeline;

use std::io::{self, Write};

use domain::record::{HedgeEnd, HedgedCall};
use domain::{DialogueKey, MadeAt, RunId, Scores, TaskProvenance};
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::IgnoredAny;

use self::findings::{Diagnosis, diagnose};
use self::timeline::{AskedDialogue, Call, CallOfTwo, ScoredCase};
use crate::files::export::ExportSource;
use crate::kit::exit_code::ExitCode;
use crate::kit::output::{Table, printable};
use crate::place::data_dir::{DataDir, OpenedBenchmark};
use crate::place::remote::MaybeRemote;
use crate::place::{completing, fetch, names};

/// Say why a benchmark was slow, and which replicas answer unlike the others.
///
/// Rules with numbers name a cause: servers that refuse calls or become slower, one slow replica, a straggler, a replica whose
/// scores or canary answers are unlike those of the others, judging, the client, places for dialogues that stood empty, a
/// long tail. Where none holds, the benchmark is called healthy: the servers were busy all the time. docs/running.md says
/// what each rule measures. Records of a fleet are fetched first.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[arg(help = names::HELP, add = completing::runs())]
    run: String,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: MaybeRemote,
    #[command(flatten)]
    data: DataDir,
}

/// The part of a record that tells of times and scores.
#[derive(Deserialize)]
struct Timed {
    key: DialogueKey,
    attempt: TimedAttempt,
    started_at: Timestamp,
    ended_at: Timestamp,
    rounds: Vec<TimedRound>,
    #[serde(default)]
    failed_calls: Vec<IgnoredAny>,
    #[serde(default)]
    hedged: Vec<HedgedCall>,
    outcome: TimedOutcome,
    provenance: TimedProvenance,
}

#[derive(Deserialize)]
struct TimedOutcome {
    #[serde(default)]
    scores: Scores,
}

#[derive(Deserialize)]
struct TimedAttempt {
    worker: String,
}

#[derive(Deserialize)]
struct TimedRound {
    prompted_at: Timestamp,
    answered_at: Timestamp,
    answer: TimedAnswer,
    #[serde(default)]
    failed_calls: Vec<IgnoredAny>,
}

#[derive(Deserialize)]
struct TimedAnswer {
    #[serde(default)]
    usage: domain::Usage,
}

#[derive(Deserialize)]
struct TimedProvenance {
    task: TaskProvenance,
    model: TimedModel,
    #[serde(default)]
    made_at: Option<MadeAt>,
}

#[derive(Deserialize)]
struct TimedModel {
    #[serde(default)]
    endpoint: Option<String>,
}

impl Timed {
    /// A dialogue of the run with this name.
    fn asked(self, run: &RunId) -> AskedDialogue {
        let task = &self.provenance.task;
        let score = report::input::headline_score(&task.class, &task.version, &self.outcome.scores);
        let scored = score.map(|score| ScoredCase {
            // Runs of a judged benchmark ask other questions under equal names.
            task: format!("{run} {}", self.key.task),
            case: task.case.clone(),
            score,
        });
        let seconds = |at: Timestamp| at.as_microsecond() as f64 / 1e6;
        let mut failed = self.failed_calls.len();
        let mut calls = Vec::with_capacity(self.rounds.len());
        for round in self.rounds {
            failed += round.failed_calls.len();
            calls.push(Call {
                sent_s: seconds(round.prompted_at),
                answered_s: seconds(round.answered_at),
                tokens: round.answer.usage.completion_tokens,
            });
        }
        AskedDialogue {
            name: self.key.to_string(),
            model: self.key.model.to_string(),
            // Replicas of a model beside workers have the same address, each on its own machine.
            replica: match self.provenance.model.endpoint {
                Some(endpoint) => format!("{endpoint} asked by {}", self.attempt.worker),
                None => self.attempt.worker,
            },
            started_s: seconds(self.started_at),
            ended_s: seconds(self.ended_at),
            calls,
            failed,
            hedged: self
                .hedged
                .into_iter()
                .map(|call| CallOfTwo { server: call.server, has_won: call.end == HedgeEnd::Answered })
                .collect(),
            scored,
            canary: self.provenance.made_at.and_then(|made_at| made_at.canary),
        }
    }
}

/// `kgfleet doctor`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let (_fetched, OpenedBenchmark { name, runs, .. }) =
        fetch::open(&arguments.remote, &arguments.data, &arguments.run)?;
    let mut dialogues = Vec::new();
    for (dir, manifest) in runs {
        let run = manifest.run.clone();
        for read in ExportSource::open(dir, manifest)?.parts::<Timed>() {
            dialogues.push(read?.asked(&run));
        }
    }
    let diagnosis = diagnose(&dialogues);
    let mut out = io::stdout().lock();
    if arguments.json {
        writeln!(out, "{}", serde_json::to_string(&diagnosis)?)?;
    } else {
        write(&name.to_string(), &diagnosis, &mut out)?;
    }
    Ok(ExitCode::Success)
}

fn write(name: &str, diagnosis: &Diagnosis, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut table = Table::default().left(["measured"]).right(["value"]);
    for (what, value) in diagnosis.figures.lines() {
        table.row([what.to_owned(), value]);
    }
    table.write(out)?;
    writeln!(out)?;
    for finding in &diagnosis.findings {
        writeln!(out, "{}: {}", finding.cause, printable(&finding.message))?;
    }
    if diagnosis.findings.is_empty() {
        writeln!(out, "{name} is healthy: {}", diagnosis.figures.healthy())?;
    }
    Ok(())
}
