//! The values of the chart for a plan.

use std::collections::{BTreeMap, BTreeSet};

use domain::model::{Connector, ModelSpec};
use serde_json::{Map, Value, json};

use super::plan::{LaunchPlan, ModelOnGpus};
use super::schedule::LaunchLimits;
use super::table::Sizes;

/// Secret with keys of providers, one entry for each, named after the provider.
pub const KEYS_SECRET: &str = "provider-keys";

/// Secret with the token for gated weights.
pub const WEIGHTS_SECRET: &str = "huggingface";

/// Longest name of a pool, in characters: names of pods have room for it and no more.
const POOL_CHARS_MAX: usize = 24;

/// The longest time in minutes that the chart takes a server to load.
const LOAD_MINUTES_MAX: u64 = 1_440;

/// The values for the chart.
pub fn values(plan: &LaunchPlan, sizes: &Sizes, limits: LaunchLimits) -> Value {
    let mut taken = BTreeSet::new();
    let pools: Vec<Value> = (plan.served.iter())
        .map(|model| pool(pool_name(&model.labels[0], &mut taken), model, sizes))
        .collect();
    let mut conductor = json!({"enabled": true, "gpus": limits.gpus, "gpusPerNode": limits.gpus_per_node});
    if let Some(hours) = limits.gpu_hours {
        conductor["gpuHours"] = json!(hours);
    }
    let mut values = json!({
        "redis": {"mode": "own"},
        "conductor": conductor,
        "servingEngineSpec": {"modelSpec": pools},
    });
    if !plan.hosted.is_empty() {
        values["apiPools"] = json!([hosted(plan)]);
    }
    values
}

fn pool(name: String, model: &ModelOnGpus, sizes: &Sizes) -> Value {
    let size = &sizes.models[&model.model];
    let mut pool = json!({
        "name": name,
        "kind": size.kind,
        "modelURL": model.model,
        "standing": false,
        "replicaCount": model.pool.servers_max,
        "gpusPerNode": sizes.gpu.per_node,
        "requestGPU": model.pool.gpus,
        "requestGPUType": sizes.gpu.resource,
        "estimate": {
            "loadMinutes": load_minutes(model),
            "tokensPerSecond": f64::from(size.tokens_per_second),
            "tokens": sizes.tokens_of(size),
            "dialogues": model.dialogues,
        },
    });
    if model.pool.is_gang() {
        pool["multiNodeSize"] = json!(model.pool.parts);
    }
    if let Some(length) = size.max_model_len {
        pool["vllmConfig"] = json!({"maxModelLen": length});
    }
    if let Some(memory) = &size.memory {
        pool["requestMemory"] = json!(memory);
    }
    if let Some(weights) = size.weights_gib {
        pool["weightsGi"] = json!(weights);
    }
    if size.gated {
        pool["hfToken"] = json!({"secretName": WEIGHTS_SECRET});
    }
    if !sizes.gpu.node_selector.is_empty() {
        pool["nodeSelector"] = json!(sizes.gpu.node_selector);
    }
    pool
}

/// Minutes that a server is expected to load, as the chart takes them: whole ones, up to a day.
fn load_minutes(model: &ModelOnGpus) -> u64 {
    model.pool.load.as_secs().div_ceil(60).clamp(1, LOAD_MINUTES_MAX)
}

/// The keys of the Secret [`KEYS_SECRET`] that hosted models need.
pub fn provider_keys(plan: &LaunchPlan) -> BTreeSet<String> {
    plan.hosted.iter().map(key_name).collect()
}

/// The name of a hosted model's key.
fn key_name(model: &ModelSpec) -> String {
    match (model.connector, &model.endpoint) {
        (Connector::OpenaiCompatible, Some(endpoint)) => host_name(endpoint),
        (connector, _) => connector.as_str().to_owned(),
    }
}

/// One pool for all hosted models, with a key for each provider.
fn hosted(plan: &LaunchPlan) -> Value {
    let mut connectors = BTreeSet::new();
    let mut keys: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for model in &plan.hosted {
        connectors.insert(model.connector.as_str());
        let name = key_name(model);
        let key = keys.entry(name.clone()).or_default();
        key.insert("connector".to_owned(), json!(model.connector.as_str()));
        key.insert("secretName".to_owned(), json!(KEYS_SECRET));
        key.insert("secretKey".to_owned(), json!(name));
        if let Some(endpoint) = &model.endpoint {
            let endpoints = key.entry("endpoints").or_insert_with(|| json!([]));
            if let Value::Array(endpoints) = endpoints
                && !endpoints.contains(&json!(endpoint))
            {
                endpoints.push(json!(endpoint));
            }
        }
    }
    json!({"name": "hosted", "connectors": connectors, "keys": keys})
}

/// The host of an address, as a name of a key.
fn host_name(endpoint: &str) -> String {
    let rest = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
    slug(rest.split(['/', ':']).next().unwrap_or_default())
}

/// The name of a model's pool, unlike all others.
fn pool_name(label: &str, taken: &mut BTreeSet<String>) -> String {
    let slug: String = slug(label).chars().take(POOL_CHARS_MAX).collect();
    let slug = slug.trim_matches('-');
    let slug = if slug.is_empty() { "model" } else { slug };
    let mut name = slug.to_owned();
    let mut number = 2;
    while !taken.insert(name.clone()) {
        let end = format!("-{number}");
        let kept: String = slug.chars().take(POOL_CHARS_MAX - end.len()).collect();
        name = format!("{}{end}", kept.trim_end_matches('-'));
        number += 1;
    }
    name
}

/// Letters, digits and single dashes.
fn slug(text: &str) -> String {
    let mut slug = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            slug.push(c.to_ascii_lowercase());
        } else if !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_pools_are_short_plain_and_unlike_each_other() {
        let mut taken = BTreeSet::new();
        let long = "Llama-4-Maverick-17B-128E-Instruct";
        assert_eq!(pool_name(long, &mut taken), "llama-4-maverick-17b-128");
        assert_eq!(pool_name(long, &mut taken), "llama-4-maverick-17b-1-2");
        assert_eq!(pool_name("Qwen2.5 7B", &mut taken), "qwen2-5-7b");
        assert_eq!(pool_name("→", &mut taken), "model");
    }
}
