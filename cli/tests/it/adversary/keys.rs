//! A gateway that quotes the key it was sent, with its slashes escaped as PHP escapes them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;

use crate::cluster::attacker::Guarded;
use crate::harness::server::MODEL;
use crate::harness::{Data, NT_TASK, Running, process};

const KEY: &str = "hf/AbC+dEf/0123456789xyz==";

/// The variable of the environment that has it.
const KEY_ENV: &str = "GATEWAY_KEY";

/// Parts of the key, none of which may show.
const PARTS: [&str; 3] = ["AbC+dEf", "AbC%2BdEf", "0123456789xyz"];

/// Answers its first question with the key in every text, and refuses all others with it. Ends with the test's process.
fn gateway() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let key = KEY.replace('/', r"\/");
    let answer = format!(
        r#"{{"model":"{MODEL}","system_fingerprint":"{key}","usage":{{"prompt_tokens":1,"completion_tokens":1}},
        "choices":[{{"message":{{"content":"my key is {key}","reasoning":"{key}"}},"finish_reason":"{key}"}}]}}"#
    );
    let refusal = format!(r#"{{"error":{{"message":"Invalid API key: {key}","code":401}}}}"#);
    std::thread::spawn(move || {
        let mut answers = Some(answer).into_iter();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (status, body) = match asked(&stream) {
                Some(path) if path == "/v1/models" => {
                    ("200 OK", format!(r#"{{"data":[{{"id":"{MODEL}"}}]}}"#))
                }
                Some(path) if path == "/v1/chat/completions" => match answers.next() {
                    Some(answer) => ("200 OK", answer),
                    None => ("401 Unauthorized", refusal.clone()),
                },
                _ => ("404 Not Found", String::new()),
            };
            let length = body.len();
            // Who has gone needs no answer.
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
                 connection: close\r\n\r\n{body}"
            );
        }
    });
    address
}

/// Reads a whole request; its path.
fn asked(stream: &TcpStream) -> Option<String> {
    let mut lines = BufReader::new(stream);
    let (mut line, mut path, mut length) = (String::new(), None, 0);
    while lines.read_line(&mut line).ok()? > 2 {
        let lower = line.to_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        path = path.or_else(|| line.split(' ').nth(1).map(str::to_owned));
        line.clear();
    }
    lines.read_exact(&mut vec![0; length]).ok()?;
    path
}

/// Fails if a part of the key shows in this text.
#[track_caller]
fn assert_no_key(shown: &str) {
    for part in PARTS {
        assert!(!shown.contains(part), "{shown}");
    }
}

/// Fails if a part of the key shows in this file, or nothing shows that there was one.
#[track_caller]
fn assert_scrubbed(file: &Path) {
    let text = std::fs::read_to_string(file).unwrap();
    assert_no_key(&text);
    assert!(text.contains("[key]"), "{}: {text}", file.display());
}

fn configuration(data: &Data, more: &str) -> String {
    let text = format!(
        "name = 'gateway'\niterations = 2\ntasks = ['{NT_TASK}']\n[[models]]\nlabel = '{MODEL}'\n\
         connector = 'openai-compatible'\nstream = false\n{more}"
    );
    data.write("gateway.toml", text).to_str().unwrap().to_owned()
}

#[test]
fn an_escaped_key_shows_neither_on_the_terminal_nor_in_records_and_exports() {
    let data = Data::new();
    let more = format!("endpoint = 'http://{}/v1'\nkey_env = '{KEY_ENV}'\n", gateway());
    let run = ["run", &configuration(&data, &more), "--concurrency", "1", "--evaluators", "1"];
    let shown = process::finish(data.command(&run).env(KEY_ENV, KEY));
    // What it was given in its environment is told of a command, too.
    let said = format!("{}{}", shown.stdout, shown.stderr);
    assert_no_key(&said);
    assert!(said.contains("Invalid API key: [key]"), "{said}");
    let run = data.run();
    let records = format!("{:?}", run.entries());
    assert_no_key(&records);
    for scrubbed in ["my key is [key]", "Other(\"[key]\")", "system_fingerprint: Some(\"[key]\")"] {
        assert!(records.contains(scrubbed), "{scrubbed}: {records}");
    }
    for format in ["csv", "jsonl"] {
        let file = data.path().join(format);
        let export =
            ["export", run.name(), "--format", format, "--plaintext", "--out", file.to_str().unwrap()];
        data.kgfleet(&export).expect(0);
        assert_scrubbed(&file);
    }
    for verb in
        [&["status"][..], &["show", run.name()], &["show", run.name(), &format!("{MODEL}/{NT_TASK}/0")]]
    {
        assert_no_key(&format!("{}", data.kgfleet(verb)));
    }
}

#[test]
fn a_reader_of_a_fleet_does_not_see_the_key_of_a_worker() {
    let Some(guarded) = Guarded::start() else { return };
    let (cluster, data) = (&guarded.cluster, &guarded.cluster.data);
    let operator = guarded.token("alice", &["--role", "operator"]);
    let reader = guarded.token("bob", &["--role", "reader"]);
    let worker = guarded.token("pool", &["--role", "worker", "--workers", "gpu-*"]);
    let submit = ["submit", &configuration(data, "")];
    let run = guarded.known(&operator, &submit).expect(0).stdout.trim().to_owned();

    let (coordinator, gateway) = (guarded.coordinator.url(), format!("http://{}", gateway()));
    let work_dir = cluster.work_dir("gpu-1");
    let arguments = [
        &["worker", "--fleet", &coordinator, "--name", "gpu-1", "--token-file", &worker][..],
        &["--endpoint", &gateway, "--key-env", KEY_ENV, "--concurrency", "1", "--evaluators", "1"],
        &["--work-dir", work_dir.to_str().unwrap()],
    ];
    let _working = Running::start(data.command(&arguments.concat()).env(KEY_ENV, KEY));
    assert_no_key(&format!("{}", guarded.known(&operator, &["status", "--follow", &run])));
    for token in [&reader, &operator] {
        let status = guarded.known(token, &["status", &run]);
        assert_no_key(&format!("{status}"));
        assert!(status.stdout.contains("[key]"), "{status}");
        for format in ["csv", "jsonl"] {
            let file = data.path().join(format);
            let export = ["export", &run, "--format", format, "--out", file.to_str().unwrap()];
            guarded.known(token, &export).expect(0);
            assert_no_key(&std::fs::read_to_string(&file).unwrap());
            std::fs::remove_file(&file).unwrap();
        }
        assert_no_key(&format!("{}", guarded.known(token, &["fleet", "workers", "--json"])));
    }
}
