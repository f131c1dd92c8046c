//! One trace for each dialogue, with spans of worker and coordinator.

use std::collections::{BTreeMap, BTreeSet};

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Cluster, NT_TASK, Receiver, Server};

const ITERATIONS: u32 = 3;

/// A span as the collector got it.
#[derive(Debug)]
struct Got {
    service: String,
    span: Value,
}

impl Got {
    fn text(&self, field: &str) -> &str {
        self.span[field].as_str().unwrap_or_default()
    }

    fn nanoseconds(&self, field: &str) -> u64 {
        self.text(field).parse().unwrap()
    }

    fn attribute(&self, key: &str) -> Option<&Value> {
        let attributes = self.span["attributes"].as_array().unwrap();
        attributes.iter().find(|attribute| attribute["key"] == key).map(|attribute| &attribute["value"])
    }
}

fn spans(receiver: &Receiver) -> BTreeMap<String, Vec<Got>> {
    let mut traces: BTreeMap<String, Vec<Got>> = BTreeMap::new();
    for (path, body) in receiver.posts() {
        assert_eq!(path, "/v1/traces");
        let body: Value = serde_json::from_str(&body).unwrap();
        for of_resource in body["resourceSpans"].as_array().unwrap() {
            let attributes = of_resource["resource"]["attributes"].as_array().unwrap();
            let service = attributes.iter().find(|attribute| attribute["key"] == "service.name").unwrap();
            let service = service["value"]["stringValue"].as_str().unwrap().to_owned();
            for span in of_resource["scopeSpans"][0]["spans"].as_array().unwrap() {
                let got = Got { service: service.clone(), span: span.clone() };
                traces.entry(got.text("traceId").to_owned()).or_default().push(got);
            }
        }
    }
    traces
}

#[test]
fn a_dialogue_is_one_trace_of_worker_and_coordinator() {
    let Some(cluster) = Cluster::start() else { return };
    let (server, receiver) = (Server::start(), Receiver::start(0));
    let otlp = ["--otlp", &receiver.url()];
    let queue = cluster.redis.url();
    let coordinator =
        cluster.coordinator_with(queue::testing::free_port(), &[&["--queue", &queue], &otlp[..]].concat());
    let run = cluster.submit(&coordinator, &[NT_TASK], ITERATIONS);
    let more = [&["--concurrency", "2", "--log-format", "json"], &otlp[..]].concat();
    let worker = cluster.worker_logging("w", coordinator.port, &server.url(), &more, "info,worker=debug");
    let (_, finished) = cluster.watch(&coordinator, &run);
    finished.expect(0);
    // Those who end send what waits.
    worker.signal(Signal::TERM);
    let said = worker.finish().expect(0).stderr;
    coordinator.process.signal(Signal::TERM);
    coordinator.process.finish().expect(0);

    let (traces, entries) = (spans(&receiver), cluster.data.run().entries());
    let of_records: BTreeSet<String> = entries
        .iter()
        .map(|entry| {
            let names = [run.as_str(), entry.record.attempt.id.as_str()];
            service_kit::traces::TraceId::of(&names).to_string()
        })
        .collect();
    assert_eq!(of_records.len(), ITERATIONS as usize);
    assert_eq!(traces.keys().cloned().collect::<BTreeSet<_>>(), of_records);
    for (trace, spans) in &traces {
        let named = |name: &str| {
            let mut found = spans.iter().filter(|span| span.text("name") == name);
            let span = found.next().unwrap_or_else(|| panic!("no span {name} in {spans:#?}"));
            assert!(found.next().is_none(), "{name} is there once");
            span
        };
        let root = named("dialogue");
        assert_eq!(root.text("parentSpanId"), "");
        for (name, parent, service) in [
            ("queue wait", root, "kgfleet-worker"),
            ("chat sim", root, "kgfleet-worker"),
            ("evaluate", root, "kgfleet-worker"),
            ("deliver", root, "kgfleet-worker"),
            ("store", named("deliver"), "kgfleet-coordinator"),
        ] {
            let span = named(name);
            assert_eq!(span.text("parentSpanId"), parent.text("spanId"), "{name}");
            assert_eq!(span.service, service, "{name}");
            let within = parent.nanoseconds("startTimeUnixNano") <= span.nanoseconds("startTimeUnixNano")
                && span.nanoseconds("endTimeUnixNano") <= parent.nanoseconds("endTimeUnixNano");
            assert!(within, "{name} lies within {}", parent.text("name"));
        }
        assert_eq!(spans.len(), 6, "{spans:#?}");
        let chat = named("chat sim");
        assert_eq!(chat.attribute("gen_ai.request.model").unwrap()["stringValue"], "sim");
        assert_eq!(chat.attribute("gen_ai.operation.name").unwrap()["stringValue"], "chat");
        assert!(chat.attribute("gen_ai.usage.output_tokens").unwrap()["intValue"].is_string());
        let logged = said.lines().find(|line| line.contains(trace.as_str()));
        let line: Value =
            serde_json::from_str(logged.unwrap_or_else(|| panic!("{trace} in {said}"))).unwrap();
        for field in ["run", "unit", "dialogue", "trace"] {
            assert!(!line["span"][field].is_null(), "{field} in {line}");
        }
    }
    let bodies: String = receiver.posts().into_iter().map(|(_, body)| body).collect();
    for entry in &entries {
        let round = &entry.record.rounds[0];
        assert!(!bodies.contains(&round.prompt.text[..30]), "prompts are not sent");
        assert!(!bodies.contains(&round.answer.text), "answers are not sent");
    }
}
