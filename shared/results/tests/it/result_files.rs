//! Result files of every kind and condition, found, read and written back.

use std::fs::{self, File};
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use results::llmkgbench::source::UNREADABLE_RECORDS_MAX;
use results::llmkgbench::{
    Archive, Document, FileProblem, FileRepair, ReadCounts, ReadRecord, RecordError, ResultFile,
    ResultRecord, WriteError, discover, source, writer,
};
use serde_json::{Value, json};
use zip::write::SimpleFileOptions;
use zip::{AesMode, ZipWriter};

const PASSWORD: &str = "Wild Geese";

fn record(number: u32) -> Value {
    json!({
        "startTime": "2025-01-02T03:04:05.000006",
        "reevalOriginalTime": null,
        "modelId": "GPT--m--m",
        "taskInfo": {"taskId": "RdfFriendCount", "taskLabel": "RdfFriendCount-turtle-1", "version": "4.4"},
        "scores": {"f1": 0.1 + f64::from(number)},
        "info": {},
        "interactions": [["prompt", "t", "Wer kennt Zoë?"], ["response", "t", format!("answer {number}, \u{1F600}")]],
        "duration": "0:00:01.000000"
    })
}

fn list(numbers: std::ops::Range<u32>) -> String {
    serde_json::to_string(&numbers.map(record).collect::<Vec<_>>()).unwrap()
}

fn zip(path: &Path, members: &[(&str, &[u8])], password: Option<&str>) {
    let mut archive = ZipWriter::new(File::create(path).unwrap());
    for (name, content) in members {
        let options = SimpleFileOptions::default();
        match password {
            Some(password) => {
                archive.start_file(*name, options.with_aes_encryption(AesMode::Aes256, password)).unwrap();
            }
            None => archive.start_file(*name, options).unwrap(),
        }
        archive.write_all(content).unwrap();
    }
    archive.finish().unwrap();
}

/// Everything a path gives: names, records, errors as text.
fn read_all(path: &Path, password: Option<&str>) -> (Vec<ReadRecord>, Vec<String>) {
    let (mut records, mut errors) = (Vec::new(), Vec::new());
    for document in discover(&[path.to_owned()], password) {
        let read = document.and_then(|document| {
            document.read(|item| {
                match item {
                    Ok(record) => records.push(record),
                    Err(error) => errors.push(error.to_string()),
                }
                ControlFlow::Continue(())
            })
        });
        if let Err(error) = read {
            errors.push(error.to_string());
        }
    }
    (records, errors)
}

#[test]
fn a_folder_gives_its_result_files_in_order_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("b")).unwrap();
    fs::write(at("b/run_result.json"), list(2..3)).unwrap();
    fs::write(at("a_result_Model_20x.json"), list(0..1)).unwrap();
    fs::write(at("configuration.json"), "{}").unwrap();
    fs::write(at("notes.txt"), "x").unwrap();
    zip(
        &at("c.zip"),
        &[("deep/x_result.json", list(3..4).as_bytes()), ("__MACOSX/._x_result.json", b"?")],
        None,
    );
    zip(&at("graph.rdf.zip"), &[("graph.rdf", b"<rdf/>")], None);
    let names: Vec<String> = discover(&[folder.path().to_owned(), at("b/run_result.json")], None)
        .into_iter()
        .map(|document| document.unwrap().file_name())
        .collect();
    assert_eq!(names, ["a_result_Model_20x.json", "run_result.json", "x_result.json"]);
    let (records, errors) = read_all(folder.path(), None);
    assert_eq!((records.len(), errors.len()), (3, 0));
}

#[test]
fn an_encrypted_archive_opens_with_its_password_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secret.zip");
    zip(&path, &[("m_result.json", list(0..50).as_bytes())], Some(PASSWORD));
    let problem = |password: Option<&str>| {
        let document = discover(std::slice::from_ref(&path), password).remove(0).unwrap();
        assert!(document.is_protected());
        assert!(!format!("{document:?}").contains(PASSWORD));
        document.read(|_| ControlFlow::Continue(()))
    };
    assert!(matches!(problem(None).unwrap_err().problem, FileProblem::PasswordNeeded));
    let error = problem(Some("wrong")).unwrap_err();
    // One wrong password of 65 536 is found by the code behind the data only.
    assert!(matches!(error.problem, FileProblem::WrongPassword | FileProblem::Undecryptable(_)), "{error}");
    assert!(error.to_string().contains("secret.zip!m_result.json"), "{error}");
    assert_eq!(problem(Some(PASSWORD)).unwrap(), ReadCounts { records: 50, errors: 0 });
}

#[test]
fn what_does_not_match_its_code_has_a_wrong_password_or_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flipped.zip");
    zip(&path, &[("m_result.json", list(0..50).as_bytes())], Some(PASSWORD));
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    fs::write(&path, bytes).unwrap();
    let (_, errors) = read_all(&path, Some(PASSWORD));
    let told =
        "flipped.zip!m_result.json: cannot be decrypted: the password is wrong, or the archive is damaged: ";
    assert!(errors.last().unwrap().contains(told), "{errors:?}");
}

#[test]
fn the_directory_of_an_archive_is_read_once_for_all_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.zip");
    let names: Vec<String> = (0..100).map(|n| format!("{n:03}_result.json")).collect();
    let content = list(0..1);
    let members: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), content.as_bytes())).collect();
    zip(&path, &members, Some(PASSWORD));
    let documents: Vec<Document> =
        discover(std::slice::from_ref(&path), Some(PASSWORD)).into_iter().map(Result::unwrap).collect();
    assert_eq!(documents.len(), names.len());
    // The directory is at the end of the file. Without it nothing can be found any more that is not known by now.
    let bytes = fs::read(&path).unwrap();
    let directory = bytes.windows(4).position(|four| four == b"PK\x01\x02").unwrap();
    File::options().write(true).open(&path).unwrap().set_len(directory as u64).unwrap();
    for document in &documents {
        assert!(document.is_protected());
        let counts = document.read(|_| ControlFlow::Continue(())).unwrap();
        assert_eq!(counts, ReadCounts { records: 1, errors: 0 });
    }
}

#[test]
fn a_file_of_nothing_but_broken_records_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bomb.zip");
    let broken = |count: usize| format!("[{}{}]", "[],".repeat(count), record(1));
    let (most, more) = (broken(UNREADABLE_RECORDS_MAX), broken(UNREADABLE_RECORDS_MAX + 1));
    zip(&path, &[("a_result.json", most.as_bytes()), ("b_result.json", more.as_bytes())], None);
    let (records, errors) = read_all(&path, None);
    assert_eq!(records.len(), 1, "the record behind the broken ones, where they are few enough");
    assert_eq!(errors.len(), 2 * UNREADABLE_RECORDS_MAX + 1);
    assert!(
        errors[2 * UNREADABLE_RECORDS_MAX].contains("b_result.json: has more than 1000 unreadable"),
        "{errors:?}"
    );
}

#[test]
fn what_is_no_archive_or_half_of_one_is_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let whole = at("whole.zip");
    zip(&whole, &[("a_result.json", list(0..40).as_bytes())], None);
    let bytes = fs::read(&whole).unwrap();
    fs::write(at("half.zip"), &bytes[..bytes.len() / 2]).unwrap();
    fs::write(at("text.zip"), "hello").unwrap();
    zip(&at("none.zip"), &[("readme.txt", b"x")], None);
    fs::create_dir(at("empty")).unwrap();
    let problem = |name: &str| discover(&[at(name)], None).remove(0).unwrap_err().problem;
    assert!(matches!(problem("half.zip"), FileProblem::DamagedArchive(_)));
    assert!(matches!(problem("text.zip"), FileProblem::NotAnArchive));
    assert!(matches!(problem("none.zip"), FileProblem::NoResultFile));
    assert!(matches!(problem("empty"), FileProblem::NoResultFile));
    assert!(matches!(problem("missing.json"), FileProblem::Io(_)));
    // A flipped byte in the compressed data is found by the checksum at the latest.
    let mut flipped = bytes;
    let middle = flipped.len() / 2;
    flipped[middle] ^= 0x10;
    fs::write(at("flipped.zip"), flipped).unwrap();
    let (_, errors) = read_all(&at("flipped.zip"), None);
    assert!(errors.iter().any(|error| error.contains("flipped.zip!a_result.json: ")), "{errors:?}");
}

#[test]
fn a_bad_record_spoils_only_itself() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad_result.json");
    let mut without_task = record(1);
    without_task.as_object_mut().unwrap().shift_remove("taskInfo");
    let text = format!("[{}, {without_task}, {{\"modelId\": oops}}, 7, {}]", record(0), record(4));
    fs::write(&path, text).unwrap();
    let (records, errors) = read_all(&path, None);
    assert_eq!(records.iter().map(|record| record.index).collect::<Vec<_>>(), [0, 4]);
    assert_eq!(errors.len(), 3);
    assert!(
        errors[0].ends_with("bad_result.json: record 1: `taskInfo` is missing or is not an object"),
        "{errors:?}"
    );
    assert!(errors[1].contains("record 2: is not valid JSON"), "{errors:?}");
}

#[test]
fn a_torn_file_gives_the_records_before_the_tear() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("torn_result.json");
    let text = list(0..3);
    fs::write(&path, &text[..text.len() - 20]).unwrap();
    let (records, errors) = read_all(&path, None);
    assert_eq!(records.len(), 2);
    assert_eq!(errors.len(), 1);
    assert!(errors[0].contains("truncated") && errors[0].contains("after 2 complete records"), "{errors:?}");
}

#[test]
fn bytes_that_are_no_text_are_replaced_and_noted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("latin1_result.json");
    let text = list(0..2).replace("Zoë", "ZoXX").replacen("answer 1", "half \\ud83d", 1);
    let mut bytes = text.into_bytes();
    let at = bytes.windows(4).position(|window| window == b"ZoXX").unwrap();
    bytes[at + 2] = 0xEB;
    fs::write(&path, bytes).unwrap();
    let (records, errors) = read_all(&path, None);
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!(records[0].repairs, [FileRepair::InvalidUtf8]);
    assert!(records[0].record.prompts().next().unwrap().contains("Zo\u{FFFD}"));
    assert_eq!(records[1].repairs, [FileRepair::LoneSurrogates]);
    assert_eq!(records[1].record.answers().next().unwrap(), "half \u{FFFD}, \u{1F600}");
}

#[test]
fn an_answer_of_50_mb_is_read_and_a_longer_record_than_allowed_is_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long_result.json");
    let mut file = std::io::BufWriter::new(File::create(&path).unwrap());
    let mut long = record(0);
    long["interactions"][1][2] = "x".repeat(50_000_000).into();
    write!(file, "[{long},").unwrap();
    drop(long);
    // Longer than the limit, without building it in memory.
    write!(file, "{{\"filler\": \"").unwrap();
    let block = [b'y'; 1 << 16];
    for _ in 0..=source::RECORD_BYTES_MAX / block.len() {
        file.write_all(&block).unwrap();
    }
    write!(file, "\"}},{}]", record(2)).unwrap();
    file.into_inner().unwrap();
    let mut seen = Vec::new();
    let document = discover(&[path], None).remove(0).unwrap();
    let summary = document
        .read(|item: Result<ReadRecord, RecordError>| {
            seen.push(match item {
                Ok(read) => read.record.answers().next().unwrap().len().to_string(),
                Err(error) => error.problem.to_string(),
            });
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(summary, ReadCounts { records: 2, errors: 1 });
    assert_eq!(seen[0], "50000000");
    assert!(seen[1].contains("the limit is 134217728"), "{seen:?}");
}

#[test]
fn what_is_written_reads_back_plain_and_encrypted() {
    let folder = tempfile::tempdir().unwrap();
    let records: Vec<ResultRecord> = (0..5).map(|n| ResultRecord::from_value(record(n)).unwrap()).collect();
    let plain = folder.path().join("out_result.json");
    let sealed = folder.path().join("out.zip");
    let archive = Archive { member: "out_result.json", password: PASSWORD };
    for (path, archive) in [(&plain, None), (&sealed, Some(archive))] {
        writer::write(path, archive, |list| records.iter().try_for_each(|record| list.write(record)))
            .unwrap();
    }
    for path in [&plain, &sealed] {
        let (read, errors) = read_all(path, Some(PASSWORD));
        assert!(errors.is_empty(), "{errors:?}");
        assert_eq!(read.into_iter().map(|read| read.record).collect::<Vec<_>>(), records);
    }
    let (_, content) = source::read_single(&sealed, Some(PASSWORD)).unwrap();
    assert_eq!(content, fs::read(&plain).unwrap());
    assert!(content.starts_with(b"[\n  {\n    \"startTime\": ") && content.ends_with(b"\n  }\n]"));
}

#[test]
fn a_write_that_fails_leaves_the_old_file_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out_result.json");
    fs::write(&path, "old").unwrap();
    let fill = |_: &mut ResultFile<'_>| Err::<(), Box<dyn std::error::Error>>("enough".into());
    assert_eq!(writer::write(&path, None, fill).unwrap_err().to_string(), "enough");
    let nowhere = folder.path().join("no folder/out_result.json");
    let error = writer::write(&nowhere, None, |_| Ok::<(), WriteError>(())).unwrap_err().to_string();
    assert!(error.contains("no folder/out_result.json: cannot be written: "), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    let left: Vec<PathBuf> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(left, [path]);
}
