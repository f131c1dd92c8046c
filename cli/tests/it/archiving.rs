//! Runs that are kept as one file and read, restored and gone on with elsewhere.

use std::fs;
use std::path::Path;

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

fn archived(data: &Data, name: &str) -> String {
    let file = data.path().join("kept.tar.zst").to_str().unwrap().to_owned();
    data.kgfleet(&["archive", name, "--out", &file]).expect(0).prints(&["kept.tar.zst"]);
    file
}

#[test]
fn an_archive_is_read_as_its_run_is_and_goes_on_where_it_is_unpacked() {
    let (data, run) = with_run();
    let file = archived(&data, "latest");
    let first = fs::read(&file).unwrap();
    archived(&data, "latest");
    assert_eq!(fs::read(&file).unwrap(), first, "equal runs make equal archives");

    let other = Data::new();
    for command in
        [&["table"][..], &["table", "--show", "dialogues"], &["show"], &["status", "--json"], &["verify"]]
    {
        let of = |name: &str| {
            [&command[..1], &[name], &command[1..]]
                .concat()
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
        };
        let read = other.kgfleet(&of(&file)).expect(0);
        assert_eq!(read.stdout, data.kgfleet(&of(&run)).expect(0).stdout, "{command:?}");
    }
    assert_eq!(records(&other, &file), records(&data, &run));
    assert!(other.runs().is_empty(), "who reads an archive keeps nothing of it");

    other.unpack(Path::new(&file));
    assert_eq!(records(&other, &run), records(&data, &run));
    other.kgfleet(&["verify", &run]).expect(0).prints(&["the log is sound"]);
    // The pack came along, so the run does not depend on the one that a later kgfleet has.
    assert_eq!(fs::read_dir(other.path().join("packs")).unwrap().count(), 1);
    other.kgfleet(&["resume", &run, "--trust-endpoints"]).expect(0);
}
