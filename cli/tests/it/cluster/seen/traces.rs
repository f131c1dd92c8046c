//! One trace for each dialogue, with spans of worker and coordinator.

use std::collections::{BTreeMap, BTreeSet};

use results::log::LogEntry;
use rustix::process::Signal;
use serde_json::Value;
use service_kit::traces::{SampleShare, TraceId};

use super::otlp::{Span, spans};
use crate::harness::{Cluster, NT_TASK, Receiver, Server};

/// What is left of a run that was traced.
struct Traced {
    entries: Vec<LogEntry>,
    /// By their ids.
    traces: BTreeMap<String, Vec<Span>>,
    /// The ids that follow from its records.
    of_records: BTreeMap<String, TraceId>,
    /// The logs of worker and coordinator.
    said: [String; 2],
    /// What the collector got, as text.
    got: String,
    /// The spans that calls of the model server belonged to, as they said.
    told: Vec<String>,
}

/// Runs so many dialogues, traced with these further options.
fn traced(iterations: u32, more: &[&str]) -> Option<Traced> {
    let cluster = Cluster::start()?;
    let (server, receiver) = (Server::start(), Receiver::start(0));
    let url = receiver.url();
    let options = [&["--log-format", "json", "--otlp", &url], more].concat();
    let queue = cluster.redis.url();
    let port = crate::harness::free_port();
    let arguments = cluster.coordinator_arguments(port, &[&["--queue", &queue], &options[..]].concat());
    let mut command = cluster.data.command(&arguments);
    let coordinator = cluster.coordinator_by(command.env("KGFLEET_LOG", "info,coordinator=debug"), port);
    let run = cluster.submit(&coordinator, &[NT_TASK], iterations);
    let of_worker = [&["--concurrency", "2"], &options[..]].concat();
    let worker =
        cluster.worker_logging("w", coordinator.port, &server.url(), &of_worker, "info,worker=debug");
    let (_, finished) = cluster.watch(&coordinator, &run);
    finished.expect(0);
    // Those who end send what waits.
    worker.signal(Signal::TERM);
    let of_worker = worker.finish().expect(0).stderr;
    coordinator.process.signal(Signal::TERM);
    let of_coordinator = coordinator.process.finish().expect(0).stderr;

    let mut traces: BTreeMap<String, Vec<Span>> = BTreeMap::new();
    let mut got = String::new();
    for (path, body) in receiver.posts() {
        assert_eq!(path, "/v1/traces");
        for span in spans(&body) {
            traces.entry(span.trace.clone()).or_default().push(span);
        }
        got.push_str(&String::from_utf8_lossy(&body));
    }
    let entries = cluster.data.run().entries();
    let of_records = entries.iter().map(|entry| {
        let trace = TraceId::of(&[run.as_str(), entry.record.attempt.id.as_str()]);
        (trace.to_string(), trace)
    });
    let of_records: BTreeMap<String, TraceId> = of_records.collect();
    assert_eq!(of_records.len(), iterations as usize);
    let told = server.traced();
    Some(Traced { entries, traces, of_records, said: [of_worker, of_coordinator], got, told })
}

/// The only span of this name.
#[track_caller]
fn named<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    let found: Vec<&Span> = spans.iter().filter(|span| span.name == name).collect();
    assert_eq!(found.len(), 1, "{name} in {spans:#?}");
    found[0]
}

/// Fails unless these are all spans of a dialogue of one round, one within the other.
fn check(spans: &[Span]) {
    let root = named(spans, "dialogue");
    assert_eq!(root.parent, "");
    for (name, parent, service) in [
        ("queue wait", root, "kgfleet-worker"),
        ("chat sim", root, "kgfleet-worker"),
        ("evaluate", root, "kgfleet-worker"),
        ("deliver", root, "kgfleet-worker"),
        ("store", named(spans, "deliver"), "kgfleet-coordinator"),
    ] {
        let span = named(spans, name);
        assert_eq!(span.parent, parent.id, "{name}");
        assert_eq!(span.service, service, "{name}");
        assert!(parent.start <= span.start && span.end <= parent.end, "{name} lies within {}", parent.name);
    }
    assert_eq!(spans.len(), 6, "{spans:#?}");
    let chat = &named(spans, "chat sim").attributes;
    assert_eq!(
        (&chat["gen_ai.request.model"], &chat["gen_ai.operation.name"]),
        (&"sim".into(), &"chat".into())
    );
    assert_eq!(chat["server.address"], "127.0.0.1");
    assert!(chat["server.port"].is_u64(), "{chat:?}");
    assert!(chat["gen_ai.usage.output_tokens"].is_u64(), "{chat:?}");
    assert!(chat["gen_ai.response.finish_reasons"].is_array(), "{chat:?}");
}

/// The first line of a log that names a trace.
#[track_caller]
fn logged(log: &str, trace: &str) -> Value {
    let line = log.lines().find(|line| line.contains(trace));
    serde_json::from_str(line.unwrap_or_else(|| panic!("{trace} in {log}"))).unwrap()
}

#[test]
fn a_dialogue_is_one_trace_of_worker_and_coordinator() {
    let Some(traced) = traced(3, &[]) else { return };
    let Traced { entries, traces, of_records, said: [of_worker, of_coordinator], got, told } = traced;
    assert!(traces.keys().eq(of_records.keys()), "{traces:#?} of {of_records:?}");
    for (trace, spans) in &traces {
        check(spans);
        assert!(spans.iter().all(|span| span.state.is_empty()), "they stand for no others: {spans:#?}");
        let line = logged(&of_worker, trace);
        for field in ["run", "unit", "dialogue", "trace"] {
            assert!(!line["span"][field].is_null(), "{field} in {line}");
        }
        let told = logged(&of_coordinator, trace);
        for field in ["run", "dialogue", "trace"] {
            assert_eq!(told[field], line["span"][field], "{field} in {told}");
        }
    }
    // Each call told the model server its span.
    let calls = |spans: &Vec<Span>| {
        let chat = named(spans, "chat sim");
        format!("00-{}-{}-01", chat.trace, chat.id)
    };
    let (expected, told): (BTreeSet<String>, BTreeSet<String>) =
        (traces.values().map(calls).collect(), told.into_iter().collect());
    assert_eq!(told, expected);
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    for span in traces.values().flatten() {
        match span.service.as_str() {
            "kgfleet-worker" => assert_eq!(span.instance, "w"),
            _ => assert!(span.instance.starts_with(&host), "{} is of {host}", span.instance),
        }
    }
    for entry in &entries {
        let round = &entry.record.rounds[0];
        assert!(!got.contains(&round.prompt.text[..30]), "prompts are not sent");
        assert!(!got.contains(&round.answer.text), "answers are not sent");
    }
}

#[test]
fn both_processes_trace_the_same_share_of_dialogues() {
    let Some(Traced { traces, of_records, .. }) = traced(24, &["--trace-sample", "0.5"]) else { return };
    let sample = SampleShare::of(0.5).unwrap();
    let kept: BTreeSet<&String> =
        of_records.iter().filter(|(_, trace)| sample.keeps(**trace)).map(|(id, _)| id).collect();
    assert!(traces.keys().eq(kept.iter().copied()), "{:?} of {kept:?}", traces.keys());
    for spans in traces.values() {
        check(spans);
        assert!(spans.iter().all(|span| span.state == "ot=th:8"), "each stands for two: {spans:#?}");
    }
}
