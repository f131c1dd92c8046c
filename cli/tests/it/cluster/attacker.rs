//! Attackers: one who can reach the machines of a cluster over the network, and one whose token allows less. Neither
//! gets more than it may.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use domain::control::{BenchmarkView, Control, Submission};
use domain::exchange::{
    Delivery, Offer, RateBudget, Registration, Report, Serves, WorkExchange, WorkerStatus,
};
use domain::{DialogueKey, ErrorCode, RunId, ServiceError};
use futures::StreamExt;
use proto::{ApiClient, Client, ClientConfig};
use rustix::process::Signal;

use crate::harness::cluster::Coordinator;
use crate::harness::{Cluster, Finished, NT_TASK, Receiver, Running, Server};

const USAGE: i32 = 2;
const REFUSED: i32 = 3;

/// What the workers of these tests keep from everybody.
const SECRET: &str = "sk-a-real-secret";

/// A worker that may ask servers of this address, if there is one, and has a key of its own.
fn keeper(
    cluster: &Cluster,
    coordinator: &Coordinator,
    server: &Server,
    name: &str,
    may: Option<&str>,
) -> Running {
    let (fleet, endpoint, work_dir) = (coordinator.url(), server.url(), cluster.work_dir(name));
    let mut arguments = vec!["worker", "--fleet", &fleet, "--name", name, "--evaluators", "1"];
    arguments.extend(["--endpoint", &endpoint, "--work-dir", work_dir.to_str().unwrap()]);
    arguments.extend(["--connector", "anthropic", "--connector", "openai-compatible"]);
    arguments.extend(may.into_iter().flat_map(|url| ["--allow-endpoint", url]));
    Running::start(cluster.data.command(&arguments).env("ANTHROPIC_API_KEY", SECRET))
}

/// A run of which a worker has done what it may.
fn until_first_model_is_done(cluster: &Cluster, coordinator: &Coordinator, run: &str) -> BenchmarkView {
    loop {
        let view = cluster.status(coordinator, run);
        if view.models[0].scored == 1 {
            return view;
        }
    }
}

/// A cluster that asks who calls.
pub struct Guarded {
    pub cluster: Cluster,
    pub coordinator: Coordinator,
    pub tokens: String,
}

impl Guarded {
    pub fn start() -> Option<Self> {
        let cluster = Cluster::start()?;
        let tokens = cluster.data.path().join("tokens.toml").to_str().unwrap().to_owned();
        std::fs::write(&tokens, "").unwrap();
        let coordinator = cluster.coordinator_with(crate::harness::free_port(), &["--tokens", &tokens]);
        Some(Self { cluster, coordinator, tokens })
    }

    /// A token for a new identity, in a file.
    pub fn token(&self, name: &str, more: &[&str]) -> String {
        let arguments = [&["fleet", "token", "new", "--name", name, "--append", &self.tokens], more].concat();
        let token = self.cluster.data.kgfleet(&arguments).expect(0).stdout;
        assert!(
            !std::fs::read_to_string(&self.tokens).unwrap().contains(token.trim()),
            "only its hash is kept"
        );
        self.cluster.data.write(&format!("{name}.token"), token).to_str().unwrap().to_owned()
    }

    /// `kgfleet` with a token, again for as long as the coordinator has not read of it.
    pub fn known(&self, token: &str, arguments: &[&str]) -> Finished {
        loop {
            let finished = self.with(token, arguments);
            if !finished.stderr.contains("the token is unknown") {
                return finished;
            }
        }
    }

    pub fn with(&self, token: &str, arguments: &[&str]) -> Finished {
        self.cluster.kgfleet(&self.coordinator, &[arguments, &["--token-file", token]].concat())
    }
}

/// Every call that there is, without a right to any.
async fn try_everything(config: &ClientConfig) -> Vec<ServiceError> {
    let (client, work) = (ApiClient::new(config).unwrap(), Client::connect_lazy(config).unwrap());
    let (run, worker) = (RunId::new("r"), "gpu-1".into());
    let registration = Registration {
        worker: "gpu-1".into(),
        instance: "i".into(),
        predecessors: Vec::new(),
        kgfleet: "0".into(),
        host: "h".into(),
    };
    let report = Report {
        worker: "gpu-1".into(),
        instance: "i".into(),
        offers: vec![Offer { serves: Serves::Model("m".into()), room: 9 }],
        held: Vec::new(),
        ended: BTreeMap::new(),
        parked: Vec::new(),
        draining: false,
        wait: Duration::ZERO,
        status: WorkerStatus::default(),
        until: None,
    };
    let key = DialogueKey { model: "m".into(), task: "t".into(), iteration: 0 };
    let delivery = Delivery { run: run.clone(), key, failure: None, json: "{}".into() };
    let budget = RateBudget { name: "b".into(), per_minute: 1 };
    let submission = Submission { configuration: serde_json::json!({}), pack: None };
    vec![
        client.list().await.map(drop).unwrap_err(),
        client.view(&run).await.map(drop).unwrap_err(),
        client.watch(&run).next().await.unwrap().map(drop).unwrap_err(),
        client.records(&run).next().await.unwrap().map(drop).unwrap_err(),
        client.command(&run, domain::control::BenchmarkCommand::Cancel).await.map(drop).unwrap_err(),
        client.retry(&run, &[]).await.map(drop).unwrap_err(),
        client.workers().await.map(drop).unwrap_err(),
        client.drain_worker(&worker).await.unwrap_err(),
        client.dead_letters(&run, None).await.map(drop).unwrap_err(),
        client.requeue(&run, &[]).await.map(drop).unwrap_err(),
        client.check().await.map(drop).unwrap_err(),
        work.register(registration).await.map(drop).unwrap_err(),
        work.exchange(report).await.map(drop).unwrap_err(),
        work.deliver(vec![delivery]).await.map(drop).unwrap_err(),
        work.take_rate(&budget, 1).await.map(drop).unwrap_err(),
        client.submit(submission).await.map(drop).unwrap_err(),
        client.remove(&run, true).await.unwrap_err(),
        work.run_material(&run).await.map(drop).unwrap_err(),
        client.pack("00").await.map(drop).unwrap_err(),
        work.pack("00").await.map(drop).unwrap_err(),
        work.deregister(&worker, &"i".into(), None).await.unwrap_err(),
    ]
}

#[test]
fn an_attacker_with_only_network_access_gets_nothing() {
    let Some(guarded) = Guarded::start() else { return };
    let (cluster, coordinator) = (&guarded.cluster, &guarded.coordinator);
    // With the tools at hand.
    let configuration = cluster.configuration(&[NT_TASK], 1);
    let configuration = configuration.to_str().unwrap();
    let verbs: [&[&str]; 9] = [
        &["status"],
        &["submit", configuration],
        &["fleet", "workers"],
        &["fleet", "workers", "drain", "gpu-1"],
        &["cancel", "r"],
        &["pause", "r"],
        &["fleet", "dead-letters", "r"],
        &["plan", configuration],
        &["export", "r", "--format", "csv"],
    ];
    for verb in verbs {
        let refused = cluster.kgfleet(coordinator, verb);
        assert!(refused.stdout.is_empty() || verb[0] == "plan", "{refused}");
        assert!(format!("{refused}").contains("requires authentication"), "{refused}");
    }
    // With the bare wire, under no name and under invented ones.
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        for token in [None, Some(""), Some("kgfleet_0000"), Some("Bearer")] {
            let token = token.map(str::to_owned);
            let config = ClientConfig { token, ..ClientConfig::new(coordinator.url()) };
            for refusal in try_everything(&config).await {
                assert_eq!(refusal.code, ErrorCode::Denied, "{refusal}");
            }
        }
    });
    // With noise.
    let noise: Vec<u8> = (0..1 << 16_u32).map(|n: u32| (n.wrapping_mul(2_654_435_761) >> 11) as u8).collect();
    for bytes in
        [&noise[..], b"GET /metrics HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\xff\xff\x04\x01"]
    {
        let mut stream = TcpStream::connect(("127.0.0.1", coordinator.port)).unwrap();
        let _ = stream.write_all(bytes);
    }
    // Nothing came of it, and who is known is served.
    let operator = guarded.token("alice", &["--role", "operator"]);
    let runs = guarded.known(&operator, &["status", "--json"]).expect(0);
    assert_eq!(runs.stdout, "");
    // The token that a worker has to show cannot be tried over a network in the clear.
    let elsewhere = ["status", "--fleet", "http://192.0.2.1:7700", "--token-file", &operator];
    cluster.data.kgfleet(&elsewhere).expect(USAGE).says(&["without TLS"]);
}

#[test]
fn a_stolen_token_is_worth_its_role_and_no_more() {
    let Some(guarded) = Guarded::start() else { return };
    let operator = guarded.token("alice", &["--role", "operator"]);
    let reader = guarded.token("bob", &["--role", "reader"]);
    let worker = guarded.token("pool", &["--role", "worker", "--workers", "gpu-*"]);
    let configuration = guarded.cluster.configuration(&[NT_TASK], 2);
    let submit = ["submit", configuration.to_str().unwrap()];
    let run = guarded.known(&operator, &submit).expect(0).stdout.trim().to_owned();
    guarded.known(&reader, &["status", &run]).expect(0).prints(&["submitted by alice"]);
    for verb in [&submit[..], &["cancel", &run], &["fleet", "workers", "drain", "gpu-1"], &["retry", &run]] {
        guarded.known(&reader, verb).expect(REFUSED).says(&["`bob` may not call"]);
    }
    guarded.known(&worker, &["status"]).expect(REFUSED).says(&["needs the role reader or operator"]);

    let server = Server::start();
    let start = |name: &str| -> Running {
        let more = ["--concurrency", "4", "--token-file", &worker];
        guarded.cluster.worker_with(name, guarded.coordinator.port, &server.url(), &more)
    };
    start("cpu-1").finish().expect(REFUSED).says(&["`pool` may not act as worker `cpu-1`"]);
    let _working = start("gpu-1");
    guarded.known(&operator, &["status", "--follow", &run]).expect(0);
    guarded.known(&operator, &["cancel", &run]).says(&["finished"]);
    // Who is struck off the list is out, without a restart.
    std::fs::write(&guarded.tokens, "").unwrap();
    while !guarded.with(&reader, &["status"]).stderr.contains("the token is unknown") {}
}

#[test]
fn a_submitted_configuration_gets_no_secret_of_a_worker() {
    let Some(cluster) = Cluster::start() else { return };
    let (trap, server, coordinator) = (Receiver::start(0), Server::start(), cluster.coordinator());
    let models = |more: &str| {
        let text = format!(
            "name = 'a'\niterations = 1\ntasks = ['{NT_TASK}']\n[[models]]\nlabel = 'sim'\n\
             connector = 'openai-compatible'\nstream = false\n[[models]]\nlabel = 'trap'\n{more}\n"
        );
        cluster.data.write("attack.toml", text).to_str().unwrap().to_owned()
    };
    let url = trap.url();
    for (line, culprit) in [
        (
            format!("connector = 'openai-compatible'\nendpoint = '{url}/v1'\nkey_file = '/etc/hostname'"),
            "key_file",
        ),
        (
            format!("connector = 'openai-compatible'\nendpoint = '{url}/v1'\nkey_env = 'ANTHROPIC_API_KEY'"),
            "key_env",
        ),
        (
            "connector = 'openai-compatible'\nendpoint = 'http://169.254.169.254/v1'".to_owned(),
            "never contacted",
        ),
        (
            "connector = 'openai-compatible'\nendpoint = 'http://[::ffff:a9fe:a9fe]/v1'".to_owned(),
            "never contacted",
        ),
    ] {
        cluster.kgfleet(&coordinator, &["submit", &models(&line)]).expect(USAGE).says(&[culprit]);
    }
    let _worker = keeper(&cluster, &coordinator, &server, "keeper", None);
    for line in [
        format!("connector = 'anthropic'\nendpoint = '{url}'"),
        format!("connector = 'anthropic'\nendpoint = '{url}'\nkey = 'anthropic'"),
        format!("connector = 'openai-compatible'\nendpoint = '{url}/v1'"),
    ] {
        let submitted = cluster.kgfleet(&coordinator, &["submit", &models(&line)]).expect(0);
        let run = submitted.stdout.trim().to_owned();
        // The rest waits for one that may ask there.
        let view = until_first_model_is_done(&cluster, &coordinator, &run);
        assert_eq!((view.models[1].workers, view.models[1].units_pending), (0, 1), "{view:?}");
        cluster.kgfleet(&coordinator, &["cancel", &run]).expect(0);
    }
    assert!(trap.until(|_| true).is_empty(), "the attacker's server was asked");

    // One that is allowed to ask there does so, without its key.
    let _allowed = keeper(&cluster, &coordinator, &server, "allowed", Some(&url));
    let line = format!("connector = 'openai-compatible'\nendpoint = '{url}/v1'");
    cluster.kgfleet(&coordinator, &["submit", &models(&line)]).expect(0);
    let heard = trap.until(|taken| !taken.is_empty()).remove(0);
    let text = format!("{}{}{}", heard.line, heard.headers, String::from_utf8_lossy(&heard.body));
    assert!(heard.line.contains("/v1/") && !text.contains(SECRET), "{text}");
}

#[test]
fn a_record_folder_from_elsewhere_gets_no_secret_of_a_worker() {
    let Some(cluster) = Cluster::start() else { return };
    let (trap, server, coordinator) = (Receiver::start(0), Server::start(), cluster.coordinator());
    let url = trap.url();
    let text = format!(
        "name = 'a'\niterations = 1\ntasks = ['{NT_TASK}']\n[[models]]\nlabel = 'sim'\n\
         connector = 'openai-compatible'\n[[models]]\nlabel = 'file'\nconnector = 'openai-compatible'\n\
         endpoint = '{url}/v1'\n[[models]]\nlabel = 'claude'\nconnector = 'anthropic'\n"
    );
    let file = cluster.data.write("plain.toml", text);
    let submitted = cluster.kgfleet(&coordinator, &["submit", file.to_str().unwrap()]).expect(0);
    let run = submitted.stdout.trim().to_owned();
    coordinator.process.signal(Signal::KILL);
    coordinator.process.finish();
    // What no submission may say comes with the folder.
    let found = cluster.data.run();
    let secret = cluster.data.write("secret", SECRET);
    let mut manifest = found.manifest;
    manifest.configuration["models"][1]["key_file"] = secret.to_str().unwrap().into();
    manifest.configuration["models"][2]["endpoint"] = url.clone().into();
    manifest.configuration_hash = results::manifest::hash(&manifest.configuration);
    manifest.write(&found.dir.manifest_path()).unwrap();

    let coordinator = cluster.coordinator_at(coordinator.port);
    cluster.kgfleet(&coordinator, &["resume", &run]).expect(0);
    let trusting = ["resume", &run, "--trust-endpoints"];
    cluster.kgfleet(&coordinator, &trusting).expect(USAGE).says(&["--allow-endpoint"]);
    let _worker = keeper(&cluster, &coordinator, &server, "keeper", Some(&url));
    let view = until_first_model_is_done(&cluster, &coordinator, &run);
    for model in &view.models[1..] {
        assert_eq!((model.workers, model.units_pending), (0, 1), "{view:?}");
    }
    assert!(trap.until(|_| true).is_empty(), "the attacker's server was asked");
}

#[test]
fn nobody_stands_open_to_a_network_by_mistake() {
    let Some(cluster) = Cluster::start() else { return };
    let tokens = cluster.data.write("tokens.toml", "");
    let redis = cluster.redis.url();
    let arguments = ["coordinator", "--listen", "0.0.0.0:0", "--metrics", "127.0.0.1:0", "--queue", &redis];
    let start = |more: &[&str]| cluster.data.start(&[&arguments[..], more].concat());
    start(&[]).finish().expect(USAGE).says(&["--tls-cert", "--tokens", "--insecure"]);
    start(&["--tokens", tokens.to_str().unwrap()]).finish().expect(USAGE).says(&["has no TLS"]);
    start(&["--insecure"]).until_it_says("serving on");
}
