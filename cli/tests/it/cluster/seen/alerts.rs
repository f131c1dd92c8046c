//! Alerts about rare events: each event is caused, and a real Prometheus fires the alert.

use std::process::Command;

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};

use super::expected::{self, CAUSED_APART};
use super::prometheus::Prometheus;
use crate::harness::{Cluster, NT_TASK, Server, free_port, process, wait_until};

/// A model whose provider says that the quota is used up, one whose every answer is nested deeper than any limit, and one
/// that says much. These two take their time, so that there is a steady flow of records. A server refuses most prompts of
/// another one.
fn simulation() -> String {
    let nested =
        format!("```turtle\\n<a:s> <a:p> {}<a:o>{} .\\n```", "[ <a:p> ".repeat(400), " ]".repeat(400));
    format!(
        r#"
[[models]]
name = "sim-poor"
[[models]]
name = "sim-nested"
answers = {{ kind = "scripted", answers = [{{ text = "{nested}" }}] }}
[[models]]
name = "sim-failing"
[[models]]
name = "sim-wordy"
answers = {{ kind = "garbage", tokens = 20000 }}
max_model_len = 100000
[[faults.rules]]
model = "sim-poor"
when = "always"
fault = {{ status = {{ code = 402 }} }}
[[faults.rules]]
model = "sim-failing"
when = {{ probability = 0.6 }}
fault = {{ status = {{ code = 400 }} }}
[[faults.rules]]
model = "sim-nested"
when = "always"
fault = {{ slow = {{ delay_ms = 1000 }} }}
[[faults.rules]]
model = "sim-wordy"
when = "always"
fault = {{ slow = {{ delay_ms = 1000 }} }}
"#
    )
}

/// Dialogues without end of these models, whose answers are judged as graphs.
fn endless(models: &[&str]) -> String {
    let models = models.iter().map(|model| {
        format!(
            "[[models]]\nlabel = '{model}'\nconnector = 'openai-compatible'\nstream = false\n\
             sampling = {{ max_tokens = 20000 }}\n"
        )
    });
    let models: String = models.collect();
    format!("name = 'endless'\niterations = 2000\ntasks = ['RdfSyntaxFixList-turtle']\n{models}")
}

/// More models times tasks than a metric may have series; nobody serves them.
fn many() -> String {
    let model = |n: usize| format!("[[models]]\nlabel = 'model-{n:03}'\nconnector = 'simulated'\n");
    format!("name = 'many'\niterations = 1\n{}", (0..193).map(model).collect::<String>())
}

/// One unit of a model, and one of another that nobody serves, which keeps the run from ending.
fn deadly() -> String {
    let model = |label: &str| format!("[[models]]\nlabel = '{label}'\nconnector = 'openai-compatible'\n");
    format!("name = 'deadly'\niterations = 1\ntasks = ['{NT_TASK}']\n{}{}", model("sim"), model("absent"))
}

#[test]
fn every_alert_about_what_befalls_few_clusters_fires() {
    let (_, alerts) = expected::rules();
    assert!(CAUSED_APART.iter().all(|alert| alerts.iter().any(|known| known == alert)), "{alerts:?}");
    let _turn = super::take_turn();
    let Some(cluster) = Cluster::start() else { return };
    let ports = [free_port(), free_port()];
    let Some(prometheus) = Prometheus::start(cluster.data.path(), &ports) else { return };
    let fires = |alerts: &[&'static str]| {
        for alert in alerts {
            assert!(CAUSED_APART.contains(alert), "{alert} is caused elsewhere");
            prometheus.until(alert, |prometheus| prometheus.has_fired(alert));
        }
    };

    // Its files can be kept from growing. The signal that goes with that would kill; a full disk sends none.
    let (port, http, queue) = (free_port(), format!("127.0.0.1:{}", ports[0]), cluster.redis.url());
    let more = ["--queue", &queue, "--metrics", &http, "--strikes", "1"];
    let mut command = Command::new("sh");
    process::shield(&mut command);
    command.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_kgfleet")]);
    command.args(cluster.coordinator_arguments(port, &more)).env("KGFLEET_DATA_DIR", cluster.data.path());
    let mut coordinator = cluster.coordinator_by(&mut command, port);
    coordinator.process.go_on_listening();

    let simulation = cluster.data.write("simulation.toml", simulation());
    let listen = format!("127.0.0.1:{}", free_port());
    let mut simulator = cluster.data.start(&["simulate", simulation.to_str().unwrap(), "--listen", &listen]);
    simulator.go_on_listening();
    let http = format!("127.0.0.1:{}", ports[1]);
    let more = ["--concurrency", "12", "--spool-mb", "1", "--metrics", &http];
    let mut worker = cluster.worker_with("steady", port, &format!("http://{listen}/v1"), &more);
    worker.go_on_listening();
    for (name, text) in [
        ("endless.toml", endless(&["sim-poor", "sim-failing", "sim-nested", "sim-wordy"])),
        ("many.toml", many()),
        ("deadly.toml", deadly()),
    ] {
        let file = cluster.data.write(name, text);
        cluster.kgfleet(&coordinator, &["submit", file.to_str().unwrap()]).expect(0);
    }
    fires(&[
        "KgfleetModelFailing",
        "KgfleetSeriesDropped",
        "KgfleetQuotaExhausted",
        "KgfleetEvaluationLimits",
    ]);

    // The unit kills three workers: the second death makes it a suspect, the third one a dead letter.
    let server = Server::stuck_for_ever_at("");
    for death in 0..3 {
        let before = server.faults();
        let victim = cluster.worker("victim", &coordinator, &server);
        wait_until(&format!("the question is asked after {death} deaths"), || server.faults() > before);
        victim.signal(Signal::KILL);
        victim.finish();
    }
    let _another = cluster.worker("victim", &coordinator, &server);
    fires(&["KgfleetDeadLetters"]);

    let limit = |current| {
        let limit = Rlimit { current, maximum: None };
        prlimit(Some(coordinator.process.pid()), Resource::Fsize, limit).unwrap();
    };
    limit(Some(0));
    fires(&["KgfleetSinkFailing"]);
    limit(None);
    prometheus.until("the log takes records again", |prometheus| {
        prometheus.value("max(kgfleet_coordinator_trouble{part=\"sink\"})") == Some(0.0)
    });

    // No record gets its ticket: those that came wait, and those that follow stay with the worker.
    let redis = Pid::from_raw(i32::try_from(cluster.redis.pid()).unwrap()).unwrap();
    kill_process(redis, Signal::STOP).unwrap();
    fires(&["KgfleetSinkLag", "KgfleetSpoolFilling"]);
    kill_process(redis, Signal::CONT).unwrap();
    let undelivered = "max(kgfleet_worker_spool_bytes / kgfleet_worker_spool_limit_bytes)";
    prometheus.until("the worker delivers what it kept", |prometheus| {
        prometheus.value(undelivered).is_some_and(|share| share < 0.5)
    });
}
