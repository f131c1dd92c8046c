//! `kgfleet show`: `dialogue` shows one dialogue, with what `compared` says of its answer; `list` lists them.

mod compared;
mod dialogue;
mod list;

use std::path::PathBuf;

use crate::files::tables::{self, TableFormat};
use crate::kit::exit_code::ExitCode;
use crate::kit::pager::Paging;
use crate::place::{PlaceOptions, completing, names};

/// Show the dialogues of a run, or one of them; also of a judged benchmark.
///
/// Without a dialogue, they are listed in the order of the plan, or with --worst by their scores; all conditions must hold. Of one
/// dialogue, the score comes first, then what the task expected and what was extracted from the answer, then all that was said.
/// Texts of protected exercises are replaced by their lengths, unless --plaintext is given. Records of a fleet are fetched first.
#[derive(Debug, clap::Args)]
#[command(mut_args(with_or_without_dialogue))]
pub struct Arguments {
    #[arg(help = names::HELP_OF_READERS, add = completing::runs())]
    run: String,
    /// The dialogue: MODEL/TASK/ITERATION, iterations from 0. Default: all are listed.
    #[arg(add = completing::dialogues())]
    dialogue: Option<String>,
    #[command(flatten)]
    place: PlaceOptions,
    #[command(flatten)]
    listing: Listing,
    #[command(flatten)]
    form: DialogueForm,
}

/// Which dialogues are listed, and how.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Without a dialogue")]
struct Listing {
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
}

/// How one dialogue is shown.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Of one dialogue")]
struct DialogueForm {
    /// Print the whole record as JSON.
    #[arg(long)]
    json: bool,
    /// Show texts of protected exercises.
    #[arg(long)]
    plaintext: bool,
    #[command(flatten)]
    paging: Paging,
}

/// Refuses options of a list for one dialogue, and the other way round.
fn with_or_without_dialogue(option: clap::Arg) -> clap::Arg {
    match option.get_id().as_str() {
        "model" | "task" | "failed" | "limited" | "cut" | "worst" | "format" | "out" => {
            option.conflicts_with("dialogue")
        }
        "json" | "plaintext" | "no_pager" => option.requires("dialogue"),
        _ => option,
    }
}

/// `kgfleet show`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { run, dialogue, listing, form, place } = arguments;
    let key = dialogue.as_deref().map(dialogue::key).transpose()?;
    tables::check(listing.format, listing.out.as_deref())?;
    let opened = place.place()?.open(&run)?;
    match key {
        Some(key) => dialogue::show(&opened, &key, &form)?,
        None => list::show(&opened, &listing)?,
    }
    Ok(ExitCode::Success)
}
