//! A real Prometheus that scrapes a cluster.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::{Running, free_port, http};

/// How long anything may take to show. Reached only if something is broken.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// Between two looks at a server that tells nobody when it changes.
pub const LOOK_EVERY: Duration = Duration::from_millis(300);

/// A Prometheus with the rules of the repository, quickened. Ends with the test.
pub struct Prometheus {
    port: u16,
    _process: Running,
}

/// The folder of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The rules as they are kept, in a shorter time: what waits for minutes waits for a second, and what looks back for
/// minutes looks back for some seconds.
fn quickened(file: &str) -> String {
    let mut text = std::fs::read_to_string(root().join("deploy/prometheus").join(file)).unwrap();
    for window in ["[5m]", "[10m]", "[15m]", "[30m]", "[1h]"] {
        text = text.replace(window, "[8s]");
    }
    let lines = text.lines().map(|line| {
        let is_wait = line.trim_start().starts_with("for: ");
        if is_wait {
            format!("{}for: 1s", &line[..line.len() - line.trim_start().len()])
        } else {
            line.to_owned()
        }
    });
    // A run that takes longer than a second is late, and so is a record; a second of loading or of idleness is long, and two
    // dialogues are many.
    lines
        .collect::<Vec<_>>()
        .join("\n")
        .replace("+ 86400", "+ 1")
        .replace("lag_seconds) > 30", "lag_seconds) > 1")
        .replace("> 5400", "> 1")
        .replace(">= 20", ">= 2")
}

impl Prometheus {
    /// `None`, said aloud, without Prometheus.
    pub fn start(folder: &Path, targets: &[u16]) -> Option<Self> {
        if Command::new("prometheus").arg("--version").output().is_err() {
            crate::harness::skip("Prometheus is not installed");
            return None;
        }
        for file in ["rules.yml", "alerts.yml"] {
            std::fs::write(folder.join(file), quickened(file)).unwrap();
        }
        let targets: Vec<String> = targets.iter().map(|port| format!("'127.0.0.1:{port}'")).collect();
        let configuration = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [rules.yml, alerts.yml]\n\
             scrape_configs:\n  - job_name: kgfleet\n    honor_labels: true\n    static_configs:\n      - targets: [{}]\n        \
             labels: {{release: seen, pool: gpus, node: here}}\n",
            targets.join(", ")
        );
        std::fs::write(folder.join("prometheus.yml"), configuration).unwrap();
        let port = free_port();
        let mut command = Command::new("prometheus");
        command
            .arg(format!("--config.file={}", folder.join("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("tsdb").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"));
        let mut process = Running::start(&mut command);
        process.until_it_says("Server is ready to receive web requests");
        process.go_on_listening();
        Some(Self { port, _process: process })
    }

    /// The result of an expression now: its series with their values.
    pub fn query(&self, expression: &str) -> Vec<Value> {
        let answer = get(self.port, &format!("/api/v1/query?query={}", encoded(expression)));
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["status"], "success", "{expression}: {answer}");
        match &answer["data"]["result"] {
            Value::Array(series) if answer["data"]["resultType"] == "vector" => series.clone(),
            scalar => vec![scalar.clone()],
        }
    }

    /// The first value of an expression.
    pub fn value(&self, expression: &str) -> Option<f64> {
        self.query(expression).first()?["value"][1].as_str()?.parse().ok()
    }

    /// What an expression gives over the last minutes, as Grafana asks.
    pub fn range(&self, expression: &str) -> Vec<Value> {
        let now = jiff::Timestamp::now().as_second();
        let path =
            format!("/api/v1/query_range?query={}&start={}&end={now}&step=1", encoded(expression), now - 180);
        let answer: Value = serde_json::from_str(&get(self.port, &path)).unwrap();
        answer["data"]["result"].as_array().cloned().unwrap_or_default()
    }

    /// Waits until a condition holds.
    #[track_caller]
    pub fn until(&self, what: &str, condition: impl Fn(&Self) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !condition(self) {
            assert!(Instant::now() < end, "never: {what}");
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Whether a rule has ever recorded a series: some have one only while a run moves, which can be over by the look.
    pub fn was_recorded(&self, name: &str) -> bool {
        !self.query(&format!("count_over_time({name}[10m])")).is_empty()
    }

    /// Whether an alert has ever fired.
    pub fn has_fired(&self, alert: &str) -> bool {
        let expression =
            format!("count_over_time(ALERTS{{alertname=\"{alert}\", alertstate=\"firing\"}}[10m])");
        !self.query(&expression).is_empty()
    }
}

fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        })
        .collect()
}

/// A page of a server on this machine.
pub fn get(port: u16, path: &str) -> String {
    http::get(&format!("127.0.0.1:{port}"), path).unwrap().1
}
