//! Every format holds the same rows.

use std::io::Cursor;

use domain::RunId;
use domain::redaction::Texts;
use results::Summary;
use results::testing;
use serde_json::Value;

use super::table::{Layout, ScoreNames, disclosed};
use super::*;
use crate::export::rows::Provenances;
use crate::table::RowCell;

/// A scored dialogue (two scores, one of them grouped), a failed one, and one with a hostile model name.
fn records() -> impl Iterator<Item = Result<Record, LogError>> {
    [
        testing::numbered(1, "m", 3, true),
        testing::numbered(2, "m", 4, false),
        testing::numbered(3, "=1+1", 0, true),
    ]
    .into_iter()
    .map(Ok)
}

/// Read from JSON, as from a log.
fn summary(record: &Record) -> Summary {
    serde_json::from_str(&serde_json::to_string(record).unwrap()).unwrap()
}

fn summaries() -> impl Iterator<Item = Result<Summary, LogError>> {
    records().map(|record| record.map(|record| summary(&record)))
}

fn run() -> RunId {
    RunId::new("r")
}

/// The headline of every task here.
fn headline(_: &domain::TaskProvenance) -> &'static [&'static str] {
    &["mean", "recall"]
}

fn wide(run: &RunId) -> Layout<'_> {
    let mut names = ScoreNames::default();
    for record in records() {
        names.learn(&summary(&record.unwrap()).outcome);
    }
    Layout::wide(run, &headline, &names)
}

fn csv_of(layout: &Layout<'_>, expected: usize) -> Vec<Vec<String>> {
    let mut bytes = Vec::new();
    let mut provenances = Provenances::default();
    assert_eq!(rows::csv(&mut bytes, layout, &mut provenances, summaries()).unwrap(), 3);
    let reader = csv::ReaderBuilder::new().has_headers(false).from_reader(bytes.as_slice());
    let rows: Vec<Vec<String>> =
        reader.into_records().map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect();
    assert_eq!(rows.len(), 1 + expected);
    rows
}

/// The cells of these columns, row by row.
fn cells(rows: &[Vec<String>], names: &[&str]) -> Vec<Vec<String>> {
    let place = |name: &&str| rows[0].iter().position(|heading| heading == name).expect(name);
    let places: Vec<usize> = names.iter().map(place).collect();
    rows[1..].iter().map(|row| places.iter().map(|&place| row[place].clone()).collect()).collect()
}

/// Rows of the three dialogues in each form.
const LONG: usize = 5;
const WIDE: usize = 3;

#[test]
fn csv_has_a_row_per_score_and_no_formulas() {
    let run = run();
    let rows = csv_of(&Layout::long(&run, &headline), LONG);
    let names = ["model", "state", "failure", "message", "group", "score", "value", "is_headline"];
    let found = cells(&rows, &names);
    assert_eq!(found[0], ["m", "scored", "", "", "", "f1", "0.42857142857142855", "false"]);
    assert_eq!(found[1], ["m", "scored", "", "", "mean", "recall", "1", "true"]);
    assert_eq!(found[2], ["m", "failed", "timeout", "no answer within 60 s", "", "", "", ""]);
    assert_eq!(found[3][0], "'=1+1");
}

#[test]
fn the_wide_form_has_a_row_per_dialogue_and_a_column_per_score() {
    let run = run();
    let rows = csv_of(&wide(&run), WIDE);
    let names =
        ["model", "headline_score", "headline", "message", "seconds", "evaluation_seconds", "started_at"];
    let found = cells(&rows, &names);
    let started = "2025-01-01T00:00:00.000001Z";
    assert_eq!(found[0], ["m", "mean.recall", "1", "", "1.999999", "0.5", started]);
    assert_eq!(found[1], ["m", "mean.recall", "", "no answer within 60 s", "1.999999", "0.5", started]);
    let scores = cells(&rows, &["f1", "mean.recall"]);
    assert_eq!(scores[0], ["0.42857142857142855", "1"]);
    assert_eq!(scores[1], ["", ""]);
    assert!(!rows[0].iter().any(|name| name == "scorer" || name == "pack_hash"));
}

#[test]
fn a_score_named_like_a_column_does_not_take_its_place() {
    let mut names = ScoreNames::default();
    let outcome = serde_json::json!({ "state": "scored", "scores": { "rounds": 1, "f1": 0.5 } });
    names.learn(&serde_json::from_value(outcome).unwrap());
    let run = run();
    let layout = Layout::wide(&run, &headline, &names);
    let last: Vec<&str> = layout.columns().iter().rev().take(2).map(|column| column.name.as_str()).collect();
    assert_eq!(last, ["f1", "score.rounds"]);
}

#[test]
fn what_dialogues_share_stands_once() {
    let mut provenances = Provenances::default();
    let mut records: Vec<Summary> = summaries().map(Result::unwrap).collect();
    records[2].provenance.task.scorer = "2".into();
    let numbers: Vec<usize> = [0, 1, 2, 0].map(|at| provenances.number(&records[at].provenance)).to_vec();
    assert_eq!(numbers, [1, 1, 2, 1], "seeds and cases make no difference, scoring rules do");
    let run = run();
    let mut out = Vec::new();
    provenances.write(&mut out, &testing::manifest("r"), Layout::long(&run, &headline).columns()).unwrap();
    let written: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(written["provenance"][1]["of"]["task"]["scorer"], "2");
    assert_eq!(written["provenance"][0]["of"]["task"].get("case"), None);
    assert_eq!(written["columns"][0]["name"], "run");
    assert_eq!(written["packs"][0]["hash"], "ab");
}

/// Tables of protected exercises are written without further ado: what can quote a text must be redacted in them.
#[test]
fn tables_hold_no_text_of_a_dialogue() {
    let run = run();
    for layout in [Layout::long(&run, &headline), wide(&run)] {
        for record in summaries() {
            let record = disclosed(record.unwrap(), Texts::Redact);
            layout
                .rows(&record, 1, |row| {
                    for cell in row {
                        let RowCell::Text(text) = cell else { continue };
                        for secret in ["Zoë", "Who is known", "=so", "no answer within"] {
                            assert!(!text.contains(secret), "{text}");
                        }
                    }
                    Ok::<(), ()>(())
                })
                .unwrap();
        }
    }
}

#[test]
fn jsonl_holds_whole_records_and_redacts_every_text_when_asked() {
    let mut bytes = Vec::new();
    rows::jsonl(&mut bytes, &run(), Texts::Keep, &headline, records()).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0]["headline"], serde_json::json!({ "score": "mean.recall", "value": 1.0 }));
    assert_eq!(lines[1].get("headline"), None);
    assert_eq!(lines[0]["record"]["rounds"][0]["answer"]["text"], "Zoë, says m\n");

    let mut bytes = Vec::new();
    rows::jsonl(&mut bytes, &run(), Texts::Redact, &headline, records()).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    for secret in ["Zoë", "Who is known", "=so", "no answer within"] {
        assert!(!text.contains(secret), "{secret}");
    }
    assert!(text.contains("[12 characters]") && text.contains("\"f1\":0.42857142857142855"));
}

#[test]
fn xlsx_is_a_workbook_with_a_summary_real_dates_and_guarded_texts() {
    let (run, mut file) = (run(), Cursor::new(Vec::new()));
    let layouts = [wide(&run), Layout::long(&run, &headline)];
    let written = xlsx::write(&mut file, &testing::manifest("r"), &layouts, summaries()).unwrap();
    assert_eq!(written, 3);
    let mut archive = zip::ZipArchive::new(file).unwrap();
    let mut part = |name: &str| io::read_to_string(archive.by_name(name).unwrap()).unwrap();
    let names = part("xl/workbook.xml");
    let sheets =
        ["summary", "dialogues", "scores", "provenance"].map(|name| names.find(&format!("name=\"{name}\"")));
    assert!(sheets.is_sorted() && sheets[0].is_some(), "{names}");
    let [summary, dialogues, scores] =
        [1, 2, 3].map(|number| part(&format!("xl/worksheets/sheet{number}.xml")));
    assert_eq!(scores.matches("<row ").count(), 1 + LONG);
    assert_eq!(dialogues.matches("<row ").count(), 1 + WIDE);
    assert!(scores.contains("'=1+1") && !scores.contains("<f>"), "{scores}");
    assert!(scores.contains("0.42857142857142855"));
    // 2025-01-01 is day 45 658 of Excel.
    assert!(dialogues.contains("<v>45658</v>") && summary.contains("<v>45658</v>"), "{summary}");
}

#[test]
fn an_export_that_does_not_fit_names_its_file() {
    // A device that is always full. There is none on some systems, where opening it says so.
    let full = Path::new("/dev/full");
    type Write = fn(&mut BufWriter<File>, &Layout<'_>) -> Result<u64, ExportError>;
    let formats: &[Write] = &[
        |file, layout| rows::csv(file, layout, &mut Provenances::default(), summaries()),
        |file, _| rows::jsonl(file, &run(), Texts::Keep, &headline, records()),
        |file, _| {
            let run = run();
            let layouts = [wide(&run), Layout::long(&run, &headline)];
            xlsx::write(file, &testing::manifest("r"), &layouts, summaries())
        },
    ];
    let run = run();
    let layout = Layout::long(&run, &headline);
    for format in formats {
        let error = to_file(full, |file| format(file, &layout)).unwrap_err().to_string();
        assert!(error.starts_with("/dev/full: "), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.csv");
    assert_eq!(to_file(&path, |file| formats[0](file, &layout)).unwrap(), 3);
    let mut bytes = Vec::new();
    rows::csv(&mut bytes, &layout, &mut Provenances::default(), summaries()).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
}
