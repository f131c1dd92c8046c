//! Several benchmarks of one identity on one fleet.

use super::attacker::Guarded;
use crate::harness::NT_TASK;

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
