//! `kgfleet fleet`: what a fleet is made of, and who may do what in it. A file or folder for each subcommand.

mod audit;
mod dead_letters;
mod identity;
mod login;
mod secrets;
mod token;
mod workers;

use crate::kit::exit_code::ExitCode;

/// Log in to a fleet, and look after its workers, dead letters, tokens, Secrets and audit log.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Login(login::Arguments),
    Workers(Box<workers::Arguments>),
    DeadLetters(dead_letters::Arguments),
    Token(token::Arguments),
    Audit(audit::Arguments),
    Secrets(secrets::Arguments),
}

/// Runs the command.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    match arguments.command {
        Command::Login(arguments) => login::run(arguments),
        Command::Workers(arguments) => workers::run(*arguments),
        Command::DeadLetters(arguments) => dead_letters::run(&arguments),
        Command::Token(arguments) => token::run(arguments),
        Command::Audit(arguments) => audit::run(arguments),
        Command::Secrets(arguments) => secrets::run(arguments),
    }
}
