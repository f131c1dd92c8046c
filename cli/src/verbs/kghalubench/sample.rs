//! `kgfleet halu sample` and `kgfleet halu agreement`: compares verdicts of judges with those of people.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use benchmarks::Subject;
use benchmarks::kinds::kghalubench::draw::exercise;
use benchmarks::kinds::kghalubench::show::agreement;
use benchmarks::kinds::kghalubench::show::found::JudgedQuestion;
use benchmarks::kinds::kghalubench::show::sheet::{self, Annotations, Item, SheetTexts};
use benchmarks::kinds::{kghalubench, kghalubench_baseline};

use super::{read, reader};
use crate::files::tables::{self, TableFormat};
use crate::kit::exit_code::{ExitCode, explained, usage};
use crate::kit::output::{note, say};
use crate::place::{PlaceOptions, completing};

/// Maximum number of unusable rows that are named; the rest is counted.
const PROBLEMS_TOLD_MAX: usize = 20;

/// Draw answers and facts of a pipeline into a sheet for people to annotate.
///
/// Each deciding stage gives as many rows as the others, as far as it reaches. The sheet says neither what judges decided nor
/// whose answer it is. People write one of the words of column `choose` into column `verdict`; `kgfleet halu agreement` reads
/// the sheet back.
///
/// Exit codes: 0 the sheet is written; 2 the name is no pipeline of KGHaluBench, or its texts are protected; 3 a file
/// cannot be read or written.
#[derive(Debug, clap::Args)]
pub(super) struct SampleArguments {
    /// A pipeline of KGHaluBench.
    #[arg(add = completing::runs())]
    pipeline: String,
    /// Rows.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    count: u32,
    /// The sheet to write, as CSV. An existing file is replaced.
    #[arg(long, value_name = "SHEET")]
    out: PathBuf,
    /// Decides what is drawn.
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Write texts of protected exercises.
    #[arg(long)]
    plaintext: bool,
    #[command(flatten)]
    place: PlaceOptions,
}

pub(super) fn sample(arguments: &SampleArguments) -> anyhow::Result<ExitCode> {
    let name = &arguments.pipeline;
    let opened = arguments.place.place()?.open(name)?;
    let reading = read(&opened, &mut |_, _, _, _| ())?;
    if reading.protected && !arguments.plaintext {
        return Err(usage!(
            "pipeline {name} holds protected exercises, and a sheet consists of their texts; pass --plaintext to write them \
             in the clear"
        ));
    }
    let drawn = sheet::draw(sheet::items(&reading.found), arguments.count as usize, arguments.seed);
    if drawn.is_empty() {
        return Err(usage!("pipeline {name} has no scored answer to draw from"));
    }
    let mut wanted: BTreeMap<AnswerPlace, Vec<usize>> = BTreeMap::new();
    for (row, item) in drawn.iter().enumerate() {
        wanted.entry(place_of(item.model, &item.answer)).or_default().push(row);
    }
    let mut texts = vec![SheetTexts::default(); drawn.len()];
    read(&opened, &mut |model, answer, subject, judgements| {
        let of_answer = wanted.get(&place_of(model, answer)).map_or(&[][..], Vec::as_slice);
        if of_answer.is_empty() {
            return;
        }
        let sentences = kghalubench::sentences(subject, judgements);
        for row in of_answer {
            texts[*row] = texts_of(subject, &drawn[*row], &sentences);
        }
    })?;
    let rows: Vec<(Item, SheetTexts)> = drawn.iter().cloned().zip(texts).collect();
    tables::print(None, &[sheet::table(&rows)], TableFormat::Csv, Some(&arguments.out))?;
    note!("wrote {} rows into {}", rows.len(), arguments.out.display());
    Ok(ExitCode::Success)
}

/// Model, assessment, question and repetition of an answer.
type AnswerPlace = (usize, usize, usize, u32);

fn place_of(model: usize, answer: &JudgedQuestion) -> AnswerPlace {
    (model, answer.assessment, answer.question, answer.repetition)
}

fn texts_of(subject: &Subject, item: &Item, sentences: &[String]) -> SheetTexts {
    let Ok(question) = exercise::question_of(&subject.case) else { return SheetTexts::default() };
    let reference = match item.fact {
        Some(fact) => sentences.get(fact).cloned().unwrap_or_default(),
        None => question.description.clone(),
    };
    SheetTexts {
        entity: format!("{} {}", question.name, question.context),
        reference,
        answer: subject.answer.clone(),
    }
}

/// Compare what people wrote into a sheet with what judges decided: precision, recall, F1, agreement and Cohen's kappa of
/// every stage, and of several thresholds of the similarity.
///
/// Several sheets are those of several people: the judges are compared with all of them, and every two people with each other.
/// Rows that cannot be used are named by their lines and left out.
///
/// Exit codes: 0 done; 2 the name is no pipeline of KGHaluBench, or the file is no sheet; 3 a file cannot be read; 4 some rows
/// could not be used.
#[derive(Debug, clap::Args)]
pub(super) struct AgreementArguments {
    /// The pipeline that the sheet was drawn from.
    #[arg(add = completing::runs())]
    pipeline: String,
    /// The sheets with verdicts of people, as CSV: one for each person.
    #[arg(required = true, value_name = "SHEET")]
    sheets: Vec<PathBuf>,
    /// A pipeline of kind `kghalubench-baseline` over the same answers (`kgfleet rejudge`): one chat model alone, compared on the same
    /// rows.
    #[arg(long, value_name = "PIPELINE", add = completing::runs())]
    baseline: Option<String>,
    #[arg(long, value_enum, default_value = "text")]
    format: TableFormat,
    #[command(flatten)]
    place: PlaceOptions,
}

pub(super) fn agreement(arguments: &AgreementArguments) -> anyhow::Result<ExitCode> {
    if arguments.format == TableFormat::Xlsx {
        return Err(usage!("--format xlsx is not for this table"));
    }
    let place = arguments.place.place()?;
    let reading = read(&place.open(&arguments.pipeline)?, &mut |_, _, _, _| ())?;
    let items = sheet::items(&reading.found);
    let mut people = Vec::with_capacity(arguments.sheets.len());
    let mut is_sound = true;
    for path in &arguments.sheets {
        let read = read_sheet(path, &items)?;
        is_sound &= read.problems.is_empty();
        people.push(read.said);
    }
    let is_sound = if is_sound { ExitCode::Success } else { ExitCode::BadInput };
    let mut lines = agreement::compare(&items, &people.concat(), reading.threshold);
    if let Some(baseline) = &arguments.baseline {
        let mut reader = reader(&place.open(baseline)?, &kghalubench_baseline::KIND)?;
        let verdicts = agreement::BaselineVerdicts::read(&mut reader).map_err(explained)?;
        lines.extend(agreement::compare_baseline(&reading.found, &items, &people.concat(), &verdicts));
    }
    lines.extend(agreement::compare_people(&people));
    tables::print(None, &[agreement::table(&lines)], arguments.format, None)?;
    Ok(is_sound)
}

/// The verdicts of one person. Rows that cannot be used are named.
fn read_sheet(path: &Path, items: &[Item]) -> anyhow::Result<Annotations> {
    let file = service_kit::named_files::open(path);
    let file = file.with_context(|| format!("cannot read {}", path.display()))?;
    let read = sheet::read(file, items.to_vec()).map_err(|error| match error {
        sheet::SheetError::Io(error) => {
            anyhow::Error::new(error).context(format!("cannot read {}", path.display()))
        }
        error => usage!("{}: {error}", path.display()),
    })?;
    for problem in read.problems.iter().take(PROBLEMS_TOLD_MAX) {
        say(&format!("{}: {problem}", path.display()));
    }
    if let Some(more) = read.problems.len().checked_sub(PROBLEMS_TOLD_MAX).filter(|more| *more > 0) {
        say(&format!("{more} more rows could not be used"));
    }
    if read.empty > 0 {
        say(&format!("{} rows have no verdict", read.empty));
    }
    if read.said.is_empty() {
        return Err(usage!("{}: no row has a verdict that can be used", path.display()));
    }
    Ok(read)
}
