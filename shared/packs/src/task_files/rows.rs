//! Rows of data from files: JSONL, JSON, CSV, TSV, YAML.

use serde_json::{Map, Value};

use crate::task_files::field_path::FieldPath;

/// Most rows of a file.
pub(crate) const ROWS_MAX: usize = 100_000;

/// Sees that a data file is none of a format that people have and that is not read here, before its bytes are taken for text.
///
/// # Errors
/// It is; the message says how to get another one.
pub(crate) fn expect_text(name: &str) -> Result<(), String> {
    if name.to_ascii_lowercase().ends_with(".parquet") {
        return Err(format!(
            "`{name}`: Parquet is not read; as JSONL it is, for example by `duckdb -c \"COPY (FROM '{name}') TO 'rows.jsonl'\"`"
        ));
    }
    Ok(())
}

/// Reads the rows of a data file. `name` names it in errors and decides its format; `list` is the path of the list of rows.
///
/// # Errors
/// The file is not of its format, or has no rows; the message names the file and the line.
pub(crate) fn read(name: &str, text: &str, list: Option<&FieldPath>) -> Result<Vec<Value>, String> {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
    let whole = |value: Value| match list {
        Some(path) => path.value(&value).ok_or_else(|| format!("`{name}` has nothing at the path in `rows`")),
        None => Ok(value),
    };
    let rows = match ending.as_str() {
        "jsonl" | "ndjson" => lines(name, text)?,
        "json" => {
            let value =
                serde_json::from_str(text).map_err(|error| format!("`{name}:{}`: {error}", error.line()))?;
            rows_of(name, whole(value)?)?
        }
        "yaml" | "yml" => {
            let value = serde_saphyr::from_str(text).map_err(|error| format!("`{name}`: {error}"))?;
            rows_of(name, whole(value)?)?
        }
        "csv" => separated(name, text, b',')?,
        "tsv" => separated(name, text, b'\t')?,
        _ => return Err(format!("`{name}` has none of the endings jsonl, json, csv, tsv, yaml")),
    };
    if rows.len() > ROWS_MAX {
        return Err(format!("`{name}` has {} rows; {ROWS_MAX} are the most", rows.len()));
    }
    if let Some(number) = rows.iter().position(|row| !row.is_object()) {
        return Err(format!("row {} of `{name}` is no table of fields", number + 1));
    }
    Ok(rows)
}

fn lines(name: &str, text: &str) -> Result<Vec<Value>, String> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let read = lines.map(|(number, line)| {
        serde_json::from_str(line).map_err(|error| format!("`{name}:{}`: {error}", number + 1))
    });
    read.collect()
}

fn rows_of(name: &str, value: Value) -> Result<Vec<Value>, String> {
    match value {
        Value::Array(rows) => Ok(rows),
        _ => Err(format!("`{name}` is no list; `rows` names the path of the list within it")),
    }
}

/// A table in text form, with the names of its columns in the first line.
fn separated(name: &str, text: &str, delimiter: u8) -> Result<Vec<Value>, String> {
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .from_reader(text.trim_start_matches('\u{feff}').as_bytes());
    let bad = |error: csv::Error| match error.position() {
        Some(place) => format!("`{name}:{}`: {error}", place.line()),
        None => format!("`{name}`: {error}"),
    };
    let names = reader.headers().map_err(bad)?.clone();
    let row = |record: csv::StringRecord| -> Value {
        names
            .iter()
            .zip(&record)
            .map(|(name, cell)| (name.to_owned(), Value::from(cell)))
            .collect::<Map<_, _>>()
            .into()
    };
    reader.records().map(|record| record.map(row).map_err(bad)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_format_gives_the_same_rows() {
        let expected = json!([{"id": "1", "q": "a, b"}]);
        let path = FieldPath::parse("all.rows").unwrap();
        for (name, text) in [
            ("q.jsonl", "\n{\"id\": \"1\", \"q\": \"a, b\"}\n"),
            ("q.json", "[{\"id\": \"1\", \"q\": \"a, b\"}]"),
            ("q.csv", "\u{feff}id,q\n1,\"a, b\"\n"),
            ("q.tsv", "id\tq\n1\ta, b\n"),
            ("q.yaml", "- id: \"1\"\n  q: a, b\n"),
        ] {
            assert_eq!(Value::Array(read(name, text, None).unwrap()), expected, "{name}");
        }
        let nested = read("q.json", &json!({"all": {"rows": expected}}).to_string(), Some(&path)).unwrap();
        assert_eq!(Value::Array(nested), expected);
    }

    #[test]
    fn what_cannot_be_read_names_the_file_and_the_line() {
        let wrong = |name: &str, text: &str| read(name, text, None).unwrap_err();
        assert!(wrong("q.jsonl", "{}\n{\"a\"").starts_with("`q.jsonl:2`: "));
        assert!(wrong("q.csv", "a,b\n1,2\n1\n").starts_with("`q.csv:3`: "));
        assert!(wrong("q.json", "{}").contains("`rows`"));
        assert!(wrong("q.jsonl", "1").contains("row 1"));
        assert!(expect_text("q.parquet").unwrap_err().contains("COPY (FROM 'q.parquet') TO 'rows.jsonl'"));
        assert_eq!(expect_text("q.csv"), Ok(()));
        assert!(wrong("q.xls", "").contains("endings"));
    }
}
