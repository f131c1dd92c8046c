//! The latency law holds, for the pure engine and at the socket.

use std::collections::HashMap;
use std::time::Duration;

use crate::support::{Sim, ask, ask_stream, echo_model, fixed};
use proptest::prelude::*;
use serde_json::Value;
use vllm_sim::latency::{CustomProfile, Engine, EngineEvent, EngineFinished, EngineJob, JobId, Profile};
use vllm_sim::{CapacityChange, ModelConfig, SimConfig};

fn settings() -> CustomProfile {
    CustomProfile {
        prefill_overhead_ms: 30.0,
        prefill_per_token_ms: 0.25,
        decode_per_token_ms: 12.0,
        decode_load_factor: 2.0,
        max_num_seqs: 4,
        num_gpu_blocks: 100,
    }
}

fn job(prompt_tokens: u32, output_tokens: u32) -> EngineJob {
    EngineJob { prompt_tokens, output_tokens, ..EngineJob::default() }
}

/// Runs an engine dry and returns when each request ended.
fn drain(engine: &mut Engine) -> HashMap<JobId, EngineFinished> {
    let mut ended = HashMap::new();
    while let Some(at) = engine.next_event() {
        engine.advance(at);
        ended.extend(engine.take_events().into_iter().filter_map(|event| match event {
            EngineEvent::Finished(id, finished) => Some((id, finished)),
            _ => None,
        }));
    }
    ended
}

#[test]
fn one_request_takes_what_the_law_says() {
    let mut engine = Engine::new(settings());
    let id = engine.submit(Duration::from_secs(1), job(100, 11));
    let ended = drain(&mut engine)[&id];
    assert_eq!(ended.admitted, Duration::from_secs(1));
    assert_eq!(ended.first_token - ended.admitted, Duration::from_millis(30 + 25));
    // One of four running: 12 ms x (1 + 1 x 1/4) = 15 ms for each of ten further tokens.
    assert_eq!(ended.finished - ended.first_token, Duration::from_millis(150));
}

#[test]
fn company_slows_down_and_leaving_speeds_up() {
    let mut engine = Engine::new(settings());
    let long = engine.submit(Duration::ZERO, job(0, 21));
    let short = engine.submit(Duration::ZERO, job(0, 11));
    let ended = drain(&mut engine);
    // Two of four running: 18 ms for ten tokens each, then one at 15 ms for the other ten.
    assert_eq!(ended[&short].finished, Duration::from_millis(30 + 180));
    assert_eq!(ended[&long].finished, Duration::from_millis(30 + 180 + 150));
}

#[test]
fn the_prefix_cache_spares_the_prefill() {
    let mut engine = Engine::new(settings());
    let with_blocks = || EngineJob { prompt_blocks: vec![1, 2, 3], answer_blocks: vec![4], ..job(50, 20) };
    let first = engine.submit(Duration::ZERO, with_blocks());
    let one = drain(&mut engine)[&first];
    let follow_up = EngineJob { prompt_blocks: vec![1, 2, 3, 4, 5], ..job(85, 1) };
    let second = engine.submit(one.finished, follow_up);
    let two = drain(&mut engine)[&second];
    assert_eq!((one.cached_tokens, two.cached_tokens), (0, 64));
    assert_eq!(two.first_token - two.admitted, Duration::from_millis(30) + Duration::from_micros(250 * 21));
}

#[test]
fn an_engine_that_takes_fewer_finishes_what_runs_and_one_that_takes_more_begins_what_waits() {
    let mut engine = Engine::new(settings());
    let ids: Vec<JobId> = (0..8).map(|_| engine.submit(Duration::ZERO, job(0, 11))).collect();
    engine.resize(Duration::from_millis(10), 2);
    assert_eq!((engine.load().running, engine.load().waiting), (4, 4));
    engine.resize(Duration::from_millis(20), 5);
    assert_eq!((engine.load().running, engine.load().waiting), (5, 3));
    let ended = drain(&mut engine);
    assert_eq!(
        (ended[&ids[3]].admitted, ended[&ids[4]].admitted),
        (Duration::ZERO, Duration::from_millis(20))
    );
    assert_eq!(ended[&ids[5]].admitted, ended[&ids[0]].finished);
}

#[test]
fn tokens_are_counted_as_they_are_made() {
    let mut engine = Engine::new(settings());
    let ids: Vec<JobId> = (0..4).map(|_| engine.submit(Duration::ZERO, job(0, 11))).collect();
    // The first tokens come after 30 ms, the next ones of four requests after 24 ms each.
    let counted = [29, 30, 54].map(|ms| {
        engine.advance(Duration::from_millis(ms));
        engine.generated()
    });
    assert_eq!(counted, [0, 4, 8]);
    engine.cancel(Duration::from_millis(54), ids[0]);
    assert_eq!(engine.generated(), 8, "those of an aborted request were made, too");
    drain(&mut engine);
    assert_eq!(engine.generated(), 3 * 11 + 2);
}

#[derive(Clone, Debug)]
struct SimAsk {
    after_ms: u64,
    job: EngineJob,
    cancel_after_ms: Option<u64>,
}

fn an_ask() -> impl Strategy<Value = SimAsk> {
    // Families of prompts share prefixes, and some requests need most of the pool.
    let lengths = (0_u64..3, 0_u32..6, 0_u32..16, 1_u32..60);
    (0_u64..200, lengths, prop::option::weighted(0.2, 0_u64..300)).prop_map(
        |(after_ms, lengths, cancel_after_ms)| {
            let (family, full, rest, output_tokens) = lengths;
            let hashes =
                |blocks: std::ops::Range<u32>| blocks.map(|at| family * 1000 + u64::from(at)).collect();
            let prompt_tokens = full * 16 + rest;
            let job = EngineJob {
                prompt_tokens,
                output_tokens,
                prompt_blocks: hashes(0..full),
                answer_blocks: hashes(full..(prompt_tokens + output_tokens) / 16),
            };
            SimAsk { after_ms, job, cancel_after_ms }
        },
    )
}

proptest! {
    #[test]
    fn the_law_holds_whatever_comes(
        asks in prop::collection::vec(an_ask(), 1..40),
        max_num_seqs in 1_u32..6,
        num_gpu_blocks in 10_u32..40,
    ) {
        let settings = CustomProfile { max_num_seqs, num_gpu_blocks, ..settings() };
        let mut engine = Engine::new(settings);
        let (mut now, mut jobs, mut cancels) = (Duration::ZERO, Vec::new(), Vec::new());
        let mut ended = HashMap::new();
        let mut note = |engine: &mut Engine| {
            for event in engine.take_events() {
                if let EngineEvent::Finished(id, finished) = event {
                    assert!(ended.insert(id, finished).is_none(), "{id:?} ended twice");
                }
            }
            let load = engine.load();
            assert!(load.running <= max_num_seqs);
            assert!(load.held_blocks <= load.total_blocks);
            assert!(load.running > 0 || load.waiting == 0, "an idle engine with a queue");
        };
        for ask in asks {
            now += Duration::from_millis(ask.after_ms);
            let id = engine.submit(now, ask.job.clone());
            jobs.push((id, ask.job, now));
            cancels.extend(ask.cancel_after_ms.map(|after| (now + Duration::from_millis(after), id)));
            note(&mut engine);
        }
        cancels.sort();
        for &(at, id) in &cancels {
            now = now.max(at);
            engine.cancel(now, id);
            note(&mut engine);
        }
        while let Some(at) = engine.next_event() {
            prop_assert!(at >= now, "time runs backwards");
            now = at;
            engine.advance(now);
            note(&mut engine);
        }
        prop_assert_eq!((engine.load().running, engine.load().waiting, engine.load().held_blocks), (0, 0, 0));

        let mut last_admitted = Duration::ZERO;
        for (id, job, arrived) in jobs {
            let Some(times) = ended.get(&id) else {
                prop_assert!(cancels.iter().any(|&(_, cancelled)| cancelled == id), "a request was lost");
                continue;
            };
            prop_assert_eq!(times.arrived, arrived);
            prop_assert!(times.admitted >= arrived && times.admitted >= last_admitted, "not first come, first served");
            last_admitted = times.admitted;
            prop_assert!(times.cached_tokens <= job.prompt_tokens.saturating_sub(1));
            let uncached = job.prompt_tokens - times.cached_tokens;
            prop_assert_eq!(times.first_token - times.admitted, settings.time_to_first_token(uncached));
            // Between alone and in full company, with a nanosecond per event for rounding.
            let gaps = u64::from(job.output_tokens - 1);
            let (least, most) = (
                settings.inter_token_latency_ns(1) * gaps,
                settings.inter_token_latency_ns(max_num_seqs) * gaps,
            );
            let decode = (times.finished - times.first_token).as_nanos() as u64;
            prop_assert!(decode >= least && decode <= most + 200, "{least} <= {decode} <= {most}");
        }
    }
}

fn slow_model() -> ModelConfig {
    let profile = CustomProfile {
        prefill_overhead_ms: 5.0,
        prefill_per_token_ms: 0.0,
        decode_per_token_ms: 2.0,
        decode_load_factor: 1.0,
        max_num_seqs: 1,
        num_gpu_blocks: 4096,
    };
    ModelConfig { profile: Profile::Custom(profile), ..echo_model() }
}

#[tokio::test]
async fn a_stream_brings_tokens_as_they_are_made() {
    let sim = Sim::start(SimConfig::new(vec![slow_model()])).await;
    let prompt = "abcd".repeat(30);
    let mut response = sim.chat(&ask_stream(&prompt)).await;
    let (mut text, mut pieces) = (String::new(), 0);
    while let Some(chunk) = response.chunk().await.unwrap() {
        text.push_str(std::str::from_utf8(&chunk).unwrap());
        pieces += 1;
    }
    assert!(pieces > 1, "all in one piece");
    assert_eq!(text.matches("\"abcd\"").count(), 30);
    assert!(text.ends_with("data: [DONE]\n\n"));
}

#[tokio::test]
async fn a_client_that_leaves_makes_room() {
    let model = ModelConfig { max_num_seqs: Some(1), profile: fixed(3_600_000.0), ..echo_model() };
    let sim = Sim::start(SimConfig::new(vec![model])).await;
    let (client, url) = (sim.client.clone(), sim.url("/v1/chat/completions"));
    let first = tokio::spawn(async move { client.post(url).json(&ask("x")).send().await });
    let running = r#"vllm:num_requests_running{engine="0",model_name="m"}"#;
    sim.until_metric(running, 1.0).await;
    first.abort();
    sim.until_metric(running, 0.0).await;
    assert_eq!(sim.handle.stats().aborted, 1);
}

#[tokio::test]
async fn a_server_may_become_faster_after_its_first_request() {
    let model = ModelConfig {
        max_num_seqs: Some(2),
        capacity_at: vec![CapacityChange(0.0, 2.0)],
        profile: fixed(3_600_000.0),
        ..echo_model()
    };
    let sim = Sim::start(SimConfig::new(vec![model])).await;
    let (client, url) = (sim.client.clone(), sim.url("/v1/chat/completions"));
    let requests: Vec<_> =
        (0..5).map(|n| tokio::spawn(client.post(&url).json(&ask(&format!("x{n}"))).send())).collect();
    sim.until_metric(r#"vllm:num_requests_running{engine="0",model_name="m"}"#, 4.0).await;
    sim.until_metric(r#"vllm:num_requests_waiting{engine="0",model_name="m"}"#, 1.0).await;
    requests.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn cached_tokens_are_reported_when_asked_for() {
    let Profile::Custom(profile) = slow_model().profile else { panic!() };
    let profile =
        Profile::Custom(CustomProfile { prefill_per_token_ms: 0.01, decode_per_token_ms: 0.0, ..profile });
    let model = ModelConfig { enable_prompt_tokens_details: true, profile, ..echo_model() };
    let sim = Sim::start(SimConfig::new(vec![model])).await;
    let prompt = "a long shared prefix ".repeat(20);
    let mut cached = Vec::new();
    for _ in 0..2 {
        let reply: Value = sim.chat(&ask(&prompt)).await.json().await.unwrap();
        cached.push(reply["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap());
    }
    // 9 + 420 + 1 + 14 bytes hold six full blocks of 64.
    assert_eq!(cached, [0, 96]);
    assert_eq!(sim.handle.stats().cached_tokens, 96);
}

#[tokio::test]
async fn shutdown_cuts_what_is_under_way() {
    let model = ModelConfig { profile: fixed(3_600_000.0), ..echo_model() };
    let sim = Sim::start(SimConfig::new(vec![model])).await;
    let (client, url) = (sim.client.clone(), sim.url("/v1/chat/completions"));
    let request = tokio::spawn(async move { client.post(url).json(&ask("x")).send().await });
    sim.until_metric(r#"vllm:num_requests_running{engine="0",model_name="m"}"#, 1.0).await;
    sim.handle.shutdown().await;
    assert!(request.await.unwrap().is_err());
}
