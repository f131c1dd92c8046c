//! What a conductor tells: every panel about pools, and every alert about them, in a real Prometheus. Kubernetes is a stand-in, and
//! its kubelet is the test.

use rustix::process::Signal;
use serde_json::json;

use super::expected::{self, EMPTY_BY_DESIGN, NO_CONDUCTOR, OF_CONDUCTORS};
use super::prometheus::Prometheus;
use super::scrape;
use crate::conducting::{account, conductor, pool, was_made};
use crate::harness::{Cluster, NT_TASK, free_port};
use harness::kubernetes_api::KubernetesServer;

/// GPU-hours of the budget, and the hours for which the one server has had its GPU.
const BUDGET: i64 = 5;
const HOURS: i64 = 10;

#[test]
fn what_a_conductor_does_is_shown_and_what_it_cannot_do_is_told() {
    let (_, alerts) = expected::rules();
    assert!(OF_CONDUCTORS.iter().all(|alert| alerts.iter().any(|known| known == alert)), "{alerts:?}");
    let _turn = super::take_turn();
    let Some(cluster) = Cluster::start() else { return };
    let ports = [free_port(), free_port()];
    let Some(prometheus) = Prometheus::start(cluster.data.path(), &ports) else { return };
    let [http, of_conductor] = ports.map(|port| format!("127.0.0.1:{port}"));
    let queue = cluster.redis.url();
    let mut coordinator = cluster.coordinator_with(free_port(), &["--queue", &queue, "--metrics", &http]);
    coordinator.process.go_on_listening();
    let (kubernetes, account) = (KubernetesServer::start(), account(cluster.data.path()));
    for name in ["slow", "broken"] {
        kubernetes.objects().put("cronjobs", pool(name));
    }
    let budget = BUDGET.to_string();
    let more = ["--gpus", "2", "--gpu-hours", &budget, "--metrics", &of_conductor];
    let mut conductor = conductor(&cluster, &coordinator, &kubernetes, &account, &more);
    conductor.go_on_listening();
    let model = |name: &str| {
        format!("[[models]]\nlabel = '{name}'\nconnector = 'openai-compatible'\nstream = false\n")
    };
    let text = format!(
        "name = 'night'\nseed = 5\niterations = 8\ntasks = ['{NT_TASK}']\n{}{}",
        model("slow"),
        model("broken")
    );
    let configuration = cluster.data.write("night.toml", text);
    cluster.kgfleet(&coordinator, &["submit", configuration.to_str().unwrap()]).expect(0);

    // One server cannot be used; the other one loads and loads.
    drop(kubernetes.until(was_made("bench-slow-1")));
    let mut objects = kubernetes.until(was_made("bench-broken-1"));
    let failed = json!({
        "type": "Failed", "status": "True", "reason": "PodFailurePolicy",
        "message": "Container worker for pod bench/bench-broken-1-0 failed with exit code 2 matching",
        "lastTransitionTime": jiff::Timestamp::now().to_string(),
    });
    objects.of.get_mut("jobs").unwrap().get_mut("bench-broken-1").unwrap()["status"] =
        json!({"conditions": [failed]});
    let mut labels = objects.of["jobs"]["bench-slow-1"]["metadata"]["labels"].clone();
    labels["batch.kubernetes.io/job-name"] = json!("bench-slow-1");
    let long_ago = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(HOURS);
    objects.put(
        "pods",
        json!({
            "metadata": {"name": "bench-slow-1-0", "labels": labels},
            "spec": {"nodeName": "n1"},
            "status": {"phase": "Running", "conditions": [
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": long_ago.to_string()},
            ]},
        }),
    );
    drop(objects);

    let alert = "KgfleetLoadSlow";
    prometheus.until(alert, |prometheus| prometheus.has_fired(alert));
    // Another pod of the loading one comes, and its image does not.
    let mut objects = kubernetes.objects();
    let pod = objects.of.get_mut("pods").unwrap().get_mut("bench-slow-1-0").unwrap();
    let now = jiff::Timestamp::now().to_string();
    let why = "Back-off pulling image \"no/such:1\"";
    pod["status"] = json!({
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": now}],
        "initContainerStatuses": [
            {"name": "vllm", "state": {"waiting": {"reason": "ImagePullBackOff", "message": why}}},
        ],
    });
    drop(objects);
    let alert = "KgfleetPoolNotStarting";
    prometheus.until(alert, |prometheus| prometheus.has_fired(alert));

    let of_pools = EMPTY_BY_DESIGN.iter().filter(|(.., reason)| *reason == NO_CONDUCTOR);
    let mut panels = Vec::new();
    for (place, metric, _) in of_pools {
        let questions = expected::panels().into_iter();
        panels.extend(questions.filter(|of| of.place == *place && of.expression.contains(metric)));
    }
    assert!(panels.len() > 10, "{panels:?}");
    for question in &panels {
        prometheus
            .until(&format!("{question:?}"), |prometheus| !prometheus.range(&question.expression).is_empty());
    }
    for alert in ["KgfleetPoolFailed", "KgfleetBudgetNearlyUsed", "KgfleetBudgetUsed"] {
        prometheus.until(alert, |prometheus| prometheus.has_fired(alert));
    }
    let of_fleet = cluster.kgfleet(&coordinator, &["status", "latest"]).expect(0);
    of_fleet.prints(&[
        "does not start: ImagePullBackOff: Back-off pulling image",
        "its pool has a server that does not start",
    ]);
    // A coordinator names the same, of the models.
    for (model, reason) in [("slow", "queued"), ("broken", "server-failed")] {
        let blocked = format!("kgfleet_run_model_blocked{{model=\"{model}\", reason=\"{reason}\"}}");
        prometheus.until(&blocked, |prometheus| prometheus.value(&blocked) == Some(1.0));
    }
    let catalogue = [
        conductor_metrics(),
        service_kit::metrics::DEFINITIONS.to_vec(),
        service_kit::metrics::process::DEFINITIONS.to_vec(),
    ]
    .concat();
    let told = scrape::check(ports[1], &catalogue);
    assert_eq!(super::untold(&conductor_metrics(), &told), [""; 0]);
    assert!(!prometheus.has_fired("KgfleetConductorAbsent"), "it is there");
    super::keep_seen(&prometheus);
    conductor.signal(Signal::KILL);
    let alert = "KgfleetConductorAbsent";
    prometheus.until(alert, |prometheus| prometheus.has_fired(alert));
}

fn conductor_metrics() -> Vec<service_kit::metrics::MetricDefinition> {
    ::conductor::metrics::DEFINITIONS.to_vec()
}
