//! Every format holds the same rows.

use std::io::Cursor;

use domain::RunId;
use serde_json::Value;

use super::*;
use crate::log::LogEntry;
use crate::testing;

/// A scored dialogue (two scores, one of them grouped), a failed one, and one with a hostile model name.
fn entries() -> impl Iterator<Item = Result<LogEntry, LogError>> {
    [testing::entry(1, "m", 3, true), testing::entry(2, "m", 4, false), testing::entry(3, "=1+1", 0, true)]
        .into_iter()
        .map(Ok)
}

/// Read from JSON, as from a log.
fn table_record(entry: &LogEntry) -> table::TableRecord {
    serde_json::from_str(&serde_json::to_string(&entry.record).unwrap()).unwrap()
}

fn table_records() -> impl Iterator<Item = Result<table::TableRecord, LogError>> {
    entries().map(|entry| entry.map(|entry| table_record(&entry)))
}

fn run() -> RunId {
    RunId::new("r")
}

const SUMMARY: ExportSummary = ExportSummary { dialogues: 3, rows: 5 };

#[test]
fn csv_has_a_row_per_score_and_no_formulas() {
    let mut bytes = Vec::new();
    assert_eq!(csv::write(&mut bytes, &run(), table_records()).unwrap(), SUMMARY);
    let mut reader = ::csv::Reader::from_reader(bytes.as_slice());
    let heading = reader.headers().unwrap().clone();
    let column = |name: &str| heading.iter().position(|heading| heading == name).unwrap();
    let rows: Vec<_> = reader.records().map(|row| row.unwrap()).collect();
    let cells = |names: &[&str], row: usize| -> Vec<String> {
        names.iter().map(|name| rows[row][column(name)].to_owned()).collect()
    };
    let names = ["model", "state", "failure", "group", "score", "value"];
    assert_eq!(cells(&names, 0), ["m", "scored", "", "", "f1", "0.42857142857142855"]);
    assert_eq!(cells(&names, 1), ["m", "scored", "", "mean", "recall", "1"]);
    assert_eq!(cells(&names, 2), ["m", "failed", "timeout", "", "", ""]);
    assert_eq!(
        cells(&["model", "seconds", "prompt_tokens", "started_at"], 3),
        ["'=1+1", "2.499999", "12", "2025-01-01T00:00:00.000001Z"]
    );
}

/// Runs on protected exercises are written as tables without further ado: they must have no column for a text.
#[test]
fn tables_hold_no_text_of_a_dialogue() {
    for record in table_records() {
        table::rows(&run(), &record.unwrap(), |row| {
            for cell in row {
                let table::Cell::Text(text) = cell else { continue };
                for secret in ["Zoë", "Who is known", "=so", "no answer within"] {
                    assert!(!text.contains(secret), "{text}");
                }
            }
            Ok::<(), ()>(())
        })
        .unwrap();
    }
}

#[test]
fn jsonl_holds_whole_records_and_redacts_every_text_when_asked() {
    let mut bytes = Vec::new();
    jsonl::write(&mut bytes, &run(), jsonl::Texts::Keep, entries()).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0]["record"]["rounds"][0]["answer"]["text"], "Zoë, says m\n");

    let mut bytes = Vec::new();
    jsonl::write(&mut bytes, &run(), jsonl::Texts::Redact, entries()).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    for secret in ["Zoë", "Who is known", "=so", "no answer within"] {
        assert!(!text.contains(secret), "{secret}");
    }
    assert!(text.contains("[12 characters]") && text.contains("\"f1\":0.42857142857142855"));
}

#[test]
fn xlsx_is_a_workbook_with_guarded_texts() {
    let mut file = Cursor::new(Vec::new());
    assert_eq!(xlsx::write(&mut file, &run(), table_records()).unwrap(), SUMMARY);
    let mut archive = zip::ZipArchive::new(file).unwrap();
    let mut part = |name: &str| io::read_to_string(archive.by_name(name).unwrap()).unwrap();
    let sheet = part("xl/worksheets/sheet1.xml");
    assert_eq!(sheet.matches("<row ").count(), 1 + SUMMARY.rows as usize);
    assert!(sheet.contains("'=1+1") && !sheet.contains("<f>"), "{sheet}");
    assert!(sheet.contains("0.42857142857142855"));
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_reads_back() {
    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    use ::parquet::record::RowAccessor;

    let mut bytes = Vec::new();
    // Enough rows for several row groups.
    let [scored, failed] = [true, false].map(|scored| testing::entry(1, "m", 0, scored));
    let many = || {
        (0..30_000).map(|n| {
            let mut entry: LogEntry = if n % 3 > 0 { scored.clone() } else { failed.clone() };
            entry.record.key.iteration = n;
            Ok(table_record(&entry))
        })
    };
    let summary = parquet::write(&mut bytes, &run(), many()).unwrap();
    assert_eq!(summary, ExportSummary { dialogues: 30_000, rows: 50_000 });
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    let reader = SerializedFileReader::new(file.reopen().unwrap()).unwrap();
    assert_eq!(reader.metadata().num_row_groups(), 2);
    let names: Vec<&str> = reader
        .metadata()
        .file_metadata()
        .schema_descr()
        .columns()
        .iter()
        .map(|column| column.name())
        .collect();
    assert_eq!(names, table::COLUMNS.map(|(name, ..)| name));
    let mut expected = many().flat_map(|record| {
        let mut values = Vec::new();
        table::rows(&run(), &record.unwrap(), |row| {
            values.push(match (row[3], row[8]) {
                (table::Cell::Integer(iteration), table::Cell::Number(value)) => (iteration, Some(value)),
                (table::Cell::Integer(iteration), _) => (iteration, None),
                other => panic!("{other:?}"),
            });
            Ok::<(), ()>(())
        })
        .unwrap();
        values
    });
    for row in reader.get_row_iter(None).unwrap() {
        let row = row.unwrap();
        assert_eq!((row.get_long(3).unwrap(), row.get_double(8).ok()), expected.next().unwrap());
    }
    assert!(expected.next().is_none());
}

#[test]
fn an_export_that_does_not_fit_names_its_file() {
    // A device that is always full. There is none on some systems, where opening it says so.
    let full = std::path::Path::new("/dev/full");
    type Write = fn(&mut io::BufWriter<std::fs::File>) -> Result<ExportSummary, ExportError>;
    let formats: [Write; 2] = [
        |file| csv::write(file, &run(), table_records()),
        |file| jsonl::write(file, &run(), jsonl::Texts::Keep, entries()),
    ];
    for format in formats {
        let error = to_file(full, format).unwrap_err().to_string();
        assert!(error.starts_with("/dev/full: "), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.csv");
    assert_eq!(to_file(&path, formats[0]).unwrap(), SUMMARY);
    let mut bytes = Vec::new();
    csv::write(&mut bytes, &run(), table_records()).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    #[cfg(feature = "parquet")]
    assert!(
        to_file(full, |file| parquet::write(file, &run(), table_records()))
            .unwrap_err()
            .to_string()
            .starts_with("/dev/full: ")
    );
    assert!(
        to_file(full, |file| xlsx::write(file, &run(), table_records()))
            .unwrap_err()
            .to_string()
            .starts_with("/dev/full: ")
    );
}
