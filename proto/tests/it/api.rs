//! Every role asks every route of the API well and badly. Routes are taken from the server's own description; one without a row
//! in [`ROWS`] fails, and so does an answer that is not as `docs/reference/api.yaml` says.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use domain::ServiceError;
use domain::control::{ExportItem, ModelNeed};
use domain::exchange::Outlook;
use domain::pools::{PoolStates, ServerUsage};
use harness::scripted_coordinator::{ScriptedCoordinator, ScriptedServer};
use proto::limits::{EXPORTS_PER_IDENTITY, LIST_BYTES, NAMING_BYTES, PACK_BYTES, SUBMISSION_BYTES};
use proto::server::{Identities, Security, hash_of_token, openapi};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::samples::{dead_letter, run_view, worker_view};

const ROLES: [&str; 5] = ["stranger", "reader", "operator", "worker", "conductor"];
const READ: &[&str] = &["reader", "operator"];
const NEEDS: &[&str] = &["reader", "operator", "conductor"];
const STEER: &[&str] = &["operator"];
const CONDUCT: &[&str] = &["conductor"];

/// Every route with the roles that may call it, and the most bytes that it takes.
const ROWS: &[(&str, &str, &[&str], u64)] = &[
    ("GET", "/runs", READ, NAMING_BYTES as u64),
    ("POST", "/runs", STEER, SUBMISSION_BYTES as u64),
    ("GET", "/runs/{run}", READ, NAMING_BYTES as u64),
    ("DELETE", "/runs/{run}", STEER, NAMING_BYTES as u64),
    ("GET", "/runs/{run}/events", READ, NAMING_BYTES as u64),
    ("POST", "/runs/{run}/extend", STEER, SUBMISSION_BYTES as u64),
    ("POST", "/runs/{run}/pause", STEER, NAMING_BYTES as u64),
    ("POST", "/runs/{run}/resume", STEER, NAMING_BYTES as u64),
    ("POST", "/runs/{run}/cancel", STEER, NAMING_BYTES as u64),
    ("POST", "/runs/{run}/retry", STEER, NAMING_BYTES as u64),
    ("POST", "/runs/{run}/requeue", STEER, LIST_BYTES as u64),
    ("GET", "/runs/{run}/records", READ, NAMING_BYTES as u64),
    ("GET", "/runs/{run}/dead-letters", READ, NAMING_BYTES as u64),
    ("GET", "/packs/{hash}", READ, NAMING_BYTES as u64),
    ("PUT", "/packs/{hash}", STEER, PACK_BYTES),
    ("GET", "/workers", NEEDS, NAMING_BYTES as u64),
    ("POST", "/workers/{worker}/drain", STEER, NAMING_BYTES as u64),
    ("GET", "/needs", NEEDS, NAMING_BYTES as u64),
    ("PUT", "/pools/{release}", CONDUCT, LIST_BYTES as u64),
    ("GET", "/server-usage", NEEDS, NAMING_BYTES as u64),
    ("POST", "/server-usage", CONDUCT, LIST_BYTES as u64),
    ("GET", "/check", READ, NAMING_BYTES as u64),
    ("GET", "/version", NEEDS, NAMING_BYTES as u64),
];

fn guarded() -> (Arc<ScriptedCoordinator>, ScriptedServer) {
    let entries = ROLES[1..].iter().map(|role| {
        format!("[[identity]]\nname = '{role}'\nroles = ['{role}']\nsha256 = '{}'\n", hash_of_token(role))
    });
    let identities = Identities::parse(&entries.collect::<String>()).unwrap();
    let fake = Arc::new(ScriptedCoordinator::default());
    let node = ScriptedServer::start_with(&fake, Security { identities, tls: None });
    (fake, node)
}

/// A client that knows nothing of the API.
pub fn http() -> reqwest::Client {
    // The first of a process counts.
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::new()
}

/// A path with a name where one belongs.
fn filled(path: &str) -> String {
    let parts = path.split('/').map(|part| if part.starts_with('{') { "x" } else { part });
    format!("/api/v1{}", parts.collect::<Vec<_>>().join("/"))
}

/// The status of the answer to these bytes; none if the connection ends without one.
async fn status(node: &ScriptedServer, bytes: &[u8], is_end: bool) -> Option<u16> {
    let address = node.address().replace("http://", "");
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    if is_end {
        stream.shutdown().await.unwrap();
    }
    let mut said = vec![0; 12];
    stream.read_exact(&mut said).await.ok()?;
    std::str::from_utf8(&said[9..]).unwrap().parse().ok()
}

fn head(role: &str, method: &str, path: &str, length: u64) -> String {
    let path = filled(path);
    format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {role}\r\nconnection: close\r\n\
         content-length: {length}\r\n\r\n"
    )
}

#[test]
fn every_route_has_a_row() {
    let document = openapi::document();
    let paths = document["paths"].as_object().unwrap().iter();
    let described: BTreeSet<(String, String)> = paths
        .flat_map(|(path, calls)| {
            let path = path.strip_prefix("/api/v1").unwrap().to_owned();
            calls.as_object().unwrap().keys().map(move |method| (method.to_uppercase(), path.clone()))
        })
        .collect();
    let rows = ROWS.iter().map(|(method, path, ..)| ((*method).to_owned(), (*path).to_owned())).collect();
    assert_eq!(described, rows);
}

#[tokio::test]
async fn who_may_not_call_is_refused_and_who_sends_too_much_by_the_head_alone() {
    let (fake, node) = guarded();
    for (method, path, allowed, most) in ROWS {
        for role in ROLES {
            let expected = match role {
                "stranger" => 401,
                role if allowed.contains(&role) && *method == "PUT" && path.starts_with("/packs") => 400,
                role if allowed.contains(&role) => 413,
                _ => 403,
            };
            let answer = status(&node, head(role, method, path, most + 1).as_bytes(), false).await;
            assert_eq!(answer, Some(expected), "{role}: {method} {path}");
        }
    }
    assert_eq!(fake.heard(), [""; 0]);
}

#[tokio::test]
async fn what_is_half_sent_reaches_no_coordinator() {
    let (fake, node) = guarded();
    for (method, path, allowed, _) in ROWS {
        for role in ROLES {
            let whole = format!("{}{}", head(role, method, path, 1000), "{\"configuration\": {");
            for sent in [&whole[..whole.len() / 2], &whole] {
                let answer = status(&node, sent.as_bytes(), true).await;
                assert!(answer.is_none_or(|status| status >= 400), "{role}: {method} {path}: {answer:?}");
                let may_be_refused = answer == Some(403) || answer == Some(401) || answer.is_none();
                assert!(allowed.contains(&role) || may_be_refused, "{role}: {method} {path}: {answer:?}");
            }
        }
    }
    assert_eq!(fake.heard(), [""; 0]);
}

#[tokio::test]
async fn without_identities_a_page_of_another_site_gets_nothing() {
    let fake = Arc::new(ScriptedCoordinator::default());
    let node = ScriptedServer::start(&fake);
    for line in [
        "host: evil.example",
        "host: localhost\r\norigin: http://evil.example",
        "host: localhost\r\nsec-fetch-site: same-site",
    ] {
        let request = format!("POST /api/v1/runs/r/cancel HTTP/1.1\r\n{line}\r\nconnection: close\r\n\r\n");
        assert_eq!(status(&node, request.as_bytes(), false).await, Some(403), "{line}");
    }
    assert_eq!(fake.heard(), [""; 0]);
}

/// Sees that a value is as a schema says: what JSON Schema has of types, properties, lists and choices. Properties without a
/// schema are not as it says.
fn check(document: &Value, schema: &Value, value: &Value, at: &str) {
    if let Some(name) = schema["$ref"].as_str() {
        let found = document.pointer(name.strip_prefix('#').unwrap());
        return check(document, found.unwrap_or_else(|| panic!("{name} is not there")), value, at);
    }
    if let Some(choices) = schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
        let fits = |choice| std::panic::catch_unwind(|| check(document, choice, value, at)).is_ok();
        assert!(choices.iter().any(fits), "{at}: {value} is none of {choices:?}");
        return;
    }
    if let Some(names) = schema["enum"].as_array() {
        assert!(names.contains(value), "{at}: {value} is none of {names:?}");
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::Null => return,
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        kind => kind.as_str().into_iter().collect(),
    };
    let is = |kind: &&str| match *kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => false,
    };
    assert!(kinds.iter().any(is), "{at}: {value} is no {kinds:?}");
    if let Some(fields) = value.as_object() {
        for required in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            assert!(fields.contains_key(required), "{at}: `{required}` is not there");
        }
        for (name, field) in fields {
            let of_field = schema["properties"].get(name).or(schema.get("additionalProperties"));
            let of_field = of_field.unwrap_or_else(|| panic!("{at}: nothing is said of `{name}`"));
            check(document, of_field, field, &format!("{at}.{name}"));
        }
    }
    for (number, item) in value.as_array().into_iter().flatten().enumerate() {
        let of_item = schema["prefixItems"].get(number).unwrap_or(&schema["items"]);
        check(document, of_item, item, &format!("{at}[{number}]"));
    }
}

#[tokio::test]
async fn real_answers_of_every_route_are_as_the_description_says() {
    let (fake, node) = guarded();
    let http = http();
    let document = openapi::document();
    let hash = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"; // Of `foo`.
    for (method, path, allowed, _) in ROWS {
        let described = &document["paths"][format!("/api/v1{path}")][method.to_lowercase()];
        let (mut url, mut body) = (filled(path), None);
        match (described["operationId"].as_str().unwrap(), *method) {
            ("list_runs", _) => fake.will_return(vec![run_view()]),
            ("watch_run", _) => fake.will_return(vec![Ok::<_, ServiceError>(run_view())]),
            ("get_records", _) => {
                fake.will_return(vec![Ok::<_, ServiceError>(ExportItem::Manifest("{\"run\": 1}".into()))]);
            }
            ("list_dead_letters", _) => fake.will_return(vec![dead_letter()]),
            ("list_workers", _) => fake.will_return(vec![worker_view()]),
            ("check", _) => fake.will_return(vec!["the disk is nearly full".to_owned()]),
            ("get_needs", _) => fake.will_return(vec![ModelNeed {
                model: "m".into(),
                outlook: Outlook::Held,
                dialogues: 7,
                rate: 0.5,
                workers: 2,
            }]),
            ("get_server_usage", _) => fake.will_return(Vec::<ServerUsage>::new()),
            ("retry_run" | "requeue_dead_letters", _) => fake.will_return(7_u64),
            ("remove_run" | "drain_worker", _) => fake.will_return(()),
            ("note_server_usage", _) => {
                fake.will_return(());
                body = Some("[]".to_owned());
            }
            ("note_pools", _) => {
                fake.will_return(());
                let states = PoolStates { release: "x".into(), ..PoolStates::default() };
                body = Some(serde_json::to_string(&states).unwrap());
            }
            ("get_pack", _) => fake.will_return(Arc::<[u8]>::from(b"foo".as_slice())),
            ("send_pack", _) => {
                url = format!("/api/v1/packs/{hash}");
                body = Some("foo".to_owned());
            }
            ("submit" | "extend_run", _) => {
                fake.will_return(run_view());
                body = Some(json!({"configuration": {"seed": 1}}).to_string());
            }
            ("get_version", _) => {}
            _ => fake.will_return(run_view()),
        }
        let request = http
            .request(Method::from_bytes(method.as_bytes()).unwrap(), format!("{}{url}", node.address()))
            .bearer_auth(allowed[0]);
        let request = if let Some(body) = body { request.body(body) } else { request };
        let answer = request.send().await.unwrap();
        let status = answer.status();
        let kind = answer.headers().get("content-type").map(|kind| kind.to_str().unwrap().to_owned());
        let said = &described["responses"][status.as_str()];
        assert!(said.is_object(), "{method} {path}: {status} {:?}", answer.text().await);
        match kind {
            None => assert_eq!(status, StatusCode::NO_CONTENT, "{method} {path}"),
            Some(kind) => {
                let content = &said["content"][&kind];
                assert!(content.is_object(), "{method} {path}: {kind}");
                let text = answer.text().await.unwrap();
                if kind == "application/json" {
                    check(&document, &content["schema"], &serde_json::from_str(&text).unwrap(), path);
                } else if kind == "text/event-stream" {
                    let (view, end) = text.split_once("\n\n").unwrap();
                    let data = view.strip_prefix("event: view\ndata: ").unwrap();
                    check(&document, &content["itemSchema"], &serde_json::from_str(data).unwrap(), path);
                    assert_eq!(end, "event: end\ndata: {}\n\n");
                }
            }
        }
        let refused = http.get(format!("{}{}", node.address(), filled("/runs"))).send().await.unwrap();
        let problem: Value = refused.json().await.unwrap();
        check(
            &document,
            &document["components"]["responses"]["Problem"]["content"]["application/problem+json"]["schema"],
            &problem,
            path,
        );
    }
}

#[test]
fn the_reference_of_the_api_is_as_the_server_describes_it() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/api.yaml");
    let text = format!(
        "# The API of a coordinator, made from the table of its routes by a test of `proto`.\n{}",
        serde_saphyr::to_string(&openapi::document()).unwrap()
    );
    if std::env::var_os("KGFLEET_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == text, "docs/reference/api.yaml is stale: run this test with KGFLEET_BLESS=1");
}

/// An export that is longer than what a connection takes without its reader.
fn long_export() -> Vec<Result<ExportItem, ServiceError>> {
    let line: Arc<str> = format!("{{\"text\": \"{}\"}}", "x".repeat(1 << 20)).into();
    (0..64).map(|_| Ok(ExportItem::Record(Arc::clone(&line)))).collect()
}

#[tokio::test]
async fn an_identity_has_a_few_exports_at_once_and_holds_up_no_other() {
    let (fake, node) = guarded();
    // Each export has a connection of its own, and is not read beyond the head of its answer.
    let export = |role: &'static str| {
        fake.will_return(long_export());
        let url = format!("{}/api/v1/runs/x/records", node.address());
        async move { http().get(url).bearer_auth(role).send().await.unwrap() }
    };
    let mut held = Vec::new();
    for _ in 0..EXPORTS_PER_IDENTITY {
        let answer = export("reader").await;
        assert_eq!(answer.status(), StatusCode::OK);
        held.push(answer);
    }
    let mut next = Box::pin(export("reader"));
    let early = tokio::time::timeout(Duration::from_millis(300), &mut next).await;
    assert!(early.is_err(), "one more waits for its turn");
    assert_eq!(export("operator").await.status(), StatusCode::OK);
    fake.will_return(long_export());
    held.pop();
    let after = tokio::time::timeout(Duration::from_secs(60), next).await;
    assert_eq!(after.expect("it has a turn").status(), StatusCode::OK);
}
