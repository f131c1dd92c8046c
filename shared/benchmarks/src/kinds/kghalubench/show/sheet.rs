//! The sheet that people annotate: items without the judges' verdicts, drawn so that every deciding stage is in it.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;

use domain::seed::SplitMix64;
use domain::text::hex;
use report::table::{Cell, Table, printable};
use sha2::{Digest, Sha256};

use super::found::{JudgedQuestion, PipelineNumbers};
use crate::kinds::kghalubench::draw::Assessment;
use crate::kinds::kghalubench::numbers::metrics::{Fate, Filter};
use crate::kinds::kghalubench::numbers::shuffle;

/// Characters of a text in a cell. Spreadsheets hold no more than 32 767.
const CELL_CHARACTERS_MAX: usize = 30_000;

/// Size of a sheet that is read back, in bytes.
pub const SHEET_BYTES_MAX: u64 = 256 << 20;

/// The columns of a sheet.
const COLUMNS: [&str; 8] =
    ["id", "what", "entity", "to compare with", "answer", "choose", "verdict", "remark"];
const ID: &str = COLUMNS[0];
const VERDICT: &str = COLUMNS[6];

/// The stage that decided about an item. As many items are drawn from each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stratum {
    /// Answers that the abstention filter called abstentions.
    Abstained,
    /// Answers that are too far from the description.
    Other,
    /// Answers that are near enough.
    Aligned,
    /// Facts that a filter decided.
    Fact(Filter),
}

/// An item to annotate: an answer, or one fact of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Its id in the sheet, which does not show the model.
    pub id: String,
    /// The stage that decided.
    pub stratum: Stratum,
    /// Index of the model.
    pub model: usize,
    pub answer: JudgedQuestion,
    /// The fact; `None` if the item is the answer as a whole.
    pub fact: Option<usize>,
}

/// Texts of an item.
#[derive(Clone, Debug, Default)]
pub struct SheetTexts {
    /// The entity, with what distinguishes it from others of its name.
    pub entity: String,
    /// The entity's description, or the fact in a sentence.
    pub reference: String,
    /// The model's answer.
    pub answer: String,
}

/// The verdict of a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PersonVerdict {
    /// The model says that it does not know.
    Abstained,
    /// The answer is about another entity.
    Other,
    /// The answer is about the entity.
    Same,
    /// The answer states the fact.
    Stated,
    /// It does not.
    NotStated,
}

impl PersonVerdict {
    const ANSWERS: [(&'static str, Self); 3] =
        [("same", Self::Same), ("other", Self::Other), ("abstained", Self::Abstained)];
    const FACTS: [(&'static str, Self); 2] = [("stated", Self::Stated), ("not stated", Self::NotStated)];

    /// The words that can be said of an item.
    fn words(fact: bool) -> &'static [(&'static str, Self)] {
        if fact { &Self::FACTS } else { &Self::ANSWERS }
    }
}

/// All items of a pipeline: each scored answer, and the facts of those that are about the entity.
pub fn items(found: &PipelineNumbers) -> Vec<Item> {
    let mut items = Vec::new();
    for (model, of_model) in found.models.iter().enumerate() {
        for answer in &of_model.answers {
            let Some(assessment) = found.assessments.get(answer.assessment) else { continue };
            let mut push = |stratum, fact| {
                let id = id(&found.pipeline, &of_model.model, assessment, answer, fact);
                items.push(Item { id, stratum, model, answer: *answer, fact });
            };
            match &answer.fate {
                Fate::Abstained => push(Stratum::Abstained, None),
                Fate::Hallucinated => push(Stratum::Other, None),
                Fate::Aligned(facts) => {
                    push(Stratum::Aligned, None);
                    for (number, fact) in facts.iter().enumerate() {
                        push(Stratum::Fact(fact.by), Some(number));
                    }
                }
                Fate::NotScored => {}
            }
        }
    }
    items
}

/// Begins with a letter: spreadsheets take some digits for numbers.
fn id(
    pipeline: &str,
    model: &str,
    assessment: &Assessment,
    answer: &JudgedQuestion,
    fact: Option<usize>,
) -> String {
    let parts = (pipeline, model, assessment.number, answer.question, answer.repetition, fact);
    let digest = Sha256::digest(format!("{parts:?}"));
    format!("h{}", hex(&digest[..8]))
}

/// Draws so many items, from each stratum alike as far as it reaches, in an order that says nothing.
pub fn draw(items: Vec<Item>, count: usize, seed: u64) -> Vec<Item> {
    let mut random = SplitMix64::new(SplitMix64::mix(seed));
    let mut strata: BTreeMap<Stratum, Vec<Item>> = BTreeMap::new();
    for item in items {
        strata.entry(item.stratum).or_default().push(item);
    }
    strata.values_mut().for_each(|items| shuffle(items, &mut random));
    let mut drawn = Vec::with_capacity(count);
    while drawn.len() < count && strata.values().any(|items| !items.is_empty()) {
        for items in strata.values_mut() {
            if drawn.len() < count {
                drawn.extend(items.pop());
            }
        }
    }
    shuffle(&mut drawn, &mut random);
    drawn
}

/// The sheet. Texts of models stand in it without characters that steer a reader; written as CSV they are no formulas.
pub fn table(items: &[(Item, SheetTexts)]) -> Table {
    let mut table = Table::default().left(COLUMNS);
    for (item, texts) in items {
        let what = match item.fact {
            Some(_) => "Does the answer state this fact?",
            None => "Is the answer about this entity?",
        };
        let words: Vec<&str> =
            PersonVerdict::words(item.fact.is_some()).iter().map(|(word, _)| *word).collect();
        let cells = [
            item.id.clone(),
            what.to_owned(),
            cell(&texts.entity),
            cell(&texts.reference),
            cell(&texts.answer),
            words.join(" / "),
            String::new(),
            String::new(),
        ];
        table.row(cells.map(Cell::from));
    }
    table
}

fn cell(text: &str) -> String {
    let text = printable(text);
    match text.char_indices().nth(CELL_CHARACTERS_MAX) {
        Some((end, _)) => format!("{} … (cut here)", &text[..end]),
        None => text,
    }
}

/// What people said, by item, and what could not be used.
#[derive(Debug, Default)]
pub struct Annotations {
    /// The items with a verdict.
    pub said: Vec<(Item, PersonVerdict)>,
    /// Rows without one.
    pub empty: usize,
    /// Rows that cannot be used.
    pub problems: Vec<SheetProblem>,
}

/// A row that cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub struct SheetProblem {
    /// The line in the file, from 1.
    pub line: u64,
    pub why: String,
}

impl fmt::Display for SheetProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

/// Why a sheet cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SheetError {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error("the sheet has more than {SHEET_BYTES_MAX} bytes")]
    TooLarge,
    /// A column is missing.
    #[error("line 1: there is no column `{0}`; the columns of a sheet are {columns}", columns = COLUMNS.join(", "))]
    NoColumn(&'static str),
}

/// Reads a sheet that people filled in, as spreadsheets save it: commas, semicolons or tabs, with or without a byte
/// order mark.
///
/// # Errors
/// The file cannot be read, or is no sheet.
pub fn read(file: impl Read, items: Vec<Item>) -> Result<Annotations, SheetError> {
    let mut bytes = Vec::new();
    file.take(SHEET_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > SHEET_BYTES_MAX {
        return Err(SheetError::TooLarge);
    }
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let heading = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let count = |delimiter: u8| heading.iter().filter(|byte| **byte == delimiter).count();
    let delimiter = [b',', b';', b'\t'].into_iter().max_by_key(|delimiter| count(*delimiter)).unwrap_or(b',');
    let mut reader = csv::ReaderBuilder::new().delimiter(delimiter).flexible(true).from_reader(text);
    let headings = reader.byte_headers().cloned().unwrap_or_default();
    let column = |name: &'static str| {
        let place = headings.iter().position(|heading| heading == name.as_bytes());
        place.ok_or(SheetError::NoColumn(name))
    };
    let (ids, verdicts) = (column(ID)?, column(VERDICT)?);

    let mut open: BTreeMap<String, Item> = items.into_iter().map(|item| (item.id.clone(), item)).collect();
    let mut annotations = Annotations::default();
    let mut known: BTreeMap<String, u64> = BTreeMap::new();
    for record in reader.byte_records() {
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                let line = error.position().map_or(0, csv::Position::line);
                annotations.problems.push(SheetProblem { line, why: error.to_string() });
                continue;
            }
        };
        let line = record.position().map_or(0, csv::Position::line);
        let field = |column: usize| plain(record.get(column).unwrap_or_default());
        let (id, verdict) = (field(ids), field(verdicts).to_lowercase());
        if id.is_empty() && verdict.is_empty() {
            continue;
        }
        let mut refuse = |why: String| annotations.problems.push(SheetProblem { line, why });
        if verdict.is_empty() {
            annotations.empty += 1;
        } else if let Some(first) = known.get(&id) {
            refuse(format!("`{}` has a verdict in line {first}", short(&id)));
        } else if let Some(item) = open.get(&id) {
            let words = PersonVerdict::words(item.fact.is_some());
            match words.iter().find(|(word, _)| *word == verdict) {
                Some((_, said)) => {
                    known.insert(id.clone(), line);
                    annotations.said.extend(open.remove(&id).map(|item| (item, *said)));
                }
                None => {
                    let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                    refuse(format!("the verdict `{}` is none of {}", short(&verdict), words.join(", ")));
                }
            }
        } else {
            refuse(format!("`{}` is no item of this pipeline", short(&id)));
        }
    }
    Ok(annotations)
}

/// A field as a person meant it: spreadsheets keep the apostrophe that tells a text from a formula.
fn plain(field: &[u8]) -> String {
    let text = String::from_utf8_lossy(field);
    let text = text.trim();
    text.strip_prefix('\'').unwrap_or(text).trim().to_owned()
}

/// As a message shows it.
fn short(text: &str) -> String {
    printable(&text.chars().take(40).collect::<String>()).replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::kghalubench::show::found::testing::found;

    fn sheet(answer: &str) -> String {
        let drawn = draw(items(&found()), 12, 1);
        let texts = || SheetTexts { answer: answer.to_owned(), ..SheetTexts::default() };
        let mut out = Vec::new();
        table(&drawn.into_iter().map(|item| (item, texts())).collect::<Vec<_>>())
            .write_csv(&mut out)
            .unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_deciding_stage_is_drawn_from_and_a_seed_draws_the_same() {
        let drawn = draw(items(&found()), 12, 1);
        let mut strata: Vec<Stratum> = drawn.iter().map(|item| item.stratum).collect();
        strata.sort();
        strata.dedup();
        assert_eq!((drawn.len(), strata.len()), (12, 6));
        assert_eq!(drawn, draw(items(&found()), 12, 1));
        assert_ne!(drawn, draw(items(&found()), 12, 2));
        assert_eq!(draw(items(&found()), 10_000, 1).len(), items(&found()).len());
        let ids: std::collections::BTreeSet<_> = items(&found()).into_iter().map(|item| item.id).collect();
        assert_eq!(ids.len(), items(&found()).len());
    }

    #[test]
    fn what_models_say_is_no_formula_and_steers_nobody() {
        let text = sheet("=HYPERLINK(\"http://x\")\u{202e}\u{1b}[31m");
        assert!(text.contains("\"'=HYPERLINK(") && !text.contains('\u{202e}') && !text.contains('\u{1b}'));
        assert!(!text.contains("weak-1B"), "whose answer it is must not be told");
        let long = sheet(&"x".repeat(CELL_CHARACTERS_MAX + 5));
        assert!(long.contains("… (cut here)"));
    }

    #[test]
    fn a_filled_sheet_is_read_back_and_bad_rows_are_named_by_their_lines() {
        let all = items(&found());
        let (fact, entity): (Vec<&Item>, Vec<&Item>) = all.iter().partition(|item| item.fact.is_some());
        let rows = [
            format!("{};SAME ;", entity[0].id),
            format!("'{};not stated;", fact[0].id),
            format!("{};;", entity[1].id),
            format!("{};stated;", entity[2].id),
            "h00;same;".to_owned(),
            format!("{};other;", entity[0].id),
            ";;".to_owned(),
            fact[1].id.clone(),
            format!("{};\u{202e}{};", fact[2].id, "y".repeat(100)),
        ];
        let text = format!("\u{feff}id;verdict;remark\n{}\n", rows.join("\n"));
        let read = read(text.as_bytes(), all.clone()).unwrap();
        let said: Vec<(&str, PersonVerdict)> =
            read.said.iter().map(|(item, said)| (item.id.as_str(), *said)).collect();
        assert_eq!(
            said,
            [(entity[0].id.as_str(), PersonVerdict::Same), (fact[0].id.as_str(), PersonVerdict::NotStated)]
        );
        assert_eq!(read.empty, 2);
        let told: Vec<String> = read.problems.iter().map(ToString::to_string).collect();
        for (told, words) in told.iter().zip([
            ["line 5", "`stated` is none of same, other, abstained"],
            ["line 6", "no item of this pipeline"],
            ["line 7", "has a verdict in line 2"],
            ["line 10", "is none of stated, not stated"],
        ]) {
            assert!(words.iter().all(|words| told.contains(words)), "{told}");
        }
        assert!(told.len() == 4 && !told.concat().contains('\u{202e}'), "{told:?}");
    }

    #[test]
    fn what_is_no_sheet_is_refused() {
        for (text, column) in [("", "`id`"), ("id,x\n1,2\n", "`verdict`"), ("\u{0}\u{1}", "`id`")] {
            let error = read(text.as_bytes(), Vec::new()).unwrap_err().to_string();
            assert!(error.contains(column), "{error}");
        }
    }
}
