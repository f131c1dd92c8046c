//! Mistakes on the command line and in files: the message says what is wrong, where, and what to do; the exit code is
//! documented; nothing is written.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use crate::harness::{Data, Server};

/// A wrong input in each line: the exit code, the arguments, the content of a file, and what is said of it: what is wrong, where, and
/// what to do. `-` is nothing, `\n` a line feed. FILE stands for the file, MODEL for a configuration with a model of these lines.
const CASES: &str = r"
# Files.
2 | run no-such.toml | - | No such file | no-such.toml | -
2 | run FILE | name = | TOML parse error | line 1 | FILE
2 | run FILE | iteration = 3\nname = 'a'\n[[models]]\nlabel = 'm'\nconnector = 'simulated' | unknown field `iteration` | line 1 | expected one of
2 | run FILE | iterations = 1\nmodels = [] | missing field `name` | FILE | name
2 | run FILE | name = 'a'\nmodels = [] | `models` is empty | FILE | name at least one model
# Values.
2 | run FILE | name = 'a'\niterations = 0\n[[models]]\nlabel = 'm'\nconnector = 'simulated' | `iterations` is 0 | FILE | between 1 and 100000
2 | run FILE | name = 'a'\ntasks = ['RdfFriendCount-xyz']\n[[models]]\nlabel = 'm'\nconnector = 'simulated' | RdfFriendCount-xyz | no task of the pack | did you mean `RdfFriendCount-nt-1`
2 | run FILE | name = 'a'\npack = 'no-such.kgpack'\n[[models]]\nlabel = 'm'\nconnector = 'simulated' | No such file | no-such.kgpack | pack
2 | run FILE | MODEL connector = 'telepathy' | telepathy | line 6 | expected one of
2 | run FILE | MODEL connector = 'simulated'\n[[models]]\nlabel = 'm'\nconnector = 'simulated' | `m` is used twice | models[1].label | labels must differ
2 | run FILE | MODEL connector = 'simulated'\nskill = 1.5 | models[0].skill | FILE | between 0 and 1
2 | run FILE | MODEL connector = 'simulated'\nsampling = { temperature = 9.0 } | is 9 | models[0].sampling.temperature | between 0 and 2
2 | run FILE | MODEL connector = 'simulated'\nsampling = { top_p = -0.5 } | is -0.5 | models[0].sampling.top_p | between 0 and 1
2 | run FILE | MODEL connector = 'simulated'\nsampling = { max_tokens = 0 } | is 0 | models[0].sampling.max_tokens | at least 1
2 | run FILE | MODEL connector = 'simulated'\nsampling = { reasoning_effort = 'extreme' } | `extreme` | models[0].sampling.reasoning_effort | low, medium, high
2 | run FILE | MODEL connector = 'replay' | is empty | models[0].recorded | name the result files
# Servers.
2 | run FILE | MODEL connector = 'openai-compatible' | is missing | models[0].endpoint | server's URL
2 | run FILE | MODEL connector = 'openai-compatible'\nendpoint = 'localhost:8000' | `localhost:8000` | models[0].endpoint | http:// or https://
2 | run FILE | MODEL connector = 'openai-compatible'\nendpoint = 'http://127.0.0.1:9/v1/embeddings' | `/embeddings` is for embeddings | models[0].endpoint | such as http://127.0.0.1:9/v1
2 | run --endpoint http://user:hunter2@127.0.0.1:9 --model m | - | must not hold a user or password | --endpoint | set the key instead
3 | run --endpoint http://127.0.0.1:9/v1 --model m | - | does not answer | http://127.0.0.1:9/v1 | model `m`
3 | run --endpoint https://PLAIN/v1 --model m | - | does not speak TLS | https://PLAIN/v1 | write http://
3 | run --endpoint SERVER --model simm | - | its list of models lacks `simm`; it names sim, sim-other | SERVER | model-not-found
2 | run FILE | MODEL connector = 'openai-compatible'\nendpoint = 'http://127.0.0.1:9'\nkey_env = 'NO_SUCH_KEY_HERE' | is not set | NO_SUCH_KEY_HERE | model `m`
# Options.
2 | run --iterations 0 | - | `iterations` is 0 | command line | between 1 and 100000
2 | run --concurrency 0 | - | invalid value '0' | --concurrency | `auto` or a number from 1
2 | run --task Nonsense* | - | Nonsense* | no task of the pack | there are
2 | plan quick --task Nonsense* | - | Nonsense* | no task of the pack | there are
2 | run --endpoint http://127.0.0.1:9 | - | --model | required | Usage
2 | retry some-run --cause nonsense | - | unknown failure cause `nonsense` | --cause | expected one of connection
2 | export some-run --format papyrus | - | papyrus | --format | possible values
# Runs and recordings that are not there.
2 | resume some-run | - | there is no run | some-run | kgfleet status
2 | status some-run | - | there is no run | some-run | --data-dir
2 | show some-run m/t/0 | - | there is no run | some-run | kgfleet status
3 | reevaluate FILE | junk | is not a JSON list of records | FILE | give result files of LLM-KG-Bench
# Coordinators and workers.
2 | plan --endpoint http://127.0.0.1:9/v1 --model m --fleet http://127.0.0.1:9 | - | --endpoint | asked from this machine | a configuration
2 | show some-run m/t/0 --worst 3 | - | cannot be used with | --worst | DIALOGUE
2 | show some-run --plaintext | - | required arguments | DIALOGUE | Usage
2 | status --fleet localhost:7700 | - | localhost:7700 | neither | http://HOST:PORT
2 | status --fleet https://localhost:7700 --ca missing.pem | - | cannot read | missing.pem | No such file
2 | worker | - | needs models to ask | worker | --endpoint URL
";

const MODEL: &str = "name = 'a'\niterations = 1\ntasks = ['RdfFriendCount-nt-1']\n[[models]]\nlabel = 'm'\n";

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
    let cases: Vec<Vec<&str>> = CASES
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split(" | ").map(|field| if field == "-" { "" } else { field }).collect())
        .collect();
    assert!(cases.len() >= 25);
    let (server, plain) = (Server::start(), plain_server());
    let mut faults = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        let [code, arguments, content, said @ ..] = case.as_slice() else { panic!("{case:?}") };
        let data = Data::new();
        let content = content.replace("MODEL ", MODEL).replace("\\n", "\n") + "\n";
        let file = data.write(&format!("input-{number}.toml"), content);
        let file = file.to_str().unwrap();
        let fill =
            |text: &str| text.replace("FILE", file).replace("PLAIN", &plain).replace("SERVER", &server.url());
        let arguments: Vec<String> = arguments.split(' ').map(fill).collect();
        let before = files(data.path());
        let work_dir = data.path().join("work");
        let finished = crate::harness::process::finish(
            data.command(&arguments).env("KGFLEET_WORK_DIR", &work_dir).current_dir(data.path()),
        );
        let mut missing: Vec<String> = said.iter().map(|words| fill(words)).collect();
        missing.retain(|words| !finished.stderr.contains(words));
        if finished.code() != code.parse().ok() || !missing.is_empty() {
            faults.push(format!("expected {code} and {missing:?} of {finished}"));
        }
        // A name that no list has is known to be wrong only once it was asked, by a run.
        let asks = said.contains(&"model-not-found");
        if !asks && (files(data.path()) != before || !finished.stdout.is_empty()) {
            faults.push(format!("something was written by {finished}: {:?}", files(data.path())));
        }
        if finished.stderr.contains("hunter2") {
            faults.push(format!("a password was told by {finished}"));
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}
