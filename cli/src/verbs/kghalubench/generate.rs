//! `kgfleet halu generate`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use benchmarks::kinds::kghalubench::draw::assessment::{self, Assessment, Recipe, Unfillable};
use benchmarks::kinds::kghalubench::draw::frequency::{Frequency, Groups};
use benchmarks::kinds::kghalubench::draw::{Date, GraphError, Statistics, exercise, question};
use domain::TaskLabel;
use packs::{Group, Header, PackError, Parts, seal_file};
use serde_json::json;
use tasks::Wording;

use super::client::{self, RequestPacing};
use super::source::GraphInput;
use crate::files::tables;
use crate::kit::exit_code::{Exit, ExitCode, usage};
use crate::kit::output::Table;
use crate::kit::screen::Screen;
use crate::place::packs::{PackPassword, as_exit};

/// Maximum number of questions of an assessment, and of assessments of a pack, which is held in memory.
const QUESTIONS_MAX: i64 = 10_000;
const ASSESSMENTS_MAX: i64 = 100;

/// Maximum number of entities of a draw, because an endpoint is asked for all of them at once.
const BATCH_MAX: i64 = 1_000;

/// Draw assessments from a knowledge graph and seal them as a pack: a task for each assessment, a case for each question.
///
/// The same graph, mapping, seed and numbers give the same questions.
///
/// Exit codes: 0 the pack is written; 2 the arguments or the mapping cannot be used, or the graph has too few entities with
/// all that a question needs; 3 a file cannot be read or written.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The knowledge graph: an RDF document (.nt .nq .ttl .trig .rdf .xml .owl, each also with .gz, .bz2 or .zst, or .jsonld), or the
    /// address of a SPARQL endpoint.
    #[arg(long, value_name = "GRAPH")]
    kg: GraphInput,
    /// Where the graph keeps types, labels, descriptions, relations and statistics (TOML), or `wikidata`.
    #[arg(long, value_name = "FILE")]
    mapping: Option<PathBuf>,
    /// What the graph is, in words, for the provenance of the pack. Default: the name of the file, or the address.
    #[arg(long, value_name = "TEXT")]
    source: Option<String>,
    /// Where answers of an endpoint are kept, so that nothing is asked twice, also after an interruption.
    #[arg(long, default_value = "halu-cache", value_name = "DIR")]
    cache: PathBuf,
    /// Seconds that an endpoint may take for one answer.
    #[arg(long, default_value_t = client::ANSWER_SECONDS, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    patience: u32,
    /// Attempts for one query to an endpoint.
    #[arg(long, default_value_t = client::ATTEMPTS, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=client::ATTEMPTS_MAX))]
    attempts: u32,
    /// Questions of an assessment.
    #[arg(long, default_value_t = 150, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=QUESTIONS_MAX))]
    questions: u32,
    /// Assessments.
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=ASSESSMENTS_MAX))]
    assessments: u32,
    /// Entities of a draw, of which the first usable one of the rarest type is asked about: the more, the more questions about
    /// rare types.
    #[arg(long, default_value_t = Recipe::default().batch, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=BATCH_MAX))]
    batch: u32,
    /// Ask about no entity in two assessments.
    #[arg(long)]
    distinct: bool,
    /// Percent of all entities whose types, the most frequent ones, are very common.
    #[arg(long, default_value_t = Groups::default().very_common, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    very_common: u8,
    /// Percent of all entities up to which types are common; the rest is uncommon.
    #[arg(long, default_value_t = Groups::default().common, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    common: u8,
    /// When the graph was as it is: YYYY, YYYY-MM or YYYY-MM-DD. Tables compare models' cut-offs with it.
    #[arg(long, value_name = "DATE")]
    as_of: Option<Date>,
    /// What models are asked in other words than the program's (TOML): `system`, and `first` with the placeholders {{name}},
    /// {{context}}, {{relation1}}, {{relation2}} and {{relation3}}.
    #[arg(long, value_name = "FILE")]
    wording: Option<PathBuf>,
    /// Decides which questions are drawn.
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// The pack file to write, such as `halu.kgpack`. An existing file is replaced.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    password: PackPassword,
    /// Print one JSON object instead of the table.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let password = arguments.password.get();
    let name = arguments.out.file_stem().and_then(|stem| stem.to_str());
    let name = name.ok_or_else(|| usage!("--out {}: not a file name", arguments.out.display()))?;
    let patience = RequestPacing {
        answer: Duration::from_secs(arguments.patience.into()),
        attempts: arguments.attempts,
    };
    let wording = arguments.wording.as_deref().map(read_wording).transpose()?;
    let mut graph = arguments.kg.open(arguments.mapping.as_deref(), &arguments.cache, patience)?;
    let Arguments { questions, seed, batch, distinct, very_common, common, .. } = *arguments;
    let groups = Groups { very_common, common };
    let recipe = Recipe { questions, seed, batch, distinct, groups, ..Recipe::default() };
    let drawn = assessment::draw_all(graph.as_mut(), recipe, arguments.assessments);
    let mut assessments = drawn.map_err(as_exit_code)?;
    for assessment in &mut assessments {
        assessment.as_of.clone_from(&arguments.as_of);
    }
    let source = arguments.source.clone().unwrap_or_else(|| arguments.kg.describe());
    let parts = lay_out(name, &source, &assessments, wording.as_ref())?;
    let pack = seal_file(&parts, &password, &arguments.out).map_err(as_exit)?;

    let mut out = io::stdout().lock();
    if arguments.json {
        let tasks: Vec<&TaskLabel> = pack.tasks().iter().map(|task| &task.label).collect();
        let snapshot = assessments.first().map(|assessment| assessment.snapshot.as_str());
        let object = json!({
            "hash": pack.hash(),
            "snapshot": snapshot,
            "tasks": tasks,
            "questions": arguments.questions,
            "entities": entities(&assessments),
            "missing_statistics": missing_statistics(&assessments),
        });
        writeln!(out, "{object}")?;
    } else {
        print(&assessments, &mut out)?;
    }
    Ok(ExitCode::Success)
}

/// The exit code of an error: an endpoint that does not answer, or an index that cannot be read, is a failure of infrastructure, everything else a usage
/// error.
fn as_exit_code(error: Unfillable) -> anyhow::Error {
    match error {
        Unfillable::Graph(GraphError::Endpoint(_)) => error.into(),
        error => Exit::usage(error),
    }
}

fn read_wording(path: &Path) -> anyhow::Result<Wording> {
    let chosen: Wording = tables::parsed(path, |text| toml::from_str(text))?;
    question::worded(&chosen).map_err(|error| usage!("{}: {error}", path.display()))
}

fn lay_out(
    name: &str,
    source: &str,
    assessments: &[Assessment],
    wording: Option<&Wording>,
) -> anyhow::Result<Parts> {
    let mut parts = Parts::new(name);
    let mut labels = Vec::with_capacity(assessments.len());
    for assessment in assessments {
        let task = exercise::task(assessment, wording)?;
        labels.push(task.label.clone());
        parts.insert_task(&task).map_err(as_exit)?;
    }
    let snapshot = assessments.first().map_or("", |assessment| assessment.snapshot.as_str());
    let questions: usize = assessments.iter().map(|assessment| assessment.questions.len()).sum();
    let lacking = match missing_statistics(assessments).as_slice() {
        [] => String::new(),
        missing => format!(" The graph has no {}.", missing.join(", ")),
    };
    let header = Header {
        name: name.to_owned(),
        version: "1".to_owned(),
        // The graph's own: a document does not say it.
        licence: "NOASSERTION".to_owned(),
        description: format!("{} assessments of KGHaluBench, {questions} questions.", assessments.len()),
        provenance: format!("Drawn from {source}, state {snapshot}.{lacking}"),
        // Equal questions make an equal pack, so the text is not random; no other graph has it.
        canary: format!("kgfleet-halu {snapshot}"),
        protected: false,
        compat: tasks::Compat::default(),
        limits: tasks::EvaluationLimits::default(),
        groups: vec![Group { name: "assessments".to_owned(), default: true, tasks: labels }],
        graphs: Vec::new(),
    };
    let insert: Result<(), PackError> = parts.insert_header(&header);
    insert.map_err(as_exit)?;
    Ok(parts)
}

fn print(assessments: &[Assessment], out: &mut dyn Write) -> io::Result<()> {
    let groups = [Frequency::VeryCommon, Frequency::Common, Frequency::Uncommon];
    let mut table =
        Table::default().left(["assessment"]).right(["questions", "very common types", "common", "uncommon"]);
    for assessment in assessments {
        let mut counts: BTreeMap<Frequency, usize> = BTreeMap::new();
        for question in &assessment.questions {
            *counts.entry(question.frequency).or_default() += 1;
        }
        let mut row = vec![exercise::label(assessment.number), assessment.questions.len().to_string()];
        row.extend(groups.map(|group| counts.get(&group).copied().unwrap_or(0).to_string()));
        table.row(row);
    }
    Screen::here().table(&table, out)?;
    let questions: usize = assessments.iter().map(|assessment| assessment.questions.len()).sum();
    writeln!(out, "{questions} questions about {} entities", entities(assessments))?;
    let all = assessments.iter().flat_map(|assessment| &assessment.questions);
    if let Some(note) = question::Question::hard_to_tell(all) {
        writeln!(out, "{note}")?;
    }
    match missing_statistics(assessments).as_slice() {
        [] => Ok(()),
        missing => writeln!(
            out,
            "the graph has no {}: difficulties are estimated without, and the pack says so",
            missing.join(", ")
        ),
    }
}

/// How many entities are asked about.
fn entities(assessments: &[Assessment]) -> usize {
    let questions = assessments.iter().flat_map(|assessment| &assessment.questions);
    questions.map(|question| &question.entity).collect::<BTreeSet<_>>().len()
}

/// The statistics that no entity has.
fn missing_statistics(assessments: &[Assessment]) -> Vec<&'static str> {
    let questions = || assessments.iter().flat_map(|assessment| &assessment.questions);
    let is_missing =
        |place: &usize| questions().all(|question| question.statistics.counts()[*place].is_none());
    (0..Statistics::NAMES.len()).filter(is_missing).map(|place| Statistics::NAMES[place]).collect()
}
