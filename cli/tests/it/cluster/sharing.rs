//! Several benchmarks on one fleet.

use super::IN_FLIGHT;
use super::attacker::Guarded;
use crate::harness::server::MODEL;
use crate::harness::{Cluster, NT_TASK, TURTLE_TASK};

/// Answers between the submission of the short benchmark and the moment at which it has to be over. It has 10 dialogues of at
/// most three rounds; what the worker had in hand, and an equal part for the long one, come to fewer than the rest.
const ANSWERS: usize = 120;

const REFUSED: i32 = 3;

#[test]
fn nobody_has_more_open_dialogues_than_the_identity_may() {
    let Some(guarded) = Guarded::start() else { return };
    let alice = guarded.token("alice", &["--role", "operator", "--open-dialogues", "30"]);
    let bob = guarded.token("bob", &["--role", "operator"]);
    let file = |name: &str, iterations: u32| {
        let from = guarded.cluster.configuration(&[NT_TASK], iterations);
        let text = std::fs::read_to_string(from).unwrap().replace("'cluster'", &format!("'{name}'"));
        guarded.cluster.data.write(&format!("{name}.toml"), text).to_str().unwrap().to_owned()
    };
    let (first, second, more) = (file("first", 20), file("second", 20), file("more", 31));
    let first_run = guarded.known(&alice, &["submit", &first]).expect(0).stdout.trim().to_owned();
    // The same again is no other one.
    guarded.with(&alice, &["submit", &first]).expect(0).prints(&[&first_run]);
    let words = ["`alice` may have 30 dialogues without a record", "have 20, and this adds 20"];
    guarded.with(&alice, &["submit", &second]).expect(REFUSED).says(&words);
    guarded.with(&alice, &["submit", &more, "--extend", &first_run]).expect(REFUSED).says(&["this adds 11"]);
    // Others may, and what is over does not count.
    guarded.known(&bob, &["submit", &second]).expect(0);
    guarded.with(&alice, &["submit", &file("third", 20)]).expect(REFUSED);
    guarded.with(&alice, &["cancel", &first_run]).expect(0);
    guarded.with(&alice, &["submit", &file("third", 20)]).expect(0);
    let listed = guarded.with(&bob, &["status"]).expect(0);
    listed.prints(&["submitted by", "alice", "bob"]);
}

#[test]
fn a_short_benchmark_does_not_wait_for_the_end_of_a_long_one() {
    let Some(cluster) = Cluster::start() else { return };
    let tasks = [NT_TASK, TURTLE_TASK];
    let (server, coordinator, long, worker) = super::in_the_middle(&cluster, &tasks, 200, 4);
    let short = format!(
        "name = 'short'\nseed = 6\niterations = 10\ntasks = ['{NT_TASK}']\n[[models]]\nlabel = '{MODEL}'\n\
         connector = 'openai-compatible'\nstream = false\n"
    );
    let short = cluster.data.write("short.toml", short);
    let submitted = ["submit", short.to_str().unwrap(), "--priority", "20"];
    let name = cluster.kgfleet(&coordinator, &submitted).expect(0).stdout.trim().to_owned();
    let view = cluster.status(&coordinator, &name);
    assert_eq!((view.priority, view.submitter.as_str()), (20, "anyone"));
    assert_eq!(cluster.status(&coordinator, &long).priority, 10);
    let shown = cluster.kgfleet(&coordinator, &["status", &name]).expect(0).stdout;
    assert!(shown.contains("submitted by anyone, priority 20"), "{shown}");

    server.gate().open();
    server.gate().close_after(ANSWERS);
    let (view, finished) = cluster.watch(&coordinator, &name);
    finished.expect(0);
    assert_eq!((view.scored, view.failed), (10, 0));
    server.gate().until_held(IN_FLIGHT);
    let view = cluster.status(&coordinator, &long);
    assert!(
        view.done() > 0 && view.done() < view.planned / 2,
        "{} of {} are done",
        view.done(),
        view.planned
    );

    // Another priority is no other benchmark; an extension changes it, and keeps it where none is named.
    let file = cluster.data.path().join("cluster.toml");
    let file = file.to_str().unwrap();
    let again = cluster.kgfleet(&coordinator, &["submit", file, "--priority", "30"]).expect(0);
    assert_eq!(again.stdout.trim(), long);
    assert!(again.stderr.contains("its priority stays 10"), "{again}");
    let extended = ["submit", file, "--extend", &long, "--priority", "30"];
    let extended = cluster.kgfleet(&coordinator, &extended).expect(0);
    assert!(extended.stderr.contains("+ priority = 30"), "{extended}");
    assert_eq!(cluster.status(&coordinator, &long).priority, 30);
    cluster.kgfleet(&coordinator, &["submit", file, "--extend", &long]).expect(0);
    assert_eq!(cluster.status(&coordinator, &long).priority, 30);
    cluster.kgfleet(&coordinator, &["submit", file, "--priority", "101"]).expect(2);
    drop(worker);
}
