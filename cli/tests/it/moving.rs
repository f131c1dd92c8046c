//! Copies of runs: into a bundle and out of it, to another folder or an object store and back.

use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::Data;

/// A folder with a small finished run; its name.
fn with_run() -> (Data, String) {
    let data = Data::new();
    data.kgfleet(&["run", "--task", "RdfFriendCount-nt-1", "--iterations", "3"]).expect(0);
    let name = data.run().name().to_owned();
    (data, name)
}

/// Whole records, as they are exported.
fn records(data: &Data, run: &str) -> String {
    let out = data.path().join("records.jsonl");
    data.kgfleet(&["export", run, "--format", "jsonl", "--out", out.to_str().unwrap()]).expect(0);
    fs::read_to_string(out).unwrap()
}

fn bundled(data: &Data) -> PathBuf {
    let file = data.path().join("run.kgbundle");
    data.kgfleet(&["copy", "latest", "--to", file.to_str().unwrap()]).expect(0).says(&["9 dialogues"]);
    file
}

#[test]
fn a_bundle_brings_a_run_with_report_and_table_to_another_machine() {
    let (data, run) = with_run();
    let file = bundled(&data);
    let first = fs::read(&file).unwrap();
    assert_eq!(fs::read(bundled(&data)).unwrap(), first, "equal runs make equal bundles");

    let other = Data::new();
    let unbundle = ["copy", "--from", file.to_str().unwrap()];
    other.kgfleet(&unbundle).expect(0).says(&["files copied", "all compared"]).prints(&[&run]);
    assert_eq!(records(&other, &run), records(&data, &run));
    other.kgfleet(&["verify", &run]).expect(0).prints(&["the log is sound"]);
    for name in ["report.html", "dialogues.csv", "README.txt"] {
        assert!(other.run().dir.exports().join(name).is_file(), "{name}");
    }
    other.kgfleet(&unbundle).expect(0).says(&["files are the same"]);
    // The pack came along, so the run does not depend on the one that a later kgfleet has.
    assert_eq!(fs::read_dir(other.path().join("packs")).unwrap().count(), 1);
    assert!(leftovers(&other).is_empty(), "{:?}", leftovers(&other));
}

/// What a command may have left beside runs and packs.
fn leftovers(data: &Data) -> Vec<PathBuf> {
    let known = ["runs", "packs", "records.jsonl"].map(|name| data.path().join(name));
    let found = fs::read_dir(data.path()).unwrap().map(|entry| entry.unwrap().path());
    found.filter(|path| !known.contains(path)).collect()
}

#[test]
fn a_damaged_bundle_leaves_nothing_behind() {
    let (data, _) = with_run();
    let mut bytes = fs::read(bundled(&data)).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let file = data.write("damaged.kgbundle", &bytes);
    let other = Data::new();
    other.kgfleet(&["copy", "--from", file.to_str().unwrap()]).expect(3).says(&["damaged.kgbundle"]);
    other.kgfleet(&["copy", "--from", "no-such.kgbundle"]).expect(3).says(&["no-such.kgbundle"]);
    assert!(other.runs().is_empty() && leftovers(&other).is_empty());
}

#[test]
fn a_run_is_pushed_and_pulled_whole_and_again_without_effect() {
    let (data, run) = with_run();
    let store = Data::new();
    let url = format!("file://{}", store.path().join("store").display());
    let folder = store.path().join("folder");
    for place in [url.as_str(), folder.to_str().unwrap()] {
        let push = ["copy", "latest", "--to", place];
        data.kgfleet(&push).expect(0).says(&["files copied", "all compared"]);
        data.kgfleet(&push).expect(0).says(&["files are the same"]);
        let other = Data::new();
        let pull = ["copy", "latest", "--from", place];
        let pulled = other.kgfleet(&pull).expect(0);
        pulled.prints(&[&run]);
        assert_eq!(records(&other, &run), records(&data, &run));
        other.kgfleet(&pull).expect(0).says(&["files are the same"]);
        other.kgfleet(&["verify", &run]).expect(0);
        // What was asked again there comes back, and nothing is lost here.
        other.kgfleet(&["copy", &run, "--to", place]).expect(0).says(&["files are the same"]);
        // A run that was removed can be pulled again.
        other.kgfleet(&["rm", &run]).expect(0);
        other.kgfleet(&pull).expect(0).says(&["files copied"]);
    }
    data.kgfleet(&["copy", "latest", "--to", "http://127.0.0.1:1"]).expect(2).says(&["takes no runs"]);
    data.kgfleet(&["copy", "latest", "--to", "ftp://somewhere"]).expect(2).says(&["s3://BUCKET"]);
    let of_fleet = ["copy", "latest", "--to", "elsewhere", "--coordinator", "http://127.0.0.1:1"];
    data.kgfleet(&of_fleet).expect(2).says(&["--from URL"]);
    data.kgfleet(&["copy", "nothing", "--from", &url]).expect(3).says(&["nothing"]);
}

#[test]
fn a_judged_benchmark_moves_with_all_its_runs_and_goes_on_elsewhere() {
    let data = Data::new();
    let view = data.kgfleet(&["run", "judged-demo", "--iterations", "4", "--json"]).json();
    let name = view["run"].as_str().unwrap();
    let store = Data::new();
    let url = format!("file://{}", store.path().join("store").display());
    let folder = store.path().join("folder");
    for place in [url.as_str(), folder.to_str().unwrap()] {
        let push = ["copy", "latest", "--to", place];
        data.kgfleet(&push).expect(0).says(&["its documents", "files copied"]);
        data.kgfleet(&push).expect(0).says(&["files are the same"]);
        let other = Data::new();
        let pull = ["copy", "latest", "--from", place];
        other.kgfleet(&pull).expect(0).says(&[name, "its documents"]);
        other.kgfleet(&["verify", name]).expect(0);
        assert_eq!(other.runs().len(), data.runs().len());
        let listed = other.kgfleet(&["status", "--json"]).expect(0).stdout;
        assert_eq!(listed, data.kgfleet(&["status", "--json"]).expect(0).stdout);
        // Nothing is left to do, and the results are the same.
        let resumed = other.kgfleet(&["resume", name, "--trust-endpoints", "--json"]).json();
        assert_eq!(resumed["cells"], view["cells"]);
        other.kgfleet(&pull).expect(0).says(&["files are the same"]);
    }
    // And as one file.
    let bundle = store.path().join("whole.kgbundle");
    let bundle = bundle.to_str().unwrap();
    data.kgfleet(&["copy", name, "--to", bundle]).expect(0).says(&["9 runs"]);
    let other = Data::new();
    other.kgfleet(&["copy", "--from", bundle]).expect(0).says(&[name, "its documents and 9 runs"]);
    other.kgfleet(&["verify", name]).expect(0);
    let resumed = other.kgfleet(&["resume", name, "--trust-endpoints", "--json"]).json();
    assert_eq!(resumed["cells"], view["cells"]);
}

#[test]
fn a_different_run_of_the_same_name_is_left_alone() {
    let ((one, run), (two, other)) = (with_run(), with_run());
    // As if two machines had given two runs one name.
    let place = two.path().join("runs");
    fs::rename(place.join(&other), place.join(&run)).unwrap();
    let manifest = place.join(&run).join("manifest.json");
    let text = fs::read_to_string(&manifest).unwrap().replace(&other, &run);
    fs::write(&manifest, text).unwrap();
    let before = content(&place);
    let push = ["copy", &run, "--to", two.path().to_str().unwrap()];
    one.kgfleet(&push).expect(3).says(&["different run", "nothing of it was changed"]);
    let file = bundled(&one);
    two.kgfleet(&["copy", "--from", file.to_str().unwrap()]).expect(3).says(&["different run"]);
    assert_eq!(content(&place), before);
}

/// Every file below a folder with its content.
fn content(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(content(&path));
        } else {
            found.push((path.clone(), fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}
