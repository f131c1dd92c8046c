//! The Kubernetes chart, by its own checks, which are written in Python because Helm's library and the validators are.

use std::process::Command;

use crate::workspace::root;

/// Where `tests/setup` installs the checks' packages.
const PYTHON: &str = "target/chart-venv/bin/python";

#[test]
fn the_chart_renders_validates_and_keeps_to_its_policy() {
    let python = root().join(PYTHON);
    if !python.exists() {
        harness::skip("the chart's checks need Helm's library: tests/setup installs it");
        return;
    }
    let checked =
        Command::new(python).arg("helm/kgfleet/tests/check.py").current_dir(root()).output().unwrap();
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(checked.status.success(), "{}{}", said(&checked.stdout), said(&checked.stderr));
    assert!(said(&checked.stdout).contains(" 0 failures"), "{}", said(&checked.stdout));
}
