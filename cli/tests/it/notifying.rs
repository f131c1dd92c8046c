//! `--webhook` and `--on-end`: events of a run are reported elsewhere.

use serde_json::Value;

use crate::harness::{CHEAP_TASKS, Cluster, Data, Receiver, Server, wait_until};

#[test]
fn the_end_of_a_run_is_told_to_an_address_and_to_a_command() {
    let (data, server) = (Data::new(), Server::start());
    // The address is asked again, the command is not.
    let receiver = Receiver::start(2);
    let heard = data.path().join("heard");
    let command = format!("cat > {}", heard.display());
    let mut arguments = server.run_arguments(&CHEAP_TASKS[..1], 3, 2);
    arguments.extend([
        "--webhook".to_owned(),
        format!("{}/hook", receiver.url()),
        "--on-end".to_owned(),
        command,
    ]);
    data.kgfleet(&arguments).expect(0);

    let posts = receiver.posts();
    assert_eq!(posts.len(), 1, "told once: {posts:?}");
    assert_eq!(posts[0].0, "/hook");
    let notice: Value = serde_json::from_slice(&posts[0].1).unwrap();
    let of = |field: &str| notice[field].clone();
    assert_eq!((of("event"), of("phase"), of("scored")), ("finished".into(), "finished".into(), 3.into()));
    assert_eq!(of("run"), data.run().name());
    let heard = std::fs::read_to_string(heard).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&heard).unwrap(), notice);
}

/// The events that were told so far, in order, with the notices.
fn told(receiver: &Receiver) -> Vec<(String, Value)> {
    let notices = receiver.posts().into_iter().map(|(_, body)| serde_json::from_slice(&body).unwrap());
    notices.map(|notice: Value| (notice["event"].as_str().unwrap().to_owned(), notice)).collect()
}

/// Waits until an event was told; its notice.
#[track_caller]
fn until_told(receiver: &Receiver, event: &str) -> Value {
    let mut found = None;
    wait_until(&format!("`{event}` is told"), || {
        found = told(receiver).into_iter().find(|(told, _)| told == event);
        found.is_some()
    });
    found.unwrap().1
}

#[test]
fn a_run_that_stands_is_told_and_so_is_its_end() {
    let (data, server, receiver) = (Data::new(), Server::start(), Receiver::start(0));
    server.gate().close_after(2);
    let mut arguments = server.run_arguments(&CHEAP_TASKS[..1], 4, 1);
    arguments.extend([
        "--webhook".to_owned(),
        receiver.url(),
        "--stalled-after".to_owned(),
        "0.3".to_owned(),
    ]);
    let following = data.start(&arguments);
    server.gate().until_held(1);
    let notice = until_told(&receiver, "stalled");
    assert_eq!((&notice["phase"], &notice["planned"]), (&"active".into(), &4.into()), "{notice}");
    assert!(told(&receiver).iter().all(|(event, _)| event == "stalled"), "nothing else is told: {notice}");
    server.gate().open();
    following.finish().expect(0);
    let notice = until_told(&receiver, "finished");
    assert_eq!(notice["scored"], 4, "{notice}");
}

#[test]
fn a_model_that_nobody_serves_is_told() {
    let Some(cluster) = Cluster::start() else { return };
    let receiver = Receiver::start(0);
    let coordinator = cluster.coordinator();
    let configuration = cluster.configuration(&CHEAP_TASKS[..1], 2);
    let (url, to) = (receiver.url(), coordinator.url());
    let _following = cluster.data.start(&[
        "submit",
        configuration.to_str().unwrap(),
        "--follow",
        "--webhook",
        &url,
        "--blocked-after",
        "0.3",
        "--fleet",
        &to,
    ]);
    let notice = until_told(&receiver, "blocked");
    assert_eq!(notice["blocked"][0]["models"], serde_json::json!(["sim"]), "{notice}");
    assert!(notice["blocked"][0]["reason"].as_str().unwrap().contains("no worker serves it"), "{notice}");
}

#[test]
fn whom_to_tell_and_nobody_who_follows_the_run_is_a_mistake() {
    let data = Data::new();
    let arguments = ["submit", "quick", "--on-end", "true", "--fleet", "http://127.0.0.1:1"];
    data.kgfleet(&arguments).expect(2).says(&["--follow"]);
    data.kgfleet(&["run", "--webhook", "http://127.0.0.1:1", "--stalled-after", "0"])
        .expect(2)
        .says(&["more than 0 seconds"]);
}

#[test]
fn a_target_that_fails_does_not_fail_the_run() {
    let (data, server) = (Data::new(), Server::start());
    let mut arguments = server.run_arguments(&CHEAP_TASKS[..1], 1, 1);
    arguments.extend(["--on-end".to_owned(), "exit 7".to_owned()]);
    data.kgfleet(&arguments).expect(0).says(&["the command of --on-end ended with", "exit status: 7"]);
}
