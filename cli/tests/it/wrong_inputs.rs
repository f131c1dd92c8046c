//! Mistakes on the command line and in files: the message says what is wrong, where, and what to do; the exit code is
//! documented; nothing is written.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use crate::harness::{Data, Server};

const USAGE: i32 = 2;
const INFRASTRUCTURE: i32 = 3;

/// A wrong input. `FILE` in arguments and words stands for the file with the content given.
struct Wrong {
    arguments: &'static str,
    content: &'static str,
    code: i32,
    what: &'static str,
    place: &'static str,
    to_do: &'static str,
}

const RUN: &str = "run FILE";

/// A configuration of one model with these lines.
macro_rules! model {
    ($lines:literal) => {
        concat!(
            "name = 'a'\niterations = 1\ntasks = ['RdfFriendCount-nt-1']\n[[models]]\nlabel = 'm'\n",
            $lines
        )
    };
}

const fn wrong(
    arguments: &'static str,
    content: &'static str,
    code: i32,
    [what, place, to_do]: [&'static str; 3],
) -> Wrong {
    Wrong { arguments, content, code, what, place, to_do }
}

const CASES: &[Wrong] = &[
    // Files.
    wrong("run no-such.toml", "", USAGE, ["No such file", "no-such.toml", ""]),
    wrong(RUN, "name = \n", USAGE, ["TOML parse error", "line 1", "FILE"]),
    wrong(
        RUN,
        "iteration = 3\nname = 'a'\n[[models]]\nlabel = 'm'\nconnector = 'simulated'\n",
        USAGE,
        ["unknown field `iteration`", "line 1", "expected one of"],
    ),
    wrong(RUN, "iterations = 1\nmodels = []\n", USAGE, ["missing field `name`", "FILE", "name"]),
    wrong(RUN, "name = 'a'\nmodels = []\n", USAGE, ["`models` is empty", "FILE", "name at least one model"]),
    // Values.
    wrong(
        RUN,
        "name = 'a'\niterations = 0\n[[models]]\nlabel = 'm'\nconnector = 'simulated'\n",
        USAGE,
        ["`iterations` is 0", "FILE", "between 1 and 100000"],
    ),
    wrong(
        RUN,
        "name = 'a'\ntasks = ['RdfFriendCount-xyz']\n[[models]]\nlabel = 'm'\nconnector = 'simulated'\n",
        USAGE,
        ["RdfFriendCount-xyz", "no task of the pack", "did you mean `RdfFriendCount-nt-1`"],
    ),
    wrong(
        RUN,
        "name = 'a'\npack = 'no-such.kgpack'\n[[models]]\nlabel = 'm'\nconnector = 'simulated'\n",
        USAGE,
        ["No such file", "no-such.kgpack", "pack"],
    ),
    wrong(RUN, model!("connector = 'telepathy'\n"), USAGE, ["telepathy", "line 6", "expected one of"]),
    wrong(
        RUN,
        model!("connector = 'simulated'\n[[models]]\nlabel = 'm'\nconnector = 'simulated'\n"),
        USAGE,
        ["`m` is used twice", "models[1].label", "labels must differ"],
    ),
    wrong(
        RUN,
        model!("connector = 'simulated'\nskill = 1.5\n"),
        USAGE,
        ["models[0].skill", "FILE", "between 0 and 1"],
    ),
    wrong(
        RUN,
        model!("connector = 'simulated'\nsampling = { temperature = 9.0 }\n"),
        USAGE,
        ["is 9", "models[0].sampling.temperature", "between 0 and 2"],
    ),
    wrong(
        RUN,
        model!("connector = 'simulated'\nsampling = { top_p = -0.5 }\n"),
        USAGE,
        ["is -0.5", "models[0].sampling.top_p", "between 0 and 1"],
    ),
    wrong(
        RUN,
        model!("connector = 'simulated'\nsampling = { max_tokens = 0 }\n"),
        USAGE,
        ["is 0", "models[0].sampling.max_tokens", "at least 1"],
    ),
    wrong(
        RUN,
        model!("connector = 'simulated'\nsampling = { reasoning_effort = 'extreme' }\n"),
        USAGE,
        ["`extreme`", "models[0].sampling.reasoning_effort", "low, medium, high"],
    ),
    wrong(
        RUN,
        model!("connector = 'replay'\n"),
        USAGE,
        ["is empty", "models[0].recorded", "name the result files"],
    ),
    // Servers.
    wrong(
        RUN,
        model!("connector = 'openai-compatible'\n"),
        USAGE,
        ["is missing", "models[0].endpoint", "server's URL"],
    ),
    wrong(
        RUN,
        model!("connector = 'openai-compatible'\nendpoint = 'localhost:8000'\n"),
        USAGE,
        ["`localhost:8000`", "models[0].endpoint", "http:// or https://"],
    ),
    wrong(
        RUN,
        model!("connector = 'openai-compatible'\nendpoint = 'http://127.0.0.1:9/v1/embeddings'\n"),
        USAGE,
        ["`/embeddings` is for embeddings", "models[0].endpoint", "such as http://127.0.0.1:9/v1"],
    ),
    wrong(
        "run --endpoint http://user:hunter2@127.0.0.1:9 --model m",
        "",
        USAGE,
        ["must not hold a user or password", "--endpoint", "set the key instead"],
    ),
    wrong(
        "run --endpoint http://127.0.0.1:9/v1 --model m",
        "",
        INFRASTRUCTURE,
        ["does not answer", "http://127.0.0.1:9/v1", "model `m`"],
    ),
    wrong(
        "run --endpoint https://PLAIN/v1 --model m",
        "",
        INFRASTRUCTURE,
        ["does not speak TLS", "https://PLAIN/v1", "write http://"],
    ),
    wrong(
        "run --endpoint SERVER --model simm",
        "",
        INFRASTRUCTURE,
        ["its list of models lacks `simm`; it names sim, sim-other", "SERVER", "model-not-found"],
    ),
    wrong(
        RUN,
        model!(
            "connector = 'openai-compatible'\nendpoint = 'http://127.0.0.1:9'\nkey_env = 'NO_SUCH_KEY_HERE'\n"
        ),
        USAGE,
        ["is not set", "NO_SUCH_KEY_HERE", "model `m`"],
    ),
    // Options.
    wrong("run --iterations 0", "", USAGE, ["`iterations` is 0", "command line", "between 1 and 100000"]),
    wrong(
        "run --concurrency 0",
        "",
        USAGE,
        ["invalid value '0'", "--concurrency", "`auto` or a number from 1"],
    ),
    wrong("run --task Nonsense*", "", USAGE, ["Nonsense*", "no task of the pack", "there are"]),
    wrong("plan quick --task Nonsense*", "", USAGE, ["Nonsense*", "no task of the pack", "there are"]),
    wrong("run --endpoint http://127.0.0.1:9", "", USAGE, ["--model", "required", "Usage"]),
    wrong(
        "retry some-run --cause nonsense",
        "",
        USAGE,
        ["unknown failure cause `nonsense`", "--cause", "expected one of connection"],
    ),
    wrong("export some-run --format papyrus", "", USAGE, ["papyrus", "--format", "possible values"]),
    // Runs and recordings that are not there.
    wrong("resume some-run", "", USAGE, ["there is no run", "some-run", "kgfleet status"]),
    wrong("status some-run", "", USAGE, ["there is no run", "some-run", "--data-dir"]),
    wrong("show some-run m/t/0", "", USAGE, ["there is no run", "some-run", "kgfleet status"]),
    wrong(
        "reevaluate FILE",
        "junk",
        INFRASTRUCTURE,
        ["is not a JSON list of records", "FILE", "give result files of LLM-KG-Bench"],
    ),
    // Coordinators and workers.
    wrong(
        "plan --endpoint http://127.0.0.1:9/v1 --model m --fleet http://127.0.0.1:9",
        "",
        USAGE,
        ["--endpoint", "asked from this machine", "a configuration"],
    ),
    wrong("show some-run m/t/0 --worst 3", "", USAGE, ["cannot be used with", "--worst", "DIALOGUE"]),
    wrong("show some-run --plaintext", "", USAGE, ["required arguments", "DIALOGUE", "Usage"]),
    wrong("status --fleet localhost:7700", "", USAGE, ["localhost:7700", "neither", "http://HOST:PORT"]),
    wrong(
        "status --fleet https://localhost:7700 --ca missing.pem",
        "",
        USAGE,
        ["cannot read", "missing.pem", "No such file"],
    ),
    wrong("worker", "", USAGE, ["needs models to ask", "worker", "--endpoint URL"]),
];

/// Answers every connection in plain HTTP, whatever it says.
fn plain_server() -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut hello = [0; 64];
            let _ = stream.read(&mut hello);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        }
    });
    address.to_string()
}

/// Every file below a folder, with its size.
fn files(folder: &Path) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        if entry.path().is_dir() {
            found.extend(files(&entry.path()));
        }
        found.insert(entry.path().display().to_string(), entry.metadata().unwrap().len());
    }
    found
}

#[test]
fn every_wrong_input_is_answered_with_what_where_and_what_to_do_and_writes_nothing() {
    assert!(CASES.len() >= 25);
    let (server, plain) = (Server::start(), plain_server());
    let mut faults = Vec::new();
    for (number, case) in CASES.iter().enumerate() {
        let data = Data::new();
        let file = data.write(&format!("input-{number}.toml"), case.content);
        let file = file.to_str().unwrap();
        let fill =
            |text: &str| text.replace("FILE", file).replace("PLAIN", &plain).replace("SERVER", &server.url());
        let arguments: Vec<String> = case.arguments.split(' ').map(fill).collect();
        let before = files(data.path());
        let work_dir = data.path().join("work");
        let finished = crate::harness::process::finish(
            data.command(&arguments).env("KGFLEET_WORK_DIR", &work_dir).current_dir(data.path()),
        );
        let mut missing: Vec<String> = [case.what, case.place, case.to_do].map(fill).to_vec();
        missing.retain(|words| !finished.stderr.contains(words));
        if finished.code() != Some(case.code) || !missing.is_empty() {
            faults.push(format!("expected {} and {missing:?} of {finished}", case.code));
        }
        // A name that no list has is known to be wrong only once it was asked, by a run.
        let asks = case.to_do == "model-not-found";
        if !asks && (files(data.path()) != before || !finished.stdout.is_empty()) {
            faults.push(format!("something was written by {finished}: {:?}", files(data.path())));
        }
        if finished.stderr.contains("hunter2") {
            faults.push(format!("a password was told by {finished}"));
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}
