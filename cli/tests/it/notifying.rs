//! `--notify`: what becomes of a run is told elsewhere.

use serde_json::Value;

use crate::harness::{CHEAP_TASKS, Data, Receiver, Server};

#[test]
fn the_end_of_a_run_is_told_to_an_address_and_to_a_command() {
    let (data, server) = (Data::new(), Server::start());
    // The address is asked again, the command is not.
    let receiver = Receiver::start(2);
    let heard = data.path().join("heard");
    let command = format!("{{ printenv KGFLEET_EVENT; cat; }} > {}", heard.display());
    let mut arguments = server.run_arguments(&CHEAP_TASKS[..1], 3, 2);
    arguments.extend([
        "--notify".to_owned(),
        format!("{}/hook", receiver.url()),
        "--notify".to_owned(),
        command,
    ]);
    data.kgfleet(&arguments).expect(0);

    let posts = receiver.posts();
    assert_eq!(posts.len(), 1, "told once: {posts:?}");
    assert_eq!(posts[0].0, "/hook");
    let notice: Value = serde_json::from_str(&posts[0].1).unwrap();
    let of = |field: &str| notice[field].clone();
    assert_eq!((of("event"), of("phase"), of("scored")), ("finished".into(), "finished".into(), 3.into()));
    assert_eq!(of("run"), data.run().name());
    let heard = std::fs::read_to_string(heard).unwrap();
    let (event, json) = heard.split_once('\n').unwrap();
    assert_eq!(event, "finished");
    assert_eq!(serde_json::from_str::<Value>(json).unwrap(), notice);
}

#[test]
fn a_target_that_fails_does_not_fail_the_run() {
    let (data, server) = (Data::new(), Server::start());
    let mut arguments = server.run_arguments(&CHEAP_TASKS[..1], 1, 1);
    arguments.extend(["--notify".to_owned(), "exit 7".to_owned()]);
    data.kgfleet(&arguments).expect(0).says(&["cannot notify of `finished`", "exit status: 7"]);
}
