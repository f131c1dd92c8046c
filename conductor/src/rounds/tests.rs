use std::sync::Arc;

use domain::WorkerId;
use domain::exchange::WorkerStatus;
use serde_json::json;

use super::*;
use crate::objects::{CronJob, POOL_LABEL};

mod faults;
mod further;
mod starting;

const MINUTE: i64 = 60;

/// Seconds after the beginning.
fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + seconds).unwrap()
}

fn text(seconds: i64) -> String {
    at(seconds).to_string()
}

fn condition(kind: &str, seconds: i64, reason: &str, message: &str) -> Value {
    json!({"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": text(seconds)})
}

/// A cluster that a test changes by hand, with a conductor.
struct Ground {
    rounds: Rounds,
    cron_jobs: Vec<Value>,
    /// By name.
    jobs: BTreeMap<String, Value>,
    pods: BTreeMap<String, Value>,
    events: Vec<Value>,
    workers: Vec<WorkerView>,
    needs: Vec<ModelNeed>,
    /// What coordinators keep.
    stored: Vec<ServerUsage>,
    uids: u32,
}

impl Ground {
    fn of(settings: ConductorSettings) -> Self {
        Self {
            rounds: Rounds::new(settings),
            cron_jobs: Vec::new(),
            jobs: BTreeMap::new(),
            pods: BTreeMap::new(),
            events: Vec::new(),
            workers: Vec::new(),
            needs: Vec::new(),
            stored: Vec::new(),
            uids: 0,
        }
    }

    fn new(gpus: u32) -> Self {
        Self::of(ConductorSettings { limits: Limits::of_gpus(gpus), gpus_per_node: Some(8) })
    }

    /// A pool of servers of so many parts with so many GPUs, which loads for ten minutes and asks one dialogue a second, with
    /// work for an hour.
    fn pool(mut self, name: &str, parts: u32, gpus: u32) -> Self {
        let estimate = json!({
            "gpus": gpus, "parts": parts, "servers": 1, "load_seconds": 600, "dialogues_per_second": 1.0,
        });
        self.cron_jobs.push(json!({
            "metadata": {
                "name": format!("bench-{name}"), "uid": format!("cron-{name}"), "labels": {POOL_LABEL: name},
                "annotations": {"kgfleet/estimate": estimate.to_string()},
            },
            "spec": {"jobTemplate": {
                "metadata": {"labels": {POOL_LABEL: name}},
                "spec": {"completions": parts, "parallelism": parts, "template": {"spec": {
                    "containers": [{"name": "worker", "args": ["worker", "--model", format!("org/{name}")]}],
                }}},
            }},
        }));
        let model = format!("org/{name}");
        self.needs.push(ModelNeed { model, outlook: Outlook::Work, dialogues: 3_600, rate: 0.0, workers: 0 });
        self
    }

    fn need(&mut self, name: &str) -> &mut ModelNeed {
        let model = format!("org/{name}");
        self.needs.iter_mut().find(|need| need.model == model).unwrap()
    }

    /// A round, of which everything is done; what was ordered, in words.
    fn round(&mut self, seconds: i64) -> Vec<String> {
        self.rounds.note_needs(self.needs.clone(), at(seconds));
        self.round_without_coordinator(seconds)
    }

    fn round_without_coordinator(&mut self, seconds: i64) -> Vec<String> {
        let RoundOutcome { orders, ended, .. } = self.look(seconds);
        self.store(ended);
        orders.into_iter().map(|order| self.carry_out(order, seconds)).collect()
    }

    fn carry_out(&mut self, order: ServerOrder, seconds: i64) -> String {
        match order {
            ServerOrder::Create { job, mut manifest } => {
                self.uids += 1;
                manifest["metadata"]["uid"] = json!(format!("job-{}", self.uids));
                manifest["metadata"]["creationTimestamp"] = json!(text(seconds));
                self.jobs.insert(job.clone(), manifest);
                format!("create {job}")
            }
            ServerOrder::Delete { job, uid, .. } => {
                let gone = self.jobs.remove(&job).unwrap();
                assert_eq!(gone["metadata"]["uid"], uid);
                format!("delete {job}")
            }
        }
    }

    fn look(&mut self, seconds: i64) -> RoundOutcome {
        let cron_jobs: Vec<CronJob> =
            self.cron_jobs.iter().map(|value| serde_json::from_value(value.clone()).unwrap()).collect();
        let jobs = self.jobs.values().map(|value| serde_json::from_value(value.clone()).unwrap()).collect();
        let pods = self.pods.values().map(|value| serde_json::from_value(value.clone()).unwrap()).collect();
        let events = self.events.iter().map(|value| serde_json::from_value(value.clone()).unwrap()).collect();
        self.rounds.round(&ClusterState { cron_jobs, jobs, pods, events }, &self.workers, at(seconds))
    }

    /// Another conductor begins, which knows only what the cluster says, and what servers have left with coordinators.
    fn restart(&mut self) {
        self.rounds = Rounds::new(self.rounds.settings().clone());
        self.rounds.restore(self.stored.clone());
    }

    /// Coordinators take what servers left.
    fn store(&mut self, ended: Vec<ServerUsage>) {
        self.rounds.note_stored(&ended);
        self.stored.extend(ended);
    }

    /// The worker of a pod has ended so many dialogues.
    fn dialogues(&mut self, pod: &str, dialogues: u64) {
        let worker = self.workers.iter_mut().find(|worker| worker.worker.as_str() == pod).unwrap();
        worker.status = Arc::new(WorkerStatus { dialogues, ..(*worker.status).clone() });
    }

    /// A pod of a server, on a node or without one.
    fn pod(&mut self, job: &str, index: u32, node: &str, seconds: i64) {
        let name = format!("{job}-{index}");
        let scheduled = (!node.is_empty()).then(|| condition("PodScheduled", seconds, "", ""));
        self.pods.insert(
            name.clone(),
            json!({
                "metadata": {
                    "name": name, "creationTimestamp": text(seconds),
                    "labels": {POOL_LABEL: self.jobs[job]["metadata"]["labels"][POOL_LABEL], JOB_LABEL: job},
                },
                "spec": {"nodeName": node},
                "status": {"phase": "Running", "conditions": scheduled.into_iter().collect::<Vec<_>>()},
            }),
        );
    }

    /// The worker of a pod reports.
    fn works(&mut self, pod: &str, phase: WorkerPhase, loaded_s: Option<u64>) {
        self.workers.retain(|worker| worker.worker.as_str() != pod);
        let status = WorkerStatus { phase: Some(phase), loaded_s, ..WorkerStatus::default() };
        let worker = WorkerId::new(pod);
        self.workers.push(WorkerView { worker, status: Arc::new(status), seen_ms_ago: 0, draining: false });
    }

    /// A server ends as the Job controller says it.
    fn ends(&mut self, job: &str, seconds: i64, kind: &str, reason: &str, message: &str) {
        self.jobs.get_mut(job).unwrap()["status"]["conditions"] =
            json!([condition(kind, seconds, reason, message)]);
        for pod in self.pods.values_mut().filter(|pod| pod["metadata"]["labels"][JOB_LABEL] == job) {
            pod["status"]["phase"] = json!(if kind == "Complete" { "Succeeded" } else { "Failed" });
        }
    }

    fn fails_with(&mut self, job: &str, seconds: i64, code: i32) {
        let message = format!(
            "Container worker for pod bench/{job}-0 failed with exit code {code} matching FailJob rule at index 0"
        );
        self.ends(job, seconds, "Failed", "PodFailurePolicy", &message);
    }

    fn wait_of(&mut self, pool: &str, seconds: i64) -> Option<&'static str> {
        let rows = self.look(seconds).rows;
        rows.into_iter().find(|row| row.pool == pool)?.wait.map(|wait| wait.why.as_str())
    }
}

const NOTHING: [&str; 0] = [];

#[test]
fn servers_start_the_longest_first_and_end_by_themselves() {
    let mut ground = Ground::new(8).pool("small", 1, 1).pool("large", 1, 8);
    ground.need("large").dialogues = 7_200;
    assert_eq!(ground.round(0), ["create bench-large-1"]);
    assert_eq!(ground.wait_of("small", 10), Some("gpus"));
    ground.pod("bench-large-1", 0, "n1", 5);
    assert_eq!(ground.round(10), NOTHING);
    ground.works("bench-large-1-0", WorkerPhase::Serving, Some(500));
    assert_eq!(ground.round(520), NOTHING);
    assert_eq!(ground.look(530).rows[1].servers, [ServersDoing { stage: ServerStage::Serving, servers: 1 }]);
    *ground.need("large") =
        ModelNeed { outlook: Outlook::Done, dialogues: 0, ..ground.need("large").clone() };
    ground.ends("bench-large-1", 600, "Complete", "", "");
    assert_eq!(ground.round(610), ["create bench-small-1"]);
    // Eight GPUs from second 5 to second 600.
    let hours = ground.look(620).gpu_hours;
    assert!((hours - 8.0 * 595.0 / 3600.0).abs() < 1e-9, "{hours}");
}

#[test]
fn nothing_is_started_without_a_word_of_coordinators_or_where_they_do_not_know() {
    let mut ground = Ground::new(8).pool("a", 1, 1);
    assert_eq!(ground.round_without_coordinator(0), NOTHING);
    ground.need("a").outlook = Outlook::Unknown;
    assert_eq!(ground.round(10), NOTHING);
    for none in [Outlook::Held, Outlook::Later, Outlook::Surplus, Outlook::Done] {
        ground.need("a").outlook = none;
        assert_eq!(ground.round(20), NOTHING, "{none:?}");
    }
    ground.need("a").outlook = Outlook::Work;
    ground.rounds.note_needs(ground.needs.clone(), at(20));
    assert_eq!(ground.round_without_coordinator(81), NOTHING, "what they said is too old");
    assert_eq!(ground.round(90), ["create bench-a-1"]);
}

#[test]
fn a_server_that_fails_is_followed_after_5_15_and_45_minutes_also_by_another_conductor() {
    for restarts in [false, true] {
        let mut ground = Ground::new(8).pool("a", 1, 1);
        let mut now = 0;
        for (number, waits) in [(1, 5), (2, 15), (3, 45)] {
            assert_eq!(ground.round(now), [format!("create bench-a-{number}")]);
            let job = format!("bench-a-{number}");
            ground.pod(&job, 0, "n1", now);
            ground.fails_with(&job, now + MINUTE, 3);
            if restarts {
                ground.restart();
            }
            now += MINUTE;
            assert_eq!(ground.round(now + waits * MINUTE - 1), NOTHING);
            assert_eq!(ground.wait_of("a", now + waits * MINUTE - 1), Some("retry"));
            now += waits * MINUTE;
        }
        assert_eq!(ground.round(now), ["create bench-a-4"]);
        ground.fails_with("bench-a-4", now, 3);
        now += 1_000 * MINUTE;
        assert_eq!(ground.round(now), NOTHING);
        let row = ground.look(now).rows.remove(0);
        assert!(row.is_given_up && row.failures == 4, "{row:?}");
        // Somebody has mended something, and says so.
        ground.cron_jobs[0]["metadata"]["annotations"]["kgfleet/retry"] = json!(text(now));
        assert_eq!(ground.round(now + 10), ["create bench-a-5"]);
    }
}

#[test]
fn a_server_that_cannot_be_used_is_not_tried_again_before_its_template_changes() {
    let mut ground = Ground::new(8).pool("a", 1, 1);
    ground.round(0);
    ground.pod("bench-a-1", 0, "n1", 0);
    ground.fails_with("bench-a-1", 60, 2);
    assert_eq!(ground.round(10_000_000), NOTHING);
    assert_eq!(ground.wait_of("a", 10_000_000), Some("given-up"));
    ground.cron_jobs[0]["spec"]["jobTemplate"]["spec"]["backoffLimit"] = json!(3);
    assert_eq!(ground.round(10_000_010), ["create bench-a-2"]);
}

#[test]
fn an_eviction_of_a_server_of_several_nodes_counts_for_nothing_and_one_for_its_volume_for_all() {
    let mut ground = Ground::new(16).pool("a", 2, 8);
    ground.round(0);
    ground.pod("bench-a-1", 0, "n1", 0);
    ground.pod("bench-a-1", 1, "n2", 0);
    let message = "Pod bench/bench-a-1-1 has condition DisruptionTarget matching FailJob rule at index 1";
    ground.pods.get_mut("bench-a-1-1").unwrap()["status"]["containerStatuses"] =
        json!([{"name": "worker", "state": {"terminated": {"exitCode": 143}}}]);
    ground.ends("bench-a-1", 100, "Failed", "PodFailurePolicy", message);
    assert_eq!(ground.round(101), ["create bench-a-2"]);
    ground.pod("bench-a-2", 0, "n1", 101);
    ground.ends(
        "bench-a-2",
        200,
        "Failed",
        "BackoffLimitExceeded",
        "Job has reached the specified backoff limit",
    );
    let status = &mut ground.pods.get_mut("bench-a-2-0").unwrap()["status"];
    status["reason"] = json!("Evicted");
    status["message"] = json!("Usage of EmptyDir volume \"cache\" exceeds the limit \"100Gi\".");
    assert_eq!(ground.round(100_000), NOTHING);
    let row = ground.look(100_000).rows.remove(0);
    assert!(row.is_given_up, "{row:?}");
    assert!(row.last_failure.unwrap().contains("exceeds the limit"));
}

#[test]
fn deadlines_and_crashes_are_failures_with_the_last_words_of_the_server() {
    for (reason, message) in [
        ("DeadlineExceeded", "Job was active longer than specified deadline"),
        ("BackoffLimitExceeded", "Job has reached the specified backoff limit"),
    ] {
        let mut ground = Ground::new(8).pool("a", 1, 1);
        ground.round(0);
        ground.pod("bench-a-1", 0, "n1", 0);
        ground.pods.get_mut("bench-a-1-0").unwrap()["status"]["initContainerStatuses"] = json!([
            {"name": "vllm", "lastState": {"terminated": {"exitCode": 1, "message": "INFO loads\nValueError: no such model\n"}}},
        ]);
        ground.ends("bench-a-1", 60, "Failed", reason, message);
        let row = ground.look(70).rows.remove(0);
        assert_eq!(
            row.last_failure.unwrap(),
            format!("{reason}: {message}; vllm: ValueError: no such model")
        );
        ground.rounds.note_needs(ground.needs.clone(), at(70));
        assert_eq!(ground.wait_of("a", 70), Some("retry"));
    }
}

#[test]
fn what_failed_before_a_server_served_counts_for_nothing() {
    let mut ground = Ground::new(8).pool("a", 1, 1);
    let mut now = 0;
    for number in 1..8 {
        assert_eq!(ground.round(now), [format!("create bench-a-{number}")]);
        let job = format!("bench-a-{number}");
        ground.pod(&job, 0, "n1", now);
        ground.works(&format!("{job}-0"), WorkerPhase::Serving, Some(30));
        ground.round(now + 40);
        ground.fails_with(&job, now + 60, 3);
        now += 60 + 5 * MINUTE;
    }
}

#[test]
fn a_lost_node_takes_its_server_along_and_its_gpus_are_counted_out() {
    let mut ground = Ground::new(16).pool("a", 2, 4).pool("b", 1, 8);
    assert_eq!(
        ground.round(0),
        ["create bench-a-1"].into_iter().chain(["create bench-b-1"]).collect::<Vec<_>>()
    );
    ground.pod("bench-a-1", 0, "n1", 0);
    ground.pod("bench-a-1", 1, "n2", 0);
    ground.pod("bench-b-1", 0, "n3", 0);
    // The control plane has asked the pod to go, and nobody is there to do it.
    ground.pods.get_mut("bench-a-1-1").unwrap()["metadata"]["deletionTimestamp"] = json!(text(600));
    assert_eq!(ground.round(655), NOTHING);
    assert_eq!(ground.round(670), ["delete bench-a-1"]);
    // Its other part goes at once; the lost one stays for ever. Of 16 GPUs, 8 are in use by `b` and 8 are lost.
    ground.pods.remove("bench-a-1-0");
    let look = ground.look(680);
    assert_eq!((look.gpus_out, look.orders.len()), (8, 0));
    assert_eq!(ground.wait_of("a", 680), Some("gpus"));
    ground.pods.remove("bench-a-1-1");
    assert_eq!(
        ground.round(690),
        ["create bench-a-2"],
        "the node is back, and nothing was wrong with the server"
    );
}

#[test]
fn servers_of_several_nodes_start_one_by_one_and_are_given_up_where_nodes_do_not_come() {
    let mut ground = Ground::new(32).pool("a", 2, 8).pool("b", 2, 8);
    assert_eq!(ground.round(0), ["create bench-a-1"]);
    assert_eq!(ground.wait_of("b", 1), Some("gang"));
    ground.pod("bench-a-1", 0, "n1", 0);
    ground.pod("bench-a-1", 1, "", 0);
    let given_up = ground.round(15 * MINUTE);
    assert!(given_up.contains(&"delete bench-a-1".to_owned()), "{given_up:?}");
    ground.pods.clear();
    // `b` has had its turn since; `a` comes again five minutes later.
    let started = ground.round(15 * MINUTE + 10);
    assert!(!started.contains(&"create bench-a-2".to_owned()), "{started:?}");
    ground.pod("bench-b-1", 0, "n1", 16 * MINUTE);
    ground.pod("bench-b-1", 1, "n2", 16 * MINUTE);
    assert_eq!(ground.round(20 * MINUTE), ["create bench-a-2"]);
}

#[test]
fn images_that_do_not_come_and_containers_that_do_not_stay_end_a_server() {
    let mut ground = Ground::new(8).pool("a", 1, 1);
    ground.round(0);
    ground.pod("bench-a-1", 0, "n1", 0);
    let container =
        |value: Value| json!([{"name": "vllm", "restartCount": value["restarts"], "state": value["state"]}]);
    ground.pods.get_mut("bench-a-1-0").unwrap()["status"]["phase"] = json!("Pending");
    let pulling = json!({"restarts": 0, "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}});
    ground.pods.get_mut("bench-a-1-0").unwrap()["status"]["initContainerStatuses"] = container(pulling);
    assert_eq!(ground.round(15 * MINUTE - 1), NOTHING);
    assert_eq!(ground.round(15 * MINUTE), ["delete bench-a-1"]);
    ground.pods.clear();
    assert_eq!(
        ground.look(15 * MINUTE + 10).rows[0].last_failure.as_deref(),
        Some("ImagePullBackOff: no such image")
    );
    assert_eq!(ground.round(20 * MINUTE), ["create bench-a-2"]);
    ground.pod("bench-a-2", 0, "n1", 20 * MINUTE);
    let restarted = |times: u32| container(json!({"restarts": times, "state": {}}));
    ground.pods.get_mut("bench-a-2-0").unwrap()["status"]["initContainerStatuses"] = restarted(5);
    assert_eq!(ground.round(21 * MINUTE), NOTHING);
    ground.pods.get_mut("bench-a-2-0").unwrap()["status"]["initContainerStatuses"] = restarted(6);
    assert_eq!(ground.round(22 * MINUTE), ["delete bench-a-2"]);
}

#[test]
fn a_budget_is_kept_across_conductors_and_jobs_that_are_gone() {
    let limits = Limits { gpu_hours: Some(4.0), ..Limits::of_gpus(8) };
    let mut ground =
        Ground::of(ConductorSettings { limits, gpus_per_node: None }).pool("a", 1, 1).pool("b", 1, 1);
    // Each takes an hour and ten minutes as far as is known.
    ground.need("b").outlook = Outlook::Done;
    for (number, begins) in [(1, 0), (2, 10_000)] {
        assert_eq!(ground.round(begins), [format!("create bench-a-{number}")]);
        let job = format!("bench-a-{number}");
        ground.pod(&job, 0, "n1", begins);
        ground.ends(&job, begins + 5_400, "Complete", "", "");
        ground.look(begins + 5_400);
    }
    // Both are removed after their time.
    ground.look(16_000);
    ground.jobs.clear();
    ground.pods.clear();
    ground.need("b").outlook = Outlook::Work;
    ground.need("a").outlook = Outlook::Done;
    for conductor in 1..3 {
        assert_eq!(ground.round(16_000), NOTHING, "conductor {conductor}");
        assert!((ground.look(16_000).gpu_hours - 3.0).abs() < 1e-9, "conductor {conductor}");
        ground.rounds.note_needs(ground.needs.clone(), at(16_000));
        assert_eq!(ground.wait_of("b", 16_000), Some("budget"), "conductor {conductor}");
        ground.restart();
    }
    // Numbers go on as well.
    ground.rounds.note_needs(ground.needs.clone(), at(16_000));
    ground.need("a").outlook = Outlook::Work;
    ground.need("a").dialogues = 1;
    assert_eq!(ground.round(16_020), ["create bench-a-3"]);
}

#[test]
fn what_a_conductor_deleted_itself_counts_for_the_next_one() {
    let mut ground = Ground::new(8).pool("a", 1, 1);
    let mut now = 0;
    for (number, waits) in [(1, 5), (2, 15), (3, 45)] {
        assert_eq!(ground.round(now), [format!("create bench-a-{number}")]);
        let job = format!("bench-a-{number}");
        ground.pod(&job, 0, "n1", now);
        ground.pods.get_mut(&format!("{job}-0")).unwrap()["status"]["initContainerStatuses"] =
            json!([{"name": "vllm", "restartCount": 6, "state": {}}]);
        now += MINUTE;
        assert_eq!(ground.round(now), [format!("delete {job}")]);
        ground.pods.clear();
        ground.restart();
        assert_eq!(ground.round(now + waits * MINUTE - 1), NOTHING);
        assert_eq!(ground.wait_of("a", now + waits * MINUTE - 1), Some("retry"));
        now += waits * MINUTE;
    }
    let row = ground.look(now - 1).rows.remove(0);
    assert_eq!(row.failures, 3);
    assert!(row.last_failure.unwrap().contains("started 6 times"));
    assert_eq!(ground.round(now), ["create bench-a-4"]);
    // A release that is installed anew knows nothing of that: its CronJobs are others.
    ground.jobs.clear();
    ground.cron_jobs[0]["metadata"]["uid"] = json!("another");
    ground.restart();
    assert_eq!(ground.round(now + 10), ["create bench-a-1"]);
}

#[test]
fn a_server_leaves_what_it_was_and_did() {
    let mut ground = Ground::new(16).pool("a", 2, 8);
    ground.round(0);
    ground.jobs.get_mut("bench-a-1").unwrap()["spec"]["template"]["spec"]["initContainers"] =
        json!([{"name": "vllm", "args": ["org/a", "--revision", "r-7"]}]);
    for index in [0, 1] {
        ground.pod("bench-a-1", index, &format!("n{index}"), 60);
        let status = &mut ground.pods.get_mut(&format!("bench-a-1-{index}")).unwrap()["status"];
        status["initContainerStatuses"] = json!([{"name": "vllm", "imageID": "vllm@sha256:7"}]);
    }
    ground.works("bench-a-1-0", WorkerPhase::Serving, Some(540));
    ground.dialogues("bench-a-1-0", 1_200);
    ground.look(610);
    // It has nothing to do for half a minute, and then some more.
    ground.works("bench-a-1-0", WorkerPhase::Idle, Some(540));
    for now in [1_000, 1_010, 1_020, 1_030] {
        ground.look(now);
    }
    ground.works("bench-a-1-0", WorkerPhase::Serving, Some(540));
    assert_eq!(ground.look(1_100).ended, []);
    ground.workers.clear();
    ground.ends("bench-a-1", 1_200, "Complete", "", "");
    let left = ServerUsage {
        release: String::new(),
        pool: "a".to_owned(),
        pool_uid: "cron-a".to_owned(),
        template: ground.jobs["bench-a-1"]["metadata"]["annotations"][TEMPLATE].as_str().unwrap().to_owned(),
        model: "org/a".to_owned(),
        job: "bench-a-1".to_owned(),
        uid: "job-1".to_owned(),
        image: "vllm@sha256:7".to_owned(),
        revision: "r-7".to_owned(),
        gpus: 16,
        nodes: vec!["n0".to_owned(), "n1".to_owned()],
        took_gpus_at: Some(at(60)),
        loaded_at: Some(at(600)),
        ended_at: at(1_200),
        idle_s: 90,
        dialogues: 1_200,
        end: ServerEnd::Done,
        fault: None,
        why: String::new(),
    };
    let outcome = ground.look(1_205);
    assert_eq!(outcome.ended, std::slice::from_ref(&left));
    assert_eq!(ground.look(1_215).ended, std::slice::from_ref(&left), "until coordinators have it");
    ground.store(outcome.ended.clone());
    assert_eq!(ground.look(1_225).ended, []);
    let hours = outcome.rows[0].gpu_hours;
    assert_eq!(hours, left.gpu_hours());
    assert_eq!(
        [hours.load, hours.work, hours.idle, hours.lost].map(|hours| (hours * 3600.0 / 16.0).round()),
        [540.0, 510.0, 90.0, 0.0]
    );
    // The next conductor knows how long this model loads, without a server of it.
    ground.restart();
    ground.jobs.clear();
    ground.pods.clear();
    assert_eq!(ground.look(1_300).rows[0].load_s, 540);
    assert_eq!(ground.look(1_300).rows[0].gpu_hours, hours);
}

#[test]
fn jobs_that_people_start_count_and_what_is_no_pool_is_named() {
    let mut ground = Ground::new(1).pool("a", 1, 1).pool("b", 1, 1);
    let mut by_hand = ground.rounds_job("a");
    by_hand["metadata"]["name"] = json!("tuesday");
    ground.jobs.insert("tuesday".to_owned(), by_hand);
    assert_eq!(ground.round(0), NOTHING, "its GPU is taken");
    assert_eq!(ground.wait_of("b", 10), Some("gpus"));
    ground.cron_jobs.push(json!({"metadata": {"name": "other", "labels": {POOL_LABEL: "c"}}}));
    let twice = ground.cron_jobs[0].clone();
    ground.cron_jobs.push(twice);
    let problems = ground.look(20).problems;
    assert_eq!(
        problems,
        ["other: the annotation kgfleet/estimate is missing", "bench-a: another CronJob is the pool a"]
    );
}

impl Ground {
    /// A Job that somebody makes of a pool by hand.
    fn rounds_job(&self, pool: &str) -> Value {
        let cron_job = self.cron_jobs.iter().find(|value| value["metadata"]["labels"][POOL_LABEL] == pool);
        let mut job = cron_job.unwrap()["spec"]["jobTemplate"].clone();
        job["metadata"]["uid"] = json!("by-hand");
        job
    }
}

#[test]
fn a_further_server_comes_where_it_is_worth_it_and_a_measured_rate_counts_once_it_is_one() {
    let mut ground = Ground::new(8).pool("a", 1, 1);
    let annotations = &mut ground.cron_jobs[0]["metadata"]["annotations"];
    annotations["kgfleet/estimate"] =
        json!(annotations["kgfleet/estimate"].as_str().unwrap().replace(r#""servers":1"#, r#""servers":4"#));
    ground.need("a").dialogues = 40_000;
    assert_eq!(ground.round(0), ["create bench-a-1"]);
    assert_eq!(ground.round(10), ["create bench-a-2"], "eleven hours are worth a second one");
    ground.pod("bench-a-1", 0, "n1", 0);
    ground.works("bench-a-1-0", WorkerPhase::Serving, Some(600));
    // It is a hundred times as fast as the table says; believed after a while.
    *ground.need("a") = ModelNeed { rate: 100.0, workers: 1, ..ground.need("a").clone() };
    ground.round(610);
    let servers = ground.jobs.len();
    for now in 0..20 {
        ground.round(800 + 10 * now);
    }
    assert!(ground.jobs.len() <= servers + 1, "what is left takes seven minutes: {:?}", ground.jobs.keys());
}

#[test]
fn a_server_starts_when_its_weights_are_there() {
    let mut ground = Ground::new(8).pool("a", 1, 1).pool("b", 1, 1);
    for (place, index) in ["bench-weights-1f/0", "bench-weights-1f/1"].into_iter().enumerate() {
        ground.cron_jobs[place]["metadata"]["annotations"]["kgfleet/weights"] = json!(index);
    }
    let weights = json!({"metadata": {"name": "bench-weights-1f"}, "status": {"completedIndexes": "1"}});
    ground.jobs.insert("bench-weights-1f".to_owned(), weights);
    assert_eq!(ground.round(0), ["create bench-b-1"]);
    assert_eq!(ground.wait_of("a", 10), Some("weights"));
    ground.jobs.get_mut("bench-weights-1f").unwrap()["status"]["completedIndexes"] = json!("0,1");
    assert_eq!(ground.round(20), ["create bench-a-1"]);
}
