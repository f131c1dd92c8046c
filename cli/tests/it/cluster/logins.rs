//! Contexts: where verbs act that are not told where.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::attacker::Guarded;
use crate::harness::{Data, Finished, process};

/// Logs in with a token of which the coordinator may not have read yet.
fn logged_in(data: &Data, arguments: &[&str]) -> Finished {
    loop {
        let login = data.kgfleet(&[&["login"], arguments].concat());
        if !login.stderr.contains("the token is unknown") {
            return login.expect(0);
        }
    }
}

#[test]
fn verbs_act_in_the_context_that_was_logged_in_to_and_say_so() {
    let Some(guarded) = Guarded::start() else { return };
    let (data, url) = (&guarded.cluster.data, guarded.coordinator.url());
    let reader = guarded.token("bob", &["--role", "reader"]);
    let file = data.state().join("contexts.toml");

    // Whom the coordinator refuses is not logged in.
    let refused = data.kgfleet(&["login", &url, "--name", "lab"]).expect(3);
    assert!(refused.stderr.contains("token"), "{refused}");
    assert!(!file.exists());
    data.kgfleet(&["status", "--context", "lab"]).expect(2);

    let login = logged_in(data, &[&url, "--name", "lab", "--token-file", &reader]);
    assert!(login.stderr.contains("logged in to lab"), "{login}");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let token = fs::read_to_string(&reader).unwrap();
    assert!(!fs::read_to_string(&file).unwrap().contains(token.trim()), "the token stays in its file");
    // What acts in a folder too says that it does not.
    let said = format!("in context lab ({url})");
    let there = data.kgfleet(&["status"]).expect(0);
    assert!(there.stderr.contains(&said) && there.stdout.contains("submitted by"), "{there}");
    let here = data.kgfleet(&["status", "--context", "here"]).expect(0);
    assert!(here.stderr.is_empty() && here.stdout.contains("started"), "{here}");
    let there = data.kgfleet(&["show", "nothing", "m/t/0"]);
    assert!(there.stderr.contains(&said), "{there}");
    for here in [&["--context", "here"][..], &["--context", "here", "--coordinator", &url]] {
        let here = data.kgfleet(&[&["show", "nothing", "m/t/0"], here].concat());
        assert!(!here.stderr.contains("lab") && here.stderr.contains("nothing"), "{here}");
    }
    data.kgfleet(&["login", "--use", "here"]).expect(0);
    assert!(!data.kgfleet(&["show", "nothing", "m/t/0"]).stderr.contains("lab"));
    data.kgfleet(&["status", "--context", "lab"]).expect(0);
    let both = process::finish(data.command(&["status"]).env("KGFLEET_CONTEXT", "lab")).expect(0);
    assert!(both.stderr.is_empty(), "who names it knows it: {both}");

    let unknown = data.kgfleet(&["login", "--use", "lap"]).expect(2);
    assert!(unknown.stderr.contains("there are: lab"), "{unknown}");
    data.kgfleet(&["login", "--forget", "lab"]).expect(0);
    data.kgfleet(&["status", "--context", "lab"]).expect(2);
}

#[test]
fn a_token_of_the_environment_is_kept_with_its_context() {
    let Some(guarded) = Guarded::start() else { return };
    let (data, url) = (&guarded.cluster.data, guarded.coordinator.url());
    let file = guarded.token("bob", &["--role", "reader"]);
    let token = fs::read_to_string(&file).unwrap();
    guarded.known(&file, &["status"]).expect(0);
    process::finish(data.command(&["login", &url]).env("KGFLEET_TOKEN", token.trim())).expect(0);
    let listed = data.kgfleet(&["login"]).expect(0);
    assert!(listed.stdout.contains("127.0.0.1") && listed.stdout.contains("kept"), "{listed}");
    assert!(!listed.stdout.contains(token.trim()));
    data.kgfleet(&["status"]).expect(0);
}
