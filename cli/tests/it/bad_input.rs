//! Mistakes of users and failures of the environment: the message names the cause, the exit code is documented, and
//! nothing is lost.

use domain::FailureCause;

use crate::harness::{Data, NT_TASK, Server, TURTLE_PROMPT, TURTLE_TASK};

/// What the documentation of exit codes calls them.
const USAGE: i32 = 2;
const INFRASTRUCTURE: i32 = 3;

#[test]
fn keys_are_needed_checked_and_never_told() {
    const RIGHT: &str = "right-key-51f2";
    const WRONG: &str = "wrong-key-93ab";
    let (data, server) = (Data::new(), Server::with_key(RIGHT));
    let mut arguments = server.run_arguments(&[NT_TASK], 2, 2);
    data.kgfleet(&arguments).expect(INFRASTRUCTURE).says(&["unauthorized", &server.url()]);
    arguments.extend(["--key-env", "SIM_KEY"].map(str::to_owned));
    data.kgfleet(&arguments).expect(USAGE).says(&["SIM_KEY"]);

    let with_key = |key: &str| crate::harness::process::finish(data.command(&arguments).env("SIM_KEY", key));
    let refused = with_key(WRONG).expect(INFRASTRUCTURE).says(&["unauthorized", &server.url()]);
    assert!(!refused.stderr.contains(WRONG), "{refused}");
    assert!(data.runs().iter().all(|run| run.entries().is_empty()));

    with_key(RIGHT).expect(0);
    let run = data.runs().pop().unwrap();
    data.kgfleet(&["export", run.name(), "--format", "jsonl"]).expect(0);
    for folder in [run.dir.path().to_owned(), run.dir.exports()] {
        for file in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let bytes = if file.is_file() { std::fs::read(&file).unwrap() } else { Vec::new() };
            let told = bytes.windows(RIGHT.len()).any(|window| window == RIGHT.as_bytes());
            assert!(!told, "{} holds the key", file.display());
        }
    }
    assert!(run.entries().iter().all(|entry| !serde_json::to_string(entry).unwrap().contains(RIGHT)));
}

#[test]
fn a_data_folder_that_cannot_be_written_is_named() {
    let data = Data::new();
    // Below a regular file not even root can make a folder.
    let file = data.write("file", "");
    let below = file.join("below");
    let below = below.to_str().unwrap();
    let arguments = ["run", "--task", NT_TASK, "--iterations", "1", "--no-sandbox", "--data-dir", below];
    data.kgfleet(&arguments).expect(INFRASTRUCTURE).says(&[below]);
}

#[test]
fn damage_in_a_log_is_found_told_and_mended_by_asking_again() {
    // Written by two processes, so that there are at least two frames.
    let (data, server) = (Data::new(), Server::stuck_at(TURTLE_PROMPT));
    let mut process = data.start(&server.run_arguments(&[NT_TASK, TURTLE_TASK], 10, 32));
    data.until_recorded(&mut process, 10);
    drop(process);
    let run = data.run();
    data.kgfleet(&["resume", run.name()]).expect(0);
    let segment = run.dir.log().join("00000001-00000001.kglog");
    let mut bytes = std::fs::read(&segment).unwrap();
    // In the last frame, which has records.
    let at = bytes.len() - 10;
    bytes[at] ^= 0xff;
    std::fs::write(&segment, bytes).unwrap();

    let damaged = data.kgfleet(&["verify", run.name()]).expect(1);
    damaged.prints(&["corrupt bytes", "planned dialogues have no record yet", "the log is damaged"]);
    server.gate().take_asked();
    data.kgfleet(&["resume", run.name()])
        .expect(0)
        .says(&["the record log is damaged", "20 dialogues scored"]);
    let asked = server.gate().take_asked().len();
    assert!((1..=10).contains(&asked), "{asked} dialogues were asked again");
    // The damage stays in the log and is told; what was lost is there again.
    data.kgfleet(&["verify", run.name()]).expect(1).prints(&["20 dialogues: 20 scored", "corrupt bytes"]);
}

#[test]
fn a_server_that_restarts_is_waited_for() {
    let (data, server) = (Data::new(), Server::stuck_at(TURTLE_PROMPT));
    let mut process = data.start(&server.run_arguments(&[NT_TASK, TURTLE_TASK], 4, 32));
    data.until_recorded(&mut process, 4);
    let address = server.address();
    drop(server);
    let _server = Server::at(address);
    process.finish().expect(0).says(&["8 dialogues scored, 0 failed"]);
    for (key, entry) in data.run().records() {
        let failed = entry.rounds.iter().flat_map(|round| &round.failed_calls);
        let broken = failed.filter(|call| call.cause == FailureCause::Connection).count();
        assert_eq!(broken > 0, key.task.as_str() == TURTLE_TASK, "{key} keeps what went wrong");
    }
}
