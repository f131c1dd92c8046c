//! What `make test` says about tests that did not run.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::workspace::{root, text_files};

/// What `tests/run` says and whether it is content, where this is cargo and published dialogues are said to be there.
fn run_with(cargo: &Path, arguments: &[&str]) -> (String, bool) {
    let mut command = Command::new(root().join("tests/run"));
    // Any folder: nothing reads it.
    command.args(arguments).env("CARGO", cargo).env("KGFLEET_CONFORMANCE", root().join("tests"));
    let output = command.output().unwrap();
    (String::from_utf8(output.stdout).unwrap(), output.status.success())
}

/// The same, where cargo does nothing.
fn run_nothing() -> (String, bool) {
    run_with(Path::new("true"), &[])
}

/// What cargo prints of an executable with these failures, of which one prints what looks like the end of another.
fn executable_with(failures: &[&str]) -> String {
    let lines = |lines: Vec<String>| lines.join("\n");
    let told = lines(
        failures.iter().map(|name| format!("---- {name} stdout ----\nfailures:\n    no::test\n")).collect(),
    );
    let named = lines(failures.iter().map(|name| format!("    {name}")).collect());
    let counts = format!("0 passed; {} failed; 0 ignored; 0 measured; 0 filtered out", failures.len());
    format!(
        "\nrunning 9 tests\n.F\nfailures:\n\n{told}\n\nfailures:\n{named}\n\ntest result: FAILED. {counts}\n\n"
    )
}

#[test]
fn all_tests_run_whatever_fails_and_the_failures_stand_at_the_end() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (cargo, said) = (folder.join("cargo"), folder.join("cargo.says"));
    let first = executable_with(&["early::a_thing_works", "early::another_works"]);
    let well = "\nrunning 1 test\n.\ntest result: ok. 1 passed; 0 failed\n\n";
    fs::write(&said, [&first, well, &executable_with(&["late"])].concat()).unwrap();
    let script =
        format!("#!/bin/sh\ncat {}\ncase \"$*\" in *--no-fail-fast*) exit 101; esac\n", said.display());
    fs::write(&cargo, script).unwrap();
    fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).unwrap();
    let (said, content) = run_with(&cargo, &["-p", "some"]);
    assert!(!content, "{said}");
    let failed = "failed:\n    early::a_thing_works\n    early::another_works\n    late\n";
    assert!(said.contains(failed), "{said}");
}

#[test]
fn with_published_dialogues_a_proof_of_parity_that_did_not_run_is_a_failure() {
    let proofs = fs::read_to_string(root().join("tests/proofs.txt")).unwrap();
    let (said, content) = run_nothing();
    assert!(!content, "{said}");
    for proof in proofs.lines() {
        assert!(said.lines().any(|line| line == proof), "{proof} is missed in\n{said}");
    }
}

#[test]
fn every_proof_on_the_list_is_a_test_and_every_test_that_reads_published_dialogues_is_on_it() {
    let proofs = fs::read_to_string(root().join("tests/proofs.txt")).unwrap();
    let files = text_files();
    let rust = || files.iter().filter(|(path, _)| path.extension().is_some_and(|end| end == "rs"));
    for proof in proofs.lines() {
        let (test, named) = (format!("fn {proof}()"), format!("(\"{proof}\")"));
        let is_proof = |text: &str| text.contains(&test) && text.contains(&named);
        assert!(rust().any(|(_, text)| is_proof(text)), "tests/proofs.txt: {proof} is no test");
    }
    let call = ["Conformance::", "find("].concat();
    for (path, text) in rust().filter(|(path, _)| !path.starts_with("tests/harness")) {
        let is_test = path.components().any(|part| part.as_os_str() == "tests");
        assert!(!is_test || !text.contains(&call), "{}: a test says which proof it is", path.display());
    }
}

#[test]
fn tests_that_are_run_by_hand_only_are_named_with_their_reasons() {
    let (said, _) = run_nothing();
    let mut found = 0;
    let mark = ["#[ign", "ore"].concat();
    for (path, text) in
        text_files().into_iter().filter(|(path, _)| path.extension().is_some_and(|end| end == "rs"))
    {
        for (at, _) in text.match_indices(&mark) {
            let reason =
                text[at + mark.len()..].strip_prefix(" = \"").and_then(|rest| rest.split('"').next());
            let reason =
                reason.unwrap_or_else(|| panic!("{}: an ignored test without a reason", path.display()));
            assert!(said.contains(reason), "{reason} is missing in\n{said}");
            found += 1;
        }
    }
    assert!(found > 0, "some tests are run by hand");
}

#[test]
fn tests_skip_aloud() {
    // What a test prints is kept by its runner unless it fails.
    let quiet = ["eprintln!(\"skip", "ped"].concat();
    for (path, text) in text_files().into_iter().filter(|(path, _)| !path.ends_with("harness/src/skip.rs")) {
        assert!(!text.to_lowercase().contains(&quiet), "{}: skip by harness::skip", path.display());
    }
}
