//! Servers that refuse every request, or the key, from the start or later. The run stops with the server's message, and
//! records and pending dialogues stay as they were.

use vllm_sim::{FaultKind, FaultRule, FaultWhen};

use crate::harness::{CHEAP_TASKS, Data, NT_TASK, Server};

const INFRASTRUCTURE: i32 = 3;

#[test]
fn a_server_that_refuses_everything_is_not_asked_everything() {
    let (data, server) = (Data::new(), Server::start());
    // A server without a list of models, whose route for chat is elsewhere: nothing tells beforehand.
    let endpoint = server.url().replace("/v1", "/gateway");
    let mut arguments = server.run_arguments(&CHEAP_TASKS, 50, 32);
    let place = arguments.iter().position(|argument| *argument == server.url()).unwrap();
    arguments[place] = endpoint.clone();
    let words = format!("HTTP 404 from {endpoint}/chat/completions");
    let stopped = data.kgfleet(&arguments).expect(INFRASTRUCTURE);
    let stopped = stopped.says(&["its list of models cannot be used", "could not be asked", &words]);
    let run = data.run();
    assert!(run.entries().is_empty(), "what was refused alike is not recorded: {stopped}");
    stopped.says(&["stopped", &format!("kgfleet resume {}", run.name())]);
    data.kgfleet(&["status"]).expect(0).prints(&["interrupted"]);
    data.kgfleet(&["resume", run.name()]).expect(INFRASTRUCTURE).says(&[&words]);
}

#[test]
fn a_key_refused_in_the_middle_is_trouble_and_not_an_interrupt() {
    let data = Data::new();
    let refused = FaultKind::Status { code: 401, retry_after_s: None };
    let rules = (11..=60).map(|n| FaultRule::new(FaultWhen::Request(n), refused.clone())).collect();
    let server = Server::with_faults(rules);
    let stopped = data.kgfleet(&server.run_arguments(&[NT_TASK], 40, 1)).expect(INFRASTRUCTURE);
    let stopped = stopped.says(&[": unauthorized: HTTP 401", "kgfleet resume"]);
    assert!(!stopped.stderr.contains("interrupted"), "{stopped}");
    assert!(stopped.stdout.contains("/40)"), "a mean over a part says so: {stopped}");
}

#[test]
fn one_server_has_one_address_however_it_is_written() {
    let (data, server) = (Data::new(), Server::start());
    let whole = server.url();
    let root = whole.trim_end_matches("/v1").to_owned();
    let first = data.kgfleet(&server.run_arguments(&[NT_TASK], 2, 2)).expect(0);
    for (number, address) in
        [root, format!("{whole}/"), format!("{whole}/chat/completions")].into_iter().enumerate()
    {
        let mut arguments = server.run_arguments(&[NT_TASK], 2, 2);
        let place = arguments.iter().position(|argument| *argument == whole).unwrap();
        arguments[place] = address.clone();
        let again = data.kgfleet(&arguments).expect(0);
        assert_eq!(again.stdout, first.stdout, "{address}");
        let runs = data.runs();
        assert_eq!(runs[number + 1].manifest.configuration_hash, runs[0].manifest.configuration_hash);
    }
}
