//! `kgfleet halu`: KGHaluBench's questions, weights and agreement with people. `generate` draws questions, `calibrate` learns
//! weights, `sample` writes the sheet that people annotate and reads it back. `source`, `document` and `client` reach
//! the graph that questions are drawn from. The tables of KGHaluBench are no command of this one:
//! `kgfleet table` shows them.

mod calibrate;
mod client;
mod document;
mod generate;
mod sample;
mod source;

use benchmarks::kinds::kghalubench::KIND;
use benchmarks::kinds::kghalubench::show::read::{self, Look, ReadPipeline};
use benchmarks::{BenchmarkReader, Kind};
use clap::Subcommand;

use crate::files::judged::{self, FolderReader};
use crate::kit::exit_code::{ExitCode, usage};
use crate::place::opened::OpenedBenchmark;

/// Work with KGHaluBench: questions about the entities of a knowledge graph, and what is made of their answers.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Generate(generate::Arguments),
    Calibrate(calibrate::Arguments),
    Sample(sample::SampleArguments),
    Agreement(sample::AgreementArguments),
}

/// Runs the command.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    match arguments.verb {
        Verb::Generate(arguments) => generate::run(&arguments),
        Verb::Calibrate(arguments) => calibrate::run(&arguments),
        Verb::Sample(arguments) => sample::sample(&arguments),
        Verb::Agreement(arguments) => sample::agreement(&arguments),
    }
}

/// A judged benchmark of this kind, ready to be read.
///
/// # Errors
/// It is none, or of another kind; its documents cannot be read.
fn reader(opened: &OpenedBenchmark, wanted: &Kind) -> anyhow::Result<FolderReader> {
    let name = &opened.name;
    let reader =
        FolderReader::of(opened)?.ok_or_else(|| usage!("there is no pipeline {name}: it is a run"))?;
    let kind = &reader.facts().kind;
    if kind != wanted.name {
        return Err(usage!("pipeline {name} is of kind {kind}; this is for those of {}", wanted.name));
    }
    Ok(reader)
}

/// Reads a pipeline of KGHaluBench.
///
/// # Errors
/// It is none, or cannot be read.
fn read(opened: &OpenedBenchmark, look: &mut Look<'_>) -> anyhow::Result<ReadPipeline> {
    read::read(&mut reader(opened, &KIND)?, look).map_err(judged::of_showing)
}
