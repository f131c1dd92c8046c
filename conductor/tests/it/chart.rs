//! Pools as the chart renders them.

use conductor::PoolTemplate;
use conductor::objects::CronJob;
use conductor::template::ESTIMATE;
use serde_json::Value;

#[test]
fn what_the_chart_renders_is_read_as_pools() {
    let snapshot = concat!(env!("CARGO_MANIFEST_DIR"), "/../helm/kgfleet/tests/snapshots/jobs.yaml");
    let text = std::fs::read_to_string(snapshot).unwrap();
    let documents = text.split("\n---\n").filter(|document| document.contains(ESTIMATE));
    let read = |document: &str| {
        let value: Value = serde_saphyr::from_str(document).unwrap();
        let cron_job: CronJob = serde_json::from_value(value).unwrap();
        PoolTemplate::read(&cron_job).unwrap()
    };
    let templates: Vec<PoolTemplate> = documents.map(read).collect();
    let shapes: Vec<(&str, u32, u32)> = (templates.iter())
        .map(|template| (template.pool.name.as_str(), template.pool.parts, template.pool.gpus))
        .collect();
    let expected = [
        ("deepseek-r1", 2, 8),
        ("llama-3-3-70b", 1, 4),
        ("qwen2-5-7b", 1, 1),
        ("phi-3-small", 1, 1),
        ("entails", 1, 1),
    ];
    assert_eq!(shapes, expected);
    assert_eq!(templates[0].model, "deepseek-ai/DeepSeek-R1");
    assert!(templates[0].weights.is_some(), "it is fetched before it takes GPUs");
}
