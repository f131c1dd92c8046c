//! Published result files, where they are at hand: set `KGFLEET_CONFORMANCE` to a folder with `v3/` and
//! `classic/`, and `KGFLEET_CONFORMANCE_PASSWORD`, unless a README beside the data names the password that the
//! publishers print. Nothing of their content is in this repository.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use harness::Conformance;
use results::llmkgbench::{Document, ResultRecord, ResultWriter, discover, source};
use serde_json::Value;

/// Reads a document, writes its records back, and compares the texts byte for byte.
fn records_and_identity(document: &Document, original: &[u8]) -> usize {
    let mut copy = ResultWriter::new(Vec::new());
    let summary = document
        .read(|item| {
            let read = item.unwrap();
            assert!(read.repairs.is_empty());
            assert!(
                read.record.answers().count() > 0
                    && read.record.task_data().is_none_or(|data| !data.is_empty())
            );
            check_actual_size(&read.record);
            copy.write(&read.record).unwrap();
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(summary.errors, 0);
    let copy = copy.finish().unwrap();
    let same_value =
        serde_json::from_slice::<Value>(&copy).unwrap() == serde_json::from_slice::<Value>(original).unwrap();
    assert!(same_value, "{}: written back with other values", document.name());
    // No assert_eq: a failure must not print protected texts.
    assert!(copy == original, "{}: written back with other bytes", document.name());
    summary.records
}

/// The size recorded is what [`results::llmkgbench::from_record`] computes: code points of all texts.
fn check_actual_size(record: &ResultRecord) {
    if let Some(size) = record.fields().get("taskSizeInfo").and_then(|size| size["actualSize"].as_u64()) {
        let ours: usize = record.interactions().map(|interaction| interaction.text.chars().count()).sum();
        assert_eq!(size, ours as u64);
    }
}

fn counts(folder: &Path, password: Option<&str>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for document in discover(&[folder.to_owned()], password) {
        let document = document.unwrap();
        let archive = document.name().split('!').next().unwrap().to_owned();
        let (_, original) = source::read_single(Path::new(&archive), password).unwrap();
        counts.insert(document.file_name(), records_and_identity(&document, &original));
    }
    counts
}

#[test]
fn version_3_archives_read_and_write_back_byte_for_byte() {
    let Some(data) = Conformance::for_proof("version_3_archives_read_and_write_back_byte_for_byte") else {
        return;
    };
    let counts = counts(&data.path("v3"), Some(&data.password));
    assert_eq!(counts.len(), 6);
    assert!(counts.values().all(|&records| records == 520), "{counts:?}");
}

#[test]
fn classic_archives_read_and_write_back_byte_for_byte() {
    let Some(data) = Conformance::for_proof("classic_archives_read_and_write_back_byte_for_byte") else {
        return;
    };
    let counts = counts(&data.path("classic"), None);
    assert_eq!(counts.values().copied().collect::<Vec<_>>(), [140, 140, 639, 140], "{counts:?}");
}
