//! Judged benchmarks of a fleet, read on a machine that has none of their records.

use std::path::Path;

use domain::control::RunPhase;

use super::{configuration, pack, rows, with_skill};
use crate::harness::{Cluster, Data, Finished, free_port};

/// Questions of the assessment.
const QUESTIONS: usize = 8;

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// What was printed, without what is said of the way there.
fn printed(finished: Finished) -> String {
    finished.expect(0).stdout
}

#[test]
fn a_pipeline_of_a_fleet_has_the_tables_reports_and_sheets_that_it_has_beside_its_records() {
    let Some(cluster) = Cluster::start() else { return };
    let near = &cluster.data;
    let right = configuration(&pack(near, QUESTIONS, 2), QUESTIONS, &[0.9, 0.4], 1.0);
    let file = near.write("halu.toml", with_skill(&right, "classifier", 0.5));
    let other = near.write("other.toml", right);
    let place = format!("127.0.0.1:{}", free_port());
    let simulator =
        ["simulate", "--benchmark", text(&file), "--classifier", "classifier-1", "--listen", &place];
    let _simulator = near.start(&simulator);
    let coordinator = cluster.coordinator();
    let first = printed(cluster.kgfleet(&coordinator, &["submit", text(&file)])).trim().to_owned();

    // Where nothing of it lies.
    let far = Data::new();
    let url = coordinator.url();
    let from_afar = |arguments: &[&str]| far.kgfleet(&[arguments, &["--coordinator", &url]].concat());
    let waiting = from_afar(&["table", &first]).expect(0);
    waiting.prints(&["is not finished", "answers of m00 that are not complete"]);

    let _worker = cluster.worker_with("w", coordinator.port, &format!("http://{place}"), &[]);
    let (view, finished) = cluster.watch(&coordinator, &first);
    assert_eq!((view.phase, view.failed), (RunPhase::Finished, 0), "{finished}");
    let judged = ["rejudge", "latest", "--with", text(&other)];
    let second = printed(cluster.kgfleet(&coordinator, &judged)).trim().to_owned();
    let (view, finished) = cluster.watch(&coordinator, &second);
    assert_eq!((view.phase, view.failed), (RunPhase::Finished, 0), "{finished}");

    // The second takes its answers from the first.
    let beginning = &second[..second.len() - 2];
    for (pipeline, name, shows) in [
        (&first, first.as_str(), &["halu-answers"][..]),
        (&second, "latest", &["halu", "halu-stages"]),
        (&second, beginning, &["halu-types"]),
    ] {
        for show in shows {
            let told = from_afar(&["table", name, "--show", show, "--format", "json"]).expect(0);
            assert_eq!(
                told.json()["rows"],
                serde_json::Value::from(rows(near, pipeline, show)),
                "{name} {show}"
            );
        }
    }
    let stages = rows(near, &first, "halu-stages");
    assert!(stages.iter().any(|row| row["stage"] == "expert" && row["facts decided"].as_u64() > Some(0)));

    let made = |data: &Data, arguments: &[&str], more: &[&str]| {
        let out = data.path().join(arguments[1]);
        let arguments = [arguments, &["--out", text(&out)], more].concat();
        let told = data.kgfleet(&arguments).expect(0).stdout;
        (told, std::fs::read_to_string(out).unwrap())
    };
    let remote = ["--coordinator", url.as_str()];
    for command in [
        &["halu", "sample", &first, "--count", "20"][..],
        &["halu", "calibrate", &first, &second],
        &["report", &first, "--title", "both"],
    ] {
        assert_eq!(made(&far, command, &remote), made(near, command, &[]), "{command:?}");
    }
    let sheet = far.path().join("sample");
    let said: String = std::fs::read_to_string(&sheet)
        .unwrap()
        .lines()
        .filter_map(|line| {
            let (id, rest) = line.split_once(',')?;
            let verdict = if rest.starts_with("Does") { "stated" } else { "same" };
            (id.starts_with('h') && id.len() == 17).then(|| format!("{id},{verdict}\n"))
        })
        .collect();
    std::fs::write(&sheet, format!("id,verdict\n{said}")).unwrap();
    let agreement = ["halu", "agreement", &first, text(&sheet)];
    assert_eq!(printed(from_afar(&agreement)), printed(near.kgfleet(&agreement)));

    // What is no such pipeline.
    let run = format!("{first}.ask.m00.1");
    from_afar(&["halu", "sample", &run, "--out", "x.csv"]).expect(2).says(&[&run, "is no pipeline"]);
    from_afar(&["table", &run, "--show", "halu"]).expect(2).says(&["none is named"]);
    from_afar(&["table", "nothing"]).expect(2).says(&["nothing"]);
    let archive = far.path().join("first.tar.zst");
    from_afar(&["archive", &first, "--out", text(&archive)]).expect(0);
    let unpacked = far.kgfleet(&["halu", "agreement", text(&archive), text(&sheet)]);
    assert_eq!(printed(unpacked), printed(near.kgfleet(&agreement)));
}
