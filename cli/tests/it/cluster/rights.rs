//! Rights that end, and what is noted of those who use them.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use rustix::process::Signal;

use super::attacker::Guarded;
use crate::harness::{Cluster, NT_TASK, free_port};

const USAGE: i32 = 2;
const REFUSED: i32 = 3;

#[test]
fn rights_end_with_their_time_and_by_revocation_at_every_coordinator() {
    let Some(guarded) = Guarded::start() else { return };
    let second = guarded.cluster.coordinator_with(
        free_port(),
        &[
            "--tokens",
            &guarded.tokens,
            "--data-dir",
            guarded.cluster.data.path().join("other").to_str().unwrap(),
        ],
    );
    let alice = guarded.token("alice", &["--role", "operator"]);
    let bob = guarded.token("bob", &["--role", "reader", "--expires", "90d"]);
    let brief = guarded.token("brief", &["--role", "reader", "--expires", "2999-01-01"]);
    let at_second = |token: &str| guarded.cluster.kgfleet(&second, &["status", "--token-file", token]);
    for token in [&alice, &bob, &brief] {
        guarded.known(token, &["status"]).expect(0);
        while at_second(token).stderr.contains("the token is unknown") {}
        at_second(token).expect(0);
    }
    // Its time is over.
    let file = std::fs::read_to_string(&guarded.tokens).unwrap();
    std::fs::write(&guarded.tokens, file.replace("2999-01-01T00:00:00Z", "2020-01-01T00:00:00Z")).unwrap();
    while !guarded.with(&brief, &["status"]).stderr.contains("the rights of `brief` have expired") {}
    // Its rights are taken, while it watches.
    let kgfleet = |arguments: &[&str]| guarded.cluster.data.kgfleet(arguments);
    kgfleet(&["fleet", "token", "revoke", "nobody", "--tokens", &guarded.tokens])
        .expect(USAGE)
        .says(&["no identity `nobody`"]);
    kgfleet(&["fleet", "token", "revoke", "bob", "--tokens", &guarded.tokens]).expect(0);
    while !guarded.with(&bob, &["status"]).stderr.contains("the rights of `bob` were revoked") {}
    while !at_second(&bob).stderr.contains("the rights of `bob` were revoked") {}
    guarded.with(&bob, &["status"]).expect(REFUSED);
    guarded.with(&alice, &["status"]).expect(0);
    // Nobody gets the name again.
    let again = ["fleet", "token", "new", "--name", "bob", "--role", "operator", "--append", &guarded.tokens];
    kgfleet(&again).expect(USAGE).says(&["another identity has the same name"]);
    kgfleet(&["fleet", "token", "revoke", "bob", "--tokens", &guarded.tokens])
        .expect(USAGE)
        .says(&["were revoked at"]);

    let listed = kgfleet(&["fleet", "token", "list", "--tokens", &guarded.tokens, "--json"]).expect(0);
    let lines: Vec<serde_json::Value> =
        listed.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3, "{listed}");
    assert!(lines[0]["revoked"].is_null(), "{listed}");
    assert!(lines[1]["expires"].is_string() && lines[1]["revoked"].is_string(), "{listed}");
    kgfleet(&["fleet", "token", "list", "--tokens", &guarded.tokens])
        .expect(0)
        .prints(&["alice", "revoked", "expired", "valid"]);
}

#[test]
fn a_token_in_a_file_is_for_its_owner_and_never_replaces_one() {
    let Some(guarded) = Guarded::start() else { return };
    let out = guarded.cluster.data.path().join("carol.token");
    let new = |name: &str| {
        let to = out.to_str().unwrap();
        let new = [
            "fleet",
            "token",
            "new",
            "--name",
            name,
            "--role",
            "reader",
            "--append",
            &guarded.tokens,
            "--out",
            to,
        ];
        guarded.cluster.data.kgfleet(&new)
    };
    assert_eq!(new("carol").expect(0).stdout, "");
    assert_eq!(std::fs::metadata(&out).unwrap().permissions().mode() & 0o777, 0o600);
    guarded.known(out.to_str().unwrap(), &["status"]).expect(0);
    new("dave").expect(USAGE).says(&["cannot create"]);
    let known = std::fs::read_to_string(&guarded.tokens).unwrap();
    assert!(known.contains("carol") && !known.contains("dave"), "{known}");
}

/// Lines of the audit logs, as `who act about`.
fn noted(cluster: &Cluster) -> Vec<String> {
    let audit = cluster.data.kgfleet(&["fleet", "audit", "--json"]).expect(0);
    let line = |line: &str| {
        let entry: serde_json::Value = serde_json::from_str(line).unwrap();
        let text = |field: &str| entry[field].as_str().unwrap_or("-").to_owned();
        format!("{} {} {}", text("who"), text("act"), text("about"))
    };
    audit.stdout.lines().map(line).collect()
}

#[test]
fn who_did_what_stands_in_the_audit_log_and_outlives_the_run() {
    let Some(guarded) = Guarded::start() else { return };
    let operator = guarded.token("alice", &["--role", "operator"]);
    let reader = guarded.token("bob", &["--role", "reader"]);
    let configuration = guarded.cluster.configuration(&[NT_TASK], 1);
    let submitted = guarded.known(&operator, &["submit", configuration.to_str().unwrap()]).expect(0);
    let run = submitted.stdout.trim().to_owned();
    guarded.with(&reader, &["cancel", &run]).expect(REFUSED);
    guarded.with(&operator, &["pause", &run]).expect(0);
    guarded.with(&operator, &["rm", &run, "--force"]).expect(0);
    guarded.cluster.data.kgfleet(&["fleet", "token", "revoke", "bob", "--tokens", &guarded.tokens]).expect(0);
    while !guarded.with(&reader, &["status"]).stderr.contains("were revoked") {}
    let lines = noted(&guarded.cluster);
    for expected in [
        "alice identity added -".to_owned(),
        "alice submit cluster".to_owned(),
        format!("alice pause {run}"),
        format!("alice remove by force {run}"),
        "bob identity revoked -".to_owned(),
    ] {
        assert!(lines.contains(&expected), "`{expected}` is missing in {lines:#?}");
    }
    assert!(!lines.iter().any(|line| line.contains("cancel")), "what was refused is no act: {lines:#?}");
    let alices =
        guarded.cluster.data.kgfleet(&["fleet", "audit", "--who", "alice", "--act", "pause"]).expect(0);
    alices.prints(&["127.0.0.1", &run]);
    guarded.coordinator.process.signal(Signal::TERM);
    let refused = "refused who=\"bob\" from=\"127.0.0.1\" what=\"cancel_run: `bob` may not call cancel_run: it needs the role operator";
    guarded.coordinator.process.finish().says(&[refused]);
}

#[test]
fn what_the_audit_log_has_no_room_for_is_not_done() {
    if !Path::new("/dev/full").exists() {
        crate::harness::skip("there is no /dev/full");
        return;
    }
    let Some(cluster) = Cluster::start() else { return };
    let port = free_port();
    let (own, full) = (cluster.data.path().join("audit"), cluster.data.path().join("full"));
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let files = full.join(format!("{host}-{port}"));
    std::fs::create_dir_all(&files).unwrap();
    // Every write into it fails as on a full disk, and it cannot be made shorter.
    let file = files.join("acts.jsonl");
    symlink("/dev/full", &file).unwrap();
    let with = |folder: &Path| {
        let queue = cluster.redis.url();
        cluster.coordinator_with(port, &["--audit-dir", folder.to_str().unwrap(), "--queue", &queue])
    };
    let coordinator = with(&own);
    let run = cluster.submit(&coordinator, &[NT_TASK], 1);
    drop(coordinator);
    let coordinator = with(&full);
    let refused = cluster.kgfleet(&coordinator, &["rm", &run, "--force"]).expect(REFUSED);
    refused.says(&["nothing was done", "audit log", "No space left"]);
    cluster.kgfleet(&coordinator, &["status", &run]).expect(0);
    std::fs::remove_file(file).unwrap();
    cluster.kgfleet(&coordinator, &["rm", &run, "--force"]).expect(0);
}
