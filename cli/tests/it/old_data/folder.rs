//! Folders of one machine that earlier versions left.

use super::{Left, archives, assert_exported, assert_kept, entries, opened};
use crate::harness::Data;

fn left_folders() -> Vec<(Data, Left)> {
    let open = |archive: std::path::PathBuf| {
        let data = Data::new();
        let left = opened(&archive, &data);
        (data, left)
    };
    archives("folder").into_iter().map(open).collect()
}

/// Formats that hold every dialogue.
const FORMATS: [&str; 5] = ["result-json", "csv", "xlsx", "parquet", "jsonl"];

#[test]
fn an_unfinished_run_of_an_earlier_version_goes_on_and_keeps_what_it_has() {
    for (data, left) in left_folders() {
        let (name, [planned, scored, failed]) = left.exact();
        assert_eq!(Left::of(&data).exact(), left.exact());
        let before = entries(&data);
        data.kgfleet(&["status"]).expect(0).prints(&[name, "interrupted"]);
        let missing = format!("{} planned dialogues have no record yet", planned - scored - failed);
        data.kgfleet(&["verify", name]).expect(1).prints(&[&missing]);
        data.kgfleet(&["table", name]).expect(0);
        let shown = before[name].iter().find(|entry| entry.record.outcome.is_scored()).unwrap();
        let key = shown.record.key.to_string();
        let record = data.kgfleet(&["show", name, &key, "--json"]).expect(0).json();
        assert_eq!(record, serde_json::to_value(&shown.record).unwrap());

        let resumed = data.kgfleet(&["resume", name, "--evaluators", "1"]).expect(0);
        resumed.says(&["continuing run", &format!("{planned} dialogues scored, 0 failed")]);
        assert_kept(&before, &data);
        data.kgfleet(&["verify", name]).expect(0).prints(&["the log is sound"]);
        for format in FORMATS {
            let out = data.path().join(format);
            let arguments = ["export", name, "--format", format, "--out", out.to_str().unwrap()];
            data.kgfleet(&arguments).expect(0).says(&[&format!("({planned} dialogues)")]);
        }
        assert_exported(&data.path().join("jsonl"), &before[name], planned);
    }
}

#[test]
fn an_unfinished_judged_benchmark_of_an_earlier_version_goes_on_and_keeps_what_it_has() {
    for (data, left) in left_folders() {
        let name = left.judged();
        let before = entries(&data);
        data.kgfleet(&["status"]).expect(0).prints(&[name, "interrupted"]);
        data.kgfleet(&["status", "--stages"]).expect(0).prints(&[&format!("{name}.ask.")]);

        let resumed = data.kgfleet(&["resume", name, "--evaluators", "1", "--json"]).expect(0);
        let view: domain::control::BenchmarkView = serde_json::from_value(resumed.json()).unwrap();
        assert_eq!((view.scored, view.failed), (view.planned, 0), "{resumed}");
        assert_kept(&before, &data);
        let folder = data.path().join("exported");
        let arguments = ["export", name, "--format", "jsonl", "--out", folder.to_str().unwrap()];
        data.kgfleet(&arguments).expect(0);
        let mut asked = 0;
        for run in data.runs().iter().filter(|run| run.name().starts_with(&format!("{name}."))) {
            data.kgfleet(&["verify", run.name()]).expect(0).prints(&["the log is sound"]);
            let planned = run.manifest.planned_dialogues;
            let empty = Vec::new();
            let before = before.get(run.name()).unwrap_or(&empty);
            assert_exported(&folder.join(format!("{}.jsonl", run.name())), before, planned);
            asked += if run.name().contains(".ask.") { planned } else { 0 };
        }
        assert_eq!(asked, view.planned);
    }
}
