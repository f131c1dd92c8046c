//! Logins: where verbs act that are not told where.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::attacker::Guarded;
use crate::harness::{Data, Finished, process};

/// Logs in with a token of which the coordinator may not have read yet.
fn logged_in(data: &Data, arguments: &[&str]) -> Finished {
    loop {
        let login = data.kgfleet(&[&["fleet", "login"], arguments].concat());
        if !login.stderr.contains("the token is unknown") {
            return login.expect(0);
        }
    }
}

#[test]
fn verbs_act_in_the_fleet_that_was_logged_in_to_and_say_so() {
    let Some(guarded) = Guarded::start() else { return };
    let (data, url) = (&guarded.cluster.data, guarded.coordinator.url());
    let reader = guarded.token("bob", &["--role", "reader"]);
    let file = data.state().join("login.toml");

    // Whom the coordinator refuses is not logged in.
    let refused = data.kgfleet(&["fleet", "login", &url]).expect(3);
    assert!(refused.stderr.contains("token"), "{refused}");
    assert!(!file.exists());

    let login = logged_in(data, &[&url, "--token-file", &reader]);
    assert!(login.stderr.contains(&format!("logged in to {url}")), "{login}");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let token = fs::read_to_string(&reader).unwrap();
    assert!(!fs::read_to_string(&file).unwrap().contains(token.trim()), "the token stays in its file");
    assert_eq!(data.kgfleet(&["fleet", "login"]).expect(0).stdout.trim(), url);
    // What acts in a folder too says that it does not.
    let said = format!("in the fleet {url}");
    let there = data.kgfleet(&["status"]).expect(0);
    assert!(there.stderr.contains(&said) && there.stdout.contains("started"), "{there}");
    let there = data.kgfleet(&["show", "nothing", "m/t/0"]);
    assert!(there.stderr.contains(&said), "{there}");
    let here = data.kgfleet(&["status", "--fleet", "here"]).expect(0);
    assert!(here.stderr.is_empty() && here.stdout.contains("started"), "{here}");
    let here = process::finish(data.command(&["status"]).env("KGFLEET_FLEET", "here")).expect(0);
    assert!(here.stderr.is_empty() && here.stdout.contains("started"), "{here}");
    data.kgfleet(&["cancel", "nothing", "--fleet", "here"]).expect(2).says(&["there is no run nothing"]);
    data.kgfleet(&["status", "--fleet", "here", "--fleet", &url]).expect(2);
    // Another fleet does not get the token, not even by another address of the same one.
    let other = url.replace("127.0.0.1", "localhost");
    let named = data.kgfleet(&["status", "--fleet", &other]).expect(3);
    assert!(named.stderr.contains("token") && !named.stderr.contains(&said), "{named}");

    data.kgfleet(&["fleet", "login", "here"]).expect(0);
    assert!(!file.exists());
    assert_eq!(data.kgfleet(&["fleet", "login"]).expect(0).stdout.trim(), "this machine");
    assert!(!data.kgfleet(&["show", "nothing", "m/t/0"]).stderr.contains(&said));
}

#[test]
fn a_token_of_the_environment_is_kept_with_its_fleet() {
    let Some(guarded) = Guarded::start() else { return };
    let (data, url) = (&guarded.cluster.data, guarded.coordinator.url());
    let file = guarded.token("bob", &["--role", "reader"]);
    let token = fs::read_to_string(&file).unwrap();
    guarded.known(&file, &["status"]).expect(0);
    process::finish(data.command(&["fleet", "login", &url]).env("KGFLEET_TOKEN", token.trim())).expect(0);
    let shown = data.kgfleet(&["fleet", "login"]).expect(0);
    assert_eq!((shown.stdout.trim(), shown.stderr.as_str()), (url.as_str(), ""));
    data.kgfleet(&["status"]).expect(0);
}
