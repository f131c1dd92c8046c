//! Answers depend on the question alone.

use std::collections::BTreeSet;

use crate::support::Sim;
use futures::StreamExt;
use serde_json::{Value, json};
use vllm_sim::answers::AnswerConfig;
use vllm_sim::{ModelConfig, Profile, SimConfig};

fn config(profile: &Profile) -> SimConfig {
    let model =
        |name: &str, answers| ModelConfig { answers, profile: profile.clone(), ..ModelConfig::new(name) };
    SimConfig::new(vec![
        model("skilled-1", AnswerConfig::default()),
        model("skilled-2", AnswerConfig::default()),
        model("garbage", AnswerConfig::Garbage { tokens: 20 }),
    ])
}

/// First prompts and follow-ups for all models, with two seeds.
fn requests() -> Vec<Value> {
    let mut requests = Vec::new();
    for model in ["skilled-1", "skilled-2", "garbage"] {
        for exercise in 0..20 {
            for seed in 0..2 {
                let prompt = json!({ "role": "user", "content": format!("solve {exercise}") });
                let again = [
                    json!({ "role": "assistant", "content": "?" }),
                    json!({ "role": "user", "content": "again" }),
                ];
                let follow_up: Vec<_> = [prompt.clone()].into_iter().chain(again).collect();
                for messages in [vec![prompt.clone()], follow_up] {
                    requests.push(json!({ "model": model, "seed": seed, "messages": messages }));
                }
            }
        }
    }
    requests
}

/// The replies in the order of the requests, without their time.
async fn replies(sim: &Sim, requests: &[Value], concurrency: usize, backwards: bool) -> Vec<Value> {
    let mut order: Vec<usize> = (0..requests.len()).collect();
    if backwards {
        order.reverse();
    }
    let asked = order.into_iter().map(|at| async move {
        let mut reply: Value = sim.chat(&requests[at]).await.json().await.unwrap();
        reply["created"] = Value::Null;
        (at, reply)
    });
    let mut replies: Vec<(usize, Value)> =
        futures::stream::iter(asked).buffer_unordered(concurrency).collect().await;
    replies.sort_by_key(|(at, _)| *at);
    replies.into_iter().map(|(_, reply)| reply).collect()
}

#[tokio::test]
async fn order_concurrency_and_speed_change_nothing() {
    let requests = requests();
    let one = Sim::start(config(&Profile::Zero)).await;
    let expected = replies(&one, &requests, 1, false).await;
    assert_eq!(replies(&one, &requests, 64, true).await, expected);
    let paced = Sim::start(config(&Profile::Fixed { round_ms: 1.0 })).await;
    assert_eq!(replies(&paced, &requests, 256, true).await, expected);

    let texts: BTreeSet<String> =
        expected.iter().map(|reply| reply["choices"][0]["message"]["content"].to_string()).collect();
    assert!(texts.len() > 100, "models, seeds and rounds differ: {}", texts.len());
    let ids: BTreeSet<&str> = expected.iter().map(|reply| reply["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), expected.len());
}
