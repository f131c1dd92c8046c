//! The records that coordinators acknowledged, as workers of a test build note them, compared with the record logs.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::Path;

use domain::{RecordId, RunId};
use results::log::{LogItem, LogReader};
use serde::Deserialize;

/// The variable that names the file into which workers of a test build note every acknowledged record.
pub const ACKNOWLEDGED: &str = "KGFLEET_TEST_ACKNOWLEDGED";

#[derive(Deserialize)]
struct Line {
    run: RunId,
    record: RecordId,
}

/// What workers noted in a file, by run. The last line of a killed worker may be incomplete.
pub fn read(file: &Path) -> BTreeMap<RunId, BTreeSet<RecordId>> {
    let text = match std::fs::read_to_string(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        text => text.unwrap(),
    };
    let mut noted: BTreeMap<RunId, BTreeSet<RecordId>> = BTreeMap::new();
    for line in text.lines() {
        if let Ok(Line { run, record }) = serde_json::from_str(line) {
            noted.entry(run).or_default().insert(record);
        }
    }
    noted
}

/// The records that a log holds.
pub fn kept(log: &Path) -> BTreeSet<RecordId> {
    let items = LogReader::open(log, None).into_iter().flatten().flatten();
    let records = items.filter_map(|item| match item {
        LogItem::Record { record, .. } => Some(record.attempt.id),
        LogItem::Event { .. } | LogItem::Damage(_) => None,
    });
    records.collect()
}

#[test]
fn a_record_that_was_acknowledged_and_is_in_no_log_is_found() {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("acknowledged");
    assert!(read(&file).is_empty());
    std::fs::write(
        &file,
        "{\"run\":\"r\",\"record\":\"1\"}\n{\"run\":\"r\",\"record\":\"1\"}\n{\"run\":\"r\",\"rec",
    )
    .unwrap();
    let noted = read(&file);
    let noted = &noted[&RunId::new("r")];
    assert_eq!((noted.len(), noted.difference(&kept(data.path())).count()), (1, 1));
}
