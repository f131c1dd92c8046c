//! What a test build notes: the records that coordinators acknowledged. Tests compare them with the record logs.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use domain::exchange::{Delivery, Receipt};
use domain::{Record, RecordId, RunId};
use serde::Serialize;

/// The variable that names the file.
const ACKNOWLEDGED: &str = "KGFLEET_TEST_ACKNOWLEDGED";

#[derive(Serialize)]
struct Line<'a> {
    run: &'a RunId,
    record: &'a RecordId,
}

/// Notes which of these records are stored, if the environment names a file for that.
pub fn acknowledged(deliveries: &[Delivery], receipts: &[Receipt]) {
    let Some(path) = std::env::var_os(ACKNOWLEDGED) else { return };
    let stored = deliveries.iter().zip(receipts).filter(|(_, receipt)| matches!(receipt, Receipt::Stored));
    let mut lines = Vec::new();
    for (delivery, _) in stored {
        let record: Record = serde_json::from_str(&delivery.json).expect("this worker wrote the record");
        let line = Line { run: &delivery.run, record: &record.attempt.id };
        serde_json::to_writer(&mut lines, &line).expect("memory takes every line");
        lines.push(b'\n');
    }
    append(Path::new(&path), &lines);
}

/// Appends lines by one call, since several workers write into the file.
fn append(path: &Path, lines: &[u8]) {
    let mut file =
        File::options().create(true).append(true).open(path).expect("a test names a file of its own");
    file.write_all(lines).expect("a test has room for its file");
}
