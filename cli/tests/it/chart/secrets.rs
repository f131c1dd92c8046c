//! `kgfleet fleet secrets` with a stand-in for the Secrets of the Kubernetes API.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::harness::Data;
use crate::harness::process::Finished;

/// Secrets by name, and the requests that were made.
#[derive(Default)]
struct KeptSecrets {
    secrets: BTreeMap<String, Value>,
    requests: Vec<String>,
}

/// The API, until the test ends.
struct SecretsStandIn {
    kept: Arc<Mutex<KeptSecrets>>,
    url: String,
    data: Data,
}

impl SecretsStandIn {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let kept = Arc::new(Mutex::new(KeptSecrets::default()));
        let own = Arc::clone(&kept);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                answer(stream.unwrap(), &own);
            }
        });
        let data = Data::new();
        for (name, content) in [("token", "of-the-account\n"), ("ca.crt", ""), ("namespace", "bench")] {
            data.write(name, content);
        }
        Self { kept, url, data }
    }

    fn ensure(&self, options: &[&str]) -> Finished {
        let account = self.data.path().to_str().unwrap();
        let fixed =
            ["fleet", "secrets", "--prefix", "b", "--account", account, "--kubernetes-api", &self.url];
        self.data.kgfleet(&[&fixed, options].concat())
    }

    /// The Secrets as they are now.
    fn secrets(&self) -> BTreeMap<String, Value> {
        self.kept.lock().unwrap().secrets.clone()
    }

    /// The methods of the requests since the last call.
    fn methods(&self) -> Vec<String> {
        let requests = std::mem::take(&mut self.kept.lock().unwrap().requests);
        requests.iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect()
    }
}

/// Takes one request, as Kubernetes does: texts come, and are kept coded.
fn answer(mut stream: TcpStream, kept: &Mutex<KeptSecrets>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let (mut length, mut is_known) = (0, false);
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).unwrap();
        let header = header.trim().to_lowercase();
        if header.is_empty() {
            break;
        }
        is_known |= header == "authorization: bearer of-the-account";
        if let Some(value) = header.strip_prefix("content-length: ") {
            length = value.parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let mut kept = kept.lock().unwrap();
    kept.requests.push(line.trim().to_owned());
    let (method, path) = line.split_once(' ').unwrap();
    let path = path.split(' ').next().unwrap();
    let below = path.strip_prefix("/api/v1/namespaces/bench/secrets").expect(path);
    let (status, answer) = if is_known {
        asked(&mut kept.secrets, method, below.trim_start_matches('/'), &body)
    } else {
        (401, json!({"message": "who are you?"}))
    };
    let answer = answer.to_string();
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        answer.len()
    );
    stream.write_all((head + &answer).as_bytes()).unwrap();
}

fn asked(secrets: &mut BTreeMap<String, Value>, method: &str, name: &str, body: &[u8]) -> (u16, Value) {
    if method == "GET" {
        let missing = || (404, json!({"message": "not found"}));
        return secrets.get(name).map_or_else(missing, |secret| (200, secret.clone()));
    }
    let mut object: Value = serde_json::from_slice(body).unwrap();
    let name = object["metadata"]["name"].as_str().unwrap().to_owned();
    let texts = object["stringData"].take();
    for (key, text) in texts.as_object().unwrap() {
        object["data"][key] = json!(STANDARD.encode(text.as_str().unwrap()));
    }
    let before = secrets.get(&name).map(|secret| secret["metadata"]["resourceVersion"].clone());
    match (method, before) {
        ("POST", Some(_)) => return (409, json!({"message": "already exists"})),
        ("PUT", before) => assert_eq!(before.as_ref(), Some(&object["metadata"]["resourceVersion"])),
        _ => {}
    }
    object["metadata"]["resourceVersion"] = json!(format!("{}", secrets.len() + 7));
    secrets.insert(name, object.clone());
    (if method == "POST" { 201 } else { 200 }, object)
}

const ALL: [&str; 7] =
    ["--auth", "--redis", "b-redis.bench.svc", "--tls-name", "localhost", "--tls-name", "10.0.0.7"];

#[test]
fn secrets_are_made_once_and_a_certificate_for_other_names_is_signed_by_the_same_authority() {
    let cluster = SecretsStandIn::start();
    cluster.ensure(&ALL).expect(0).says(&[
        "secret b-auth: made",
        "secret b-queue: made",
        "secret b-tls: made",
    ]);
    let first = cluster.secrets();
    let names: Vec<&str> = first.keys().map(String::as_str).collect();
    assert_eq!(names, ["b-auth", "b-authority", "b-queue", "b-tls"]);
    cluster.methods();

    // Again, as every upgrade does: nothing is written.
    cluster.ensure(&ALL).expect(0).says(&["b-auth: is there", "b-queue: is there", "b-tls: is there"]);
    assert_eq!(cluster.secrets(), first);
    assert!(cluster.methods().iter().all(|method| method == "GET"));

    // Coordinators have another name.
    cluster.ensure(&["--tls-name", "localhost"]).expect(0).says(&["signed anew"]);
    let renewed = cluster.secrets();
    assert_ne!(renewed["b-tls"]["data"]["tls.crt"], first["b-tls"]["data"]["tls.crt"]);
    assert_eq!(renewed["b-tls"]["data"]["ca.crt"], first["b-tls"]["data"]["ca.crt"], "who trusts it goes on");
    assert_eq!(renewed["b-authority"], first["b-authority"]);
    assert_eq!(renewed["b-auth"], first["b-auth"]);

    // One that somebody else made is theirs.
    cluster.kept.lock().unwrap().secrets.get_mut("b-tls").unwrap()["metadata"]["annotations"] = json!({});
    cluster.ensure(&ALL).expect(0).says(&["b-tls: is there", "somebody else"]);
}

#[test]
fn what_cannot_be_used_is_said_and_nothing_is_asked() {
    let cluster = SecretsStandIn::start();
    cluster.ensure(&[]).expect(2).says(&["nothing to make"]);
    cluster.ensure(&["--auth", "--prefix", "b"]).expect(2);
    let fixed = ["fleet", "secrets", "--prefix", "b", "--auth"];
    cluster
        .data
        .kgfleet(&[&fixed[..], &["--account", "/nowhere"]].concat())
        .expect(2)
        .says(&["/nowhere/namespace"]);
    let account = cluster.data.path().to_str().unwrap();
    let plain = ["--account", account, "--kubernetes-api", "http://10.0.0.1"];
    cluster.data.kgfleet(&[&fixed[..], &plain].concat()).expect(2).says(&["https only"]);
    assert_eq!(cluster.methods(), [""; 0]);
    cluster.data.write("token", "of-somebody-else");
    cluster.ensure(&["--auth"]).expect(3).says(&["who are you?"]);
}
