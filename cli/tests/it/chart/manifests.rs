//! Rendered manifests, as data.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// The chart's tests.
pub fn chart_tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../helm/kgfleet/tests")
}

/// The objects of a rendered value set, as its snapshot has them: secrets masked.
pub fn snapshot(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    let documents = text.split("---\n# ").skip(1);
    documents.map(|document| serde_saphyr::from_str(&format!("# {document}")).unwrap()).collect()
}

/// The pods' specifications within an object.
pub fn pods(object: &Value) -> Vec<&Value> {
    let spec = &object["spec"];
    match object["kind"].as_str() {
        Some("Pod") => vec![spec],
        Some("CronJob") => vec![&spec["jobTemplate"]["spec"]["template"]["spec"]],
        _ => vec![&spec["template"]["spec"]],
    }
}

/// The containers of a pod, sidecars first.
pub fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    ["initContainers", "containers"].iter().flat_map(|list| pod[list].as_array()).flatten()
}

/// A list of texts.
pub fn texts(list: &Value) -> Vec<String> {
    let list = list.as_array().into_iter().flatten();
    list.map(|text| text.as_str().unwrap_or_else(|| panic!("`{text}` is no text")).to_owned()).collect()
}
