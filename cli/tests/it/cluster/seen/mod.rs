//! A real Prometheus scrapes a cluster that runs the quick benchmark with faults; every panel and every rule is
//! evaluated there.

mod expected;
mod pools;
mod prometheus;
mod scrape;

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};

use crate::harness::{Cluster, Running, free_port};
use expected::{EMPTY_BY_DESIGN, NOT_CAUSED, OF_CONDUCTORS, Question};
use prometheus::{LOOK_EVERY, PATIENCE, Prometheus};

/// Held by a test that needs a machine's time for itself: what a rule looks back at is quickened to some seconds, in which
/// a second cluster beside this one leaves too little to see.
static TURN: Mutex<()> = Mutex::new(());

/// Waits for the other ones to end, whether well or not.
fn take_turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Three simulated models with faults: refusals of one of them, broken connections, answers of another model. Others ask
/// for a kind of request that the server does not take, so that some dialogues fail.
const SIMULATION: &str = r#"
[[models]]
name = "sim-strong"
profile = "h100-8b"
[[models]]
name = "sim-middling"
profile = "h100-8b"
[[models]]
name = "sim-weak"
profile = "h100-8b"
[[faults.rules]]
model = "sim-weak"
when = { probability = 0.5 }
fault = { status = { code = 503 } }
[[faults.rules]]
model = "sim-middling"
when = { probability = 0.35 }
fault = "reset"
[[faults.rules]]
model = "sim-middling"
when = { probability = 0.05 }
fault = { wrong_model = { name = "somebody-else" } }
[[faults.rules]]
model = "sim-strong"
when = { probability = 0.03 }
fault = { status = { code = 400 } }
"#;

/// The same models at a server that takes every request and answers none.
const STUCK: &str = r#"
[[models]]
name = "sim-strong"
[[models]]
name = "sim-middling"
[[models]]
name = "sim-weak"
[[faults.rules]]
when = "always"
fault = "hang"
"#;

/// The quick benchmark. Its answers are streamed, so that there is a first token.
fn quick() -> String {
    let quick =
        std::fs::read_to_string(prometheus::root().join("task-data/configurations/quick.toml")).unwrap();
    quick.replace("connector =", "stream = true\nconnector =")
}

/// The quick benchmark, and a model that nobody serves: it keeps the run from ending, so that its series are there as
/// long as they are asked for.
fn benchmark() -> String {
    format!("{}\n[[models]]\nlabel = \"sim-absent\"\nstream = true\nconnector = \"simulated\"\n", quick())
}

/// What was asked and has not given anything yet.
struct Open {
    panels: BTreeSet<Question>,
    recorded: Vec<String>,
    alerts: Vec<String>,
}

impl Open {
    fn new() -> Self {
        let (recorded, mut alerts) = expected::rules();
        alerts.retain(|alert| {
            let apart = NOT_CAUSED.iter().chain(&OF_CONDUCTORS);
            !apart.into_iter().any(|known| known == alert)
        });
        let mut panels = expected::panels();
        for (place, metric, _) in EMPTY_BY_DESIGN {
            let before = panels.len();
            panels.retain(|question| !(question.place == place && question.expression.contains(metric)));
            assert!(panels.len() < before, "no panel {place} asks for {metric}");
        }
        Self { panels, recorded, alerts }
    }

    /// Asks everything once; whether nothing is left to ask.
    fn ask(&mut self, prometheus: &Prometheus) -> bool {
        // As Grafana asks: what a panel showed for a moment between two looks is seen too.
        self.panels.retain(|question| prometheus.range(&question.expression).is_empty());
        self.recorded.retain(|name| !prometheus.was_recorded(name));
        self.alerts.retain(|name| !prometheus.has_fired(name));
        self.panels.is_empty() && self.recorded.is_empty() && self.alerts.is_empty()
    }

    /// Asks until `done`, or until nothing is left.
    #[track_caller]
    fn ask_until(&mut self, prometheus: &Prometheus, what: &str, done: impl Fn(&Self) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !self.ask(prometheus) && !done(self) {
            assert!(
                Instant::now() < end,
                "{what}: no data for {:#?}, not recorded {:?}, not fired {:?}",
                self.panels,
                self.recorded,
                self.alerts
            );
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn has_fired(&self, alerts: &[&str]) -> bool {
        alerts.iter().all(|alert| self.alerts.iter().all(|open| open != alert))
    }
}

#[test]
fn every_panel_and_every_rule_shows_what_happens_in_a_cluster() {
    let _turn = take_turn();
    let Some(cluster) = Cluster::start() else { return };
    let ports: Vec<u16> = (0..5).map(|_| free_port()).collect();
    let Some(prometheus) = Prometheus::start(cluster.data.path(), &ports) else { return };
    let began = Instant::now();
    let coordinator = cluster.coordinator_with(
        free_port(),
        &["--queue", &cluster.redis.url(), "--metrics", &format!("127.0.0.1:{}", ports[0])],
    );
    let simulate = |name: &str, simulation: &str| {
        let listen = format!("127.0.0.1:{}", free_port());
        let file = cluster.data.write(name, simulation);
        let arguments = ["simulate", file.to_str().unwrap(), "--seed", "1", "--listen", &listen];
        (cluster.data.start(&arguments), listen)
    };
    let (simulator, listen) = simulate("simulation.toml", SIMULATION);
    let (_stuck_simulator, never_answers) = simulate("stuck.toml", STUCK);
    let worker = |at: usize, listen: &str, concurrency: &str| {
        let http = format!("127.0.0.1:{}", ports[at]);
        let more = ["--concurrency", concurrency, "--metrics", &http, "--gpus", "1"];
        let mut worker = cluster.worker_with(
            &format!("worker-{at}"),
            coordinator.port,
            &format!("http://{listen}/v1"),
            &more,
        );
        worker.until_it_says("asking");
        worker.go_on_listening();
        worker
    };
    let configuration = cluster.data.write("quick.toml", benchmark());
    let submitted = cluster.kgfleet(&coordinator, &["submit", configuration.to_str().unwrap()]).expect(0);
    let run = submitted.stdout.trim().to_owned();
    // A run with a model that nobody serves has no time left to tell; this one has.
    let can_end = cluster.data.write("can-end.toml", quick());
    cluster.kgfleet(&coordinator, &["submit", can_end.to_str().unwrap()]).expect(0);

    // One worker waits for a server that never comes.
    let (nowhere, http) = (format!("http://127.0.0.1:{}/v1", free_port()), format!("127.0.0.1:{}", ports[4]));
    let more = ["--model", "sim-strong", "--metrics", &http];
    let mut waiting = cluster.worker_with("worker-4", coordinator.port, &nowhere, &more);
    waiting.go_on_listening();
    // One worker holds more leases than the rule about expired ones asks for, and cannot work them off.
    let doomed = worker(3, &never_answers, "2");
    prometheus.until("units are leased", |prometheus| {
        let leases = format!("kgfleet_worker_leases{{instance=\"127.0.0.1:{}\"}}", ports[3]);
        prometheus.value(&leases).is_some_and(|leases| leases >= 4.0)
    });
    let workers = [worker(1, &listen, "auto"), worker(2, &listen, "6")];

    let mut open = Open::new();
    prometheus.until("records come", |prometheus| {
        prometheus.value("max(kgfleet_run_dialogues{state=\"scored\"})").is_some_and(|scored| scored >= 10.0)
    });
    kill_evaluators(&prometheus, &workers[0], ports[1]);
    let catalogue = |of: &[service_kit::metrics::MetricDefinition]| {
        [of, service_kit::metrics::DEFINITIONS, service_kit::metrics::process::DEFINITIONS].concat()
    };
    let (of_coordinators, of_workers) =
        (catalogue(coordinator::metrics::DEFINITIONS), catalogue(worker::metrics::DEFINITIONS));
    prometheus
        .until("an end is in sight", |prometheus| prometheus.was_recorded("kgfleet:run_eta_seconds:max"));
    let mut told_by_coordinator = scrape::check(ports[0], &of_coordinators);
    let servers = "count(count by (server) (kgfleet_server_up{serves=\"sim-middling\"}))";
    prometheus.until("three servers of a model are told apart, which have one address", |prometheus| {
        prometheus.value(servers) == Some(3.0)
    });
    open.ask_until(&prometheus, "while it runs", |open| {
        open.panels.len() < 20 && open.has_fired(&["KgfleetQueuedLong", "KgfleetLoadSlow"])
    });
    told_by_coordinator.extend(scrape::check(ports[0], &of_coordinators));
    let mut told_by_workers = scrape::check(ports[1], &of_workers);
    // All but what the hanging server keeps is done; the other servers are idle although that is left.
    prometheus.until("only the hanging server is asked", |prometheus| {
        let asked = format!(
            "sum(kgfleet_worker_inflight_dialogues{{instance=~\"127.0.0.1:({}|{})\"}})",
            ports[1], ports[2]
        );
        let pending = "sum(kgfleet_units{model!=\"sim-absent\", state=\"pending\"})";
        prometheus.value(&asked) == Some(0.0) && prometheus.value(pending) == Some(0.0)
    });
    open.ask_until(&prometheus, "while a server hangs", |open| {
        let is_idle = open.panels.iter().all(|question| question.place != "Idle servers while work waits");
        is_idle && open.has_fired(&["KgfleetRunStalled", "KgfleetServerSilent", "KgfleetGpusIdle"])
    });
    // It dies with what it holds; its leases expire, and others end it.
    doomed.signal(Signal::KILL);
    open.ask_until(&prometheus, "without the worker of that server", |open| {
        open.has_fired(&["KgfleetLeasesExpiring", "KgfleetWorkersLost"])
    });
    prometheus.until("only the absent model's dialogues are left", |prometheus| {
        let left = "max(kgfleet_run_model_remaining_dialogues{model!=\"sim-absent\"})";
        prometheus.value(left) == Some(0.0)
    });
    open.ask_until(&prometheus, "at its end", |open| open.has_fired(&["KgfleetNoWorkerForModel"]));
    // On a busy machine a worker may have asked or judged nothing by the first look.
    for port in &ports[1..3] {
        told_by_workers.extend(scrape::check(*port, &of_workers));
    }
    // Then everything fails, one after the other.
    simulator.signal(Signal::KILL);
    open.ask_until(&prometheus, "without model servers", |open| {
        open.has_fired(&["KgfleetServerDown", "KgfleetWorkerInTrouble"])
    });
    cluster.redis.say::<()>("CONFIG SET maxmemory 1");
    open.ask_until(&prometheus, "with a full Redis", |open| open.has_fired(&["KgfleetQueueUnreachable"]));
    assert!(
        !prometheus.query(&format!("last_over_time(kgfleet_run_phase{{run=\"{run}\"}}[5m])")).is_empty(),
        "the run was seen"
    );
    coordinator.process.signal(Signal::KILL);
    open.ask_until(&prometheus, "without a coordinator", |_| false);

    let of_coordinator: Vec<&str> = untold(coordinator::metrics::DEFINITIONS, &told_by_coordinator);
    // There is no certificate, and no run has a model with a price.
    let not_here = [
        "kgfleet_queue_failures_total",
        "kgfleet_certificate_expiration_timestamp_seconds",
        "kgfleet_run_stage",
        "kgfleet_run_model_spent",
    ];
    assert_eq!(of_coordinator, not_here);
    let of_worker: Vec<&str> = untold(worker::metrics::DEFINITIONS, &told_by_workers);
    // What only failures cause.
    let not_here = ["delivery_failures", "exchange_failures", "parkings", "preemptions"];
    assert!(of_worker.iter().all(|name| not_here.iter().any(|word| name.contains(word))), "{of_worker:?}");
    keep_seen(&prometheus);
    eprintln!("every panel and every rule was asked within {:.0} s", began.elapsed().as_secs_f64());
}

/// Keeps what the panels show where somebody wants it drawn (`deploy/grafana/draw`).
fn keep_seen(prometheus: &Prometheus) {
    if let Some(path) = std::env::var_os("KGFLEET_SEEN") {
        std::fs::write(path, drawn(prometheus)).unwrap();
    }
}

/// Kills evaluation processes of a worker from outside until three deaths are told.
fn kill_evaluators(prometheus: &Prometheus, worker: &Running, port: u16) {
    let deaths =
        format!("kgfleet_worker_evaluator_deaths_total{{cause=\"external\", instance=\"127.0.0.1:{port}\"}}");
    let end = Instant::now() + PATIENCE;
    while prometheus.value(&deaths).is_none_or(|deaths| deaths < 4.0) {
        assert!(Instant::now() < end, "the deaths are counted");
        for child in worker.children() {
            // It may have been replaced meanwhile.
            let _ = kill_process(child, Signal::KILL);
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn untold<'a>(
    table: &'a [service_kit::metrics::MetricDefinition],
    told: &BTreeSet<&'static str>,
) -> Vec<&'a str> {
    table.iter().map(|definition| definition.name).filter(|name| !told.contains(name)).collect()
}

/// What every panel shows over the whole test, as JSON, to be drawn by `deploy/grafana/draw`.
fn drawn(prometheus: &Prometheus) -> String {
    let of_question = |question: Question| {
        let series = prometheus.range(&question.expression);
        serde_json::json!({"panel": question.place, "template": question.template, "series": series})
    };
    let panels: Vec<serde_json::Value> = expected::panels().into_iter().map(of_question).collect();
    serde_json::to_string_pretty(&panels).unwrap()
}
