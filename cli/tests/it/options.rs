//! Options that every verb takes, and runs that are only outlined.

use crate::harness::{Data, NT_TASK, process};

#[test]
fn what_is_to_be_quiet_prints_its_results_and_nothing_else() {
    let data = Data::new();
    let run = ["run", "quick", "--task", NT_TASK, "--iterations", "1"];
    let quiet = data.kgfleet(&[&run[..], &["--quiet"]].concat()).expect(0);
    assert!(quiet.stderr.is_empty() && !quiet.stdout.is_empty(), "{quiet}");
    let talks = data.kgfleet(&run).expect(0);
    assert!(talks.stderr.contains("starting run"), "{talks}");
    let logs = data.kgfleet(&[&run[..], &["-v"]].concat()).expect(0);
    assert!(logs.stderr.contains(" INFO "), "{logs}");
}

#[test]
fn what_is_only_outlined_writes_nothing_and_asks_nobody() {
    let data = Data::new();
    let outline = data.kgfleet(&["run", "quick", "--dry-run"]).expect(0);
    assert!(
        outline.stdout.contains("would start a run") && outline.stdout.contains("tasks: 26"),
        "{outline}"
    );
    let nowhere = ["--endpoint", "http://127.0.0.1:9/v1", "--model", "m", "--key-env", "MY_KEY"];
    let outline = data.kgfleet(&[&["run", "--dry-run"], &nowhere[..]].concat()).expect(0);
    assert!(outline.stdout.contains("127.0.0.1:9") && outline.stdout.contains("MY_KEY"), "{outline}");
    let submission = data.kgfleet(&["submit", "quick", "--dry-run", "--fleet", "http://127.0.0.1:9"]);
    assert!(submission.expect(0).stdout.contains("to http://127.0.0.1:9"));
    assert!(data.runs().is_empty());
    data.kgfleet(&["run", "nowhere.toml", "--dry-run"]).expect(2);
}

#[test]
fn variables_come_from_a_file_unless_they_are_set() {
    let data = Data::new();
    data.write("run.env", "# how much it says\nexport KGFLEET_LOG='loud=quiet=loud'\n");
    let plan = ["plan", "quick", "--env-file", "run.env"];
    let taken = data.kgfleet(&plan).expect(2);
    assert!(taken.stderr.contains("KGFLEET_LOG"), "{taken}");
    process::finish(data.command(&plan).env("KGFLEET_LOG", "warn")).expect(0);
    data.write("run.env", "KGFLEET_LOG=warn\nsk-secret\n");
    let wrong = data.kgfleet(&plan).expect(2);
    assert!(wrong.stderr.contains("run.env:2") && !wrong.stderr.contains("sk-secret"), "{wrong}");
    data.kgfleet(&["plan", "quick", "--env-file", "missing.env"]).expect(2);
}
