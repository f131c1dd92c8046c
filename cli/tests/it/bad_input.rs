//! Mistakes of users and failures of the environment: the message names the cause, the exit code is documented, and
//! nothing is lost.

use std::net::TcpListener;

use domain::FailureCause;

use crate::harness::{Data, NT_TASK, Server, TURTLE_PROMPT, TURTLE_TASK};

/// What the documentation of exit codes calls them.
const USAGE: i32 = 2;
const INFRASTRUCTURE: i32 = 3;

fn simulated(more: &str) -> String {
    format!("name = 'a'\niterations = 2\n{more}\n[[models]]\nlabel = 'm'\nconnector = 'simulated'\n")
}

#[test]
fn an_endpoint_that_nobody_listens_on_is_named() {
    let data = Data::new();
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{nobody}/v1");
    let finished = data.kgfleet(&["run", "--endpoint", &url, "--model", "m"]).expect(INFRASTRUCTURE);
    finished.says(&["model `m`", &url]);
    assert!(data.runs().is_empty(), "a run that could not begin leaves nothing behind");
}

#[test]
fn a_wrong_model_name_is_answered_with_the_names_that_are_served() {
    let (data, server) = (Data::new(), Server::start());
    let arguments = ["run", "--endpoint", &server.url(), "--model", "simm"];
    let finished = data.kgfleet(&arguments).expect(INFRASTRUCTURE);
    finished.says(&["model-not-found: HTTP 404", "its list of models lacks `simm`; it names sim, sim-other"]);
    assert!(data.run().entries().is_empty(), "one question was asked, and not recorded");
}

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
fn mistakes_in_configurations_are_named_with_their_place() {
    let data = Data::new();
    let yaml = "name: a\nmodels: [{label: m, connector: simulated, skil: 0.5}]\n";
    let cases = [
        ("key.toml", simulated("iteration = 3"), vec!["iteration", "line 3"]),
        ("key.yaml", yaml.to_owned(), vec!["skil"]),
        (
            "value.toml",
            simulated("").replace("= 2", "= 0"),
            vec!["`iterations` is 0", "between 1 and 100000"],
        ),
        ("task.toml", simulated("tasks = ['RdfFriendCount-xyz']"), vec!["RdfFriendCount-xyz"]),
        ("pack.toml", simulated("pack = 'no-such.pack'"), vec!["no-such.pack"]),
        ("syntax.toml", "name = \n".to_owned(), vec!["line 1"]),
        ("connector.toml", simulated("").replace("simulated", "telepathy"), vec!["telepathy"]),
    ];
    for (name, text, culprits) in cases {
        let file = data.write(name, text);
        for verb in ["run", "plan"] {
            data.kgfleet(&[verb, file.to_str().unwrap()]).expect(USAGE).says(&culprits);
        }
    }
    data.kgfleet(&["run", "no-such.toml"]).expect(USAGE).says(&["no-such.toml"]);
    data.kgfleet(&["run", "--task", "Nonsense*"]).expect(USAGE).says(&["Nonsense*"]);
    data.kgfleet(&["run", "--iterations", "0"]).expect(USAGE).says(&["iterations"]);
    data.kgfleet(&["run", "--concurrency", "0"]).expect(USAGE).says(&["--concurrency"]);
    data.kgfleet(&["run", "--endpoint", "http://127.0.0.1:1/v1"]).expect(USAGE).says(&["--model"]);
    data.kgfleet(&["run", "--endpoint", "not a url", "--model", "m"]).expect(USAGE).says(&["not a url"]);
    assert!(data.runs().is_empty());
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
fn runs_that_are_not_there_are_named() {
    let data = Data::new();
    for verb in ["resume", "retry", "verify", "rm"] {
        data.kgfleet(&[verb, "nothing"]).expect(INFRASTRUCTURE).says(&["nothing"]);
    }
    data.kgfleet(&["export", "nothing", "--format", "csv"]).expect(INFRASTRUCTURE).says(&["nothing"]);
    data.kgfleet(&["show", "nothing", "m/t/0"]).expect(INFRASTRUCTURE).says(&["nothing"]);
    data.kgfleet(&["rm", "../escape"]).expect(INFRASTRUCTURE).says(&["`../escape` is not a run name"]);
    data.kgfleet(&["status"]).expect(0);
}

#[test]
fn a_run_of_a_newer_version_is_left_alone() {
    let (data, server) = (Data::new(), Server::start());
    let arguments = server.run_arguments(&[NT_TASK], 2, 2);
    data.kgfleet(&arguments).expect(0);
    let run = data.run();
    let manifest = run.dir.manifest_path();
    let old = std::fs::read_to_string(&manifest).unwrap();
    let newer = old.replace("\"version\": 1", "\"version\": 99");
    assert_ne!(old, newer);
    std::fs::write(&manifest, &newer).unwrap();

    let name = run.name();
    let message = "manifest version 99 is newer";
    let verbs: [&[&str]; 6] = [
        &["resume", name],
        &["retry", name],
        &["verify", name],
        &["rm", name],
        &["export", name, "--format", "csv"],
        &["show", name, "sim/RdfFriendCount-nt-1/0"],
    ];
    for arguments in verbs {
        data.kgfleet(arguments).expect(INFRASTRUCTURE).says(&[message, "manifest.json"]);
    }
    assert_eq!(std::fs::read_to_string(&manifest).unwrap(), newer);
    // It stands in nobody's way.
    data.kgfleet(&["status"]).expect(0).says(&[message]);
    data.kgfleet(&arguments).expect(0).says(&["starting run"]);
    data.kgfleet(&["status"]).expect(0).says(&[message]).prints(&["finished"]);

    std::fs::write(&manifest, old).unwrap();
    data.kgfleet(&["verify", name]).expect(0);
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
    let segment = run.dir.log().join("00000001.kglog");
    let mut bytes = std::fs::read(&segment).unwrap();
    // In the first frame: even one record takes more.
    bytes[100] ^= 0xff;
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
        let failed = entry.record.rounds.iter().flat_map(|round| &round.failed_calls);
        let broken = failed.filter(|call| call.cause == FailureCause::Connection).count();
        assert_eq!(broken > 0, key.task.as_str() == TURTLE_TASK, "{key} keeps what went wrong");
    }
}
