//! `kgfleet halu`: KGHaluBench's questions, weights and agreement with people. `generate` draws questions, `calibrate` learns
//! weights, `sample` writes the sheet that people annotate and reads it back. `source`, `document` and `client` reach
//! the graph that questions are drawn from, `whose` the benchmark that was judged. The tables of KGHaluBench are no command of this one:
//! `kgfleet table` shows them.

mod calibrate;
mod client;
mod document;
mod generate;
mod sample;
mod source;
mod whose;

use clap::Subcommand;

use crate::kit::exit_code::ExitCode;

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
