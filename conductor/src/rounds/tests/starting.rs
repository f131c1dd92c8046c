//! Servers whose pods do not start.

use super::*;

const JOB: &str = "bench-a-1";
const POD: &str = "bench-a-1-0";

/// A pool whose server was made at second 0, and has a pod on this node that has not started.
fn with_pod_on(node: &str) -> Ground {
    let mut ground = Ground::new(8).pool("a", 1, 1);
    assert_eq!(ground.round(0), [format!("create {JOB}")]);
    ground.jobs.get_mut(JOB).unwrap()["status"] = json!({"startTime": text(0)});
    ground.pod(JOB, 0, node, 0);
    ground.pods.get_mut(POD).unwrap()["metadata"]["uid"] = json!("pod-1");
    status(&mut ground)["phase"] = json!("Pending");
    ground
}

fn status(ground: &mut Ground) -> &mut Value {
    &mut ground.pods.get_mut(POD).unwrap()["status"]
}

fn waits(ground: &mut Ground, reason: &str, message: &str) {
    status(ground)["initContainerStatuses"] =
        json!([{"name": "vllm", "state": {"waiting": {"reason": reason, "message": message}}}]);
}

fn warn(ground: &mut Ground, uid: &str, seconds: i64, reason: &str, message: &str) {
    ground.events.push(json!({
        "involvedObject": {"uid": uid}, "reason": reason, "message": message, "type": "Warning",
        "lastTimestamp": text(seconds), "eventTime": null, "series": null,
    }));
}

fn unschedulable(ground: &mut Ground, message: &str) {
    status(ground)["conditions"] =
        json!([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}]);
}

/// What is told of the pool: the word, and the words.
fn told(ground: &mut Ground, seconds: i64) -> Option<(&'static str, String)> {
    let outcome = ground.look(seconds);
    let message = outcome.rows[0].not_starting.clone();
    assert_eq!(message.is_some(), outcome.not_starting.contains_key("a"));
    message.map(|message| (outcome.not_starting["a"].as_str(), message))
}

/// What is done to a cluster.
type Change = fn(&mut Ground);

/// What keeps a pod, the node it is on, and what is told of it.
const KEPT: [(&str, &str, Change, &str); 7] = [
    (
        "unscheduled",
        "",
        |ground| unschedulable(ground, "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."),
        "Unschedulable: 0/2 nodes are available: 2 Insufficient nvidia.com/gpu.",
    ),
    (
        "volume",
        "",
        |ground| unschedulable(ground, "pod has unbound immediate PersistentVolumeClaims"),
        "Unschedulable: pod has unbound immediate PersistentVolumeClaims",
    ),
    (
        "image",
        "n1",
        |ground| waits(ground, "ImagePullBackOff", "Back-off pulling image \"no/such:1\""),
        "ImagePullBackOff: Back-off pulling image \"no/such:1\"",
    ),
    (
        "other",
        "n1",
        |ground| waits(ground, "CreateContainerConfigError", "secret \"huggingface\" not found"),
        "CreateContainerConfigError: secret \"huggingface\" not found",
    ),
    (
        "volume",
        "n1",
        |ground| {
            waits(ground, "PodInitializing", "");
            warn(ground, "pod-1", 15, "FailedMount", "references non-existent secret key: token");
        },
        "FailedMount: references non-existent secret key: token",
    ),
    (
        "crashes",
        "n1",
        |ground| {
            waits(ground, "CrashLoopBackOff", "back-off 20s restarting failed container");
            let end = json!({"terminated": {"exitCode": 1, "message": "INFO\nValueError: no such model\n"}});
            status(ground)["initContainerStatuses"][0]["lastState"] = end;
            status(ground)["phase"] = json!("Running");
        },
        "CrashLoopBackOff: back-off 20s restarting failed container; vllm: ValueError: no such model",
    ),
    (
        "quota",
        "",
        |ground| {
            ground.pods.clear();
            warn(ground, "job-1", 15, "FailedCreate", "pods is forbidden: exceeded quota: gpus");
        },
        "FailedCreate: pods is forbidden: exceeded quota: gpus",
    ),
];

#[test]
fn what_keeps_a_server_from_starting_is_told_within_half_a_minute_and_not_at_once() {
    for (word, node, keeps, message) in KEPT {
        let mut ground = with_pod_on(node);
        // Other objects have events as well.
        warn(&mut ground, "pod-of-another", 16, "FailedMount", "elsewhere");
        keeps(&mut ground);
        assert_eq!(told(&mut ground, 20), None, "{word}");
        assert_eq!(told(&mut ground, 30), Some((word, message.to_owned())));
        let words = ground.look(30).rows[0].words();
        assert!(words.ends_with(&format!("; does not start: {message}")), "{words}");
        // It comes after all.
        if !ground.pods.is_empty() {
            status(&mut ground)["conditions"] = json!([condition("PodScheduled", 20, "", "")]);
            ground.pods.get_mut(POD).unwrap()["spec"]["nodeName"] = json!("n1");
            status(&mut ground)["phase"] = json!("Running");
            ground.works(POD, WorkerPhase::Serving, Some(30));
            assert_eq!(told(&mut ground, 60), None, "{word}");
        }
    }
}

#[test]
fn events_of_what_is_over_say_nothing() {
    let mut ground = with_pod_on("n1");
    warn(&mut ground, "pod-1", 10, "FailedMount", "the Secret is not there yet");
    assert!(told(&mut ground, 30).is_some());
    assert_eq!(told(&mut ground, 700), None, "it was not repeated");
    warn(&mut ground, "pod-1", 690, "FailedMount", "and again");
    assert!(told(&mut ground, 700).is_some());
    let conditions = status(&mut ground)["conditions"].as_array_mut().unwrap();
    conditions.push(condition("PodReadyToStartContainers", 695, "", ""));
    assert_eq!(told(&mut ground, 700), None, "its volumes are mounted");
    // A Job that something else has to admit first waits its turn, and its creation is none of its pods.
    let mut ground = with_pod_on("");
    ground.pods.clear();
    warn(&mut ground, "job-1", 10, "FailedCreate", "the webhook was away");
    assert!(told(&mut ground, 30).is_some());
    ground.jobs.get_mut(JOB).unwrap()["spec"]["suspend"] = json!(true);
    assert_eq!(told(&mut ground, 30), None);
}

#[test]
fn a_server_that_never_started_is_made_anew_when_its_template_changes_or_its_pool_is_retried() {
    type Mends = fn(&mut Ground);
    let changed: Mends = |ground| {
        ground.cron_jobs[0]["spec"]["jobTemplate"]["spec"]["backoffLimit"] = json!(3);
    };
    let retried: Mends = |ground| {
        ground.cron_jobs[0]["metadata"]["annotations"]["kgfleet/retry"] = json!(text(95));
    };
    for mends in [changed, retried] {
        let mut ground = with_pod_on("n1");
        waits(&mut ground, "ErrImagePull", "no such image");
        assert_eq!(ground.round(90), NOTHING);
        mends(&mut ground);
        assert_eq!(ground.round(100), ["delete bench-a-1", "create bench-a-2"]);
        ground.pods.clear();
        assert_eq!(ground.round(110), NOTHING, "the new one is as its template");
        assert_eq!(ground.look(110).rows[0].failures, 0);
        // What it took on its node is not forgotten.
        assert!((ground.look(110).gpu_hours - 100.0 / 3600.0).abs() < 1e-9);

        // One that has started goes on as it was made, and so does one that people made.
        let mut ground = with_pod_on("n1");
        status(&mut ground)["phase"] = json!("Running");
        mends(&mut ground);
        assert_eq!(ground.round(100), NOTHING);
        let mut ground = with_pod_on("n1");
        ground.jobs.get_mut(JOB).unwrap()["metadata"]["annotations"] = json!({});
        mends(&mut ground);
        assert_eq!(ground.round(100), NOTHING);
    }
}

#[test]
fn gpu_hours_count_from_a_node_on() {
    let mut ground = with_pod_on("");
    unschedulable(&mut ground, "0/2 nodes are available");
    assert_eq!(ground.look(7_200).gpu_hours, 0.0);
    ground.pod(JOB, 0, "n1", 7_200);
    assert_eq!(ground.look(10_800).gpu_hours, 1.0);
    // Without a pod, because of a quota.
    let mut ground = with_pod_on("");
    ground.pods.clear();
    assert_eq!(ground.look(7_200).gpu_hours, 0.0);
    ground.ends(JOB, 7_200, "Failed", "DeadlineExceeded", "Job was active longer than specified deadline");
    assert_eq!(ground.look(7_210).gpu_hours, 0.0);
    // Of one that ended before this conductor, and whose pods are gone, only its times are known.
    ground.restart();
    assert_eq!(ground.look(7_220).gpu_hours, 2.0);
}

#[test]
fn a_pod_that_does_not_start_gives_its_gpus_back_after_a_quarter_of_an_hour() {
    let mut ground = with_pod_on("n1");
    waits(&mut ground, "CreateContainerConfigError", "secret \"huggingface\" not found");
    assert_eq!(ground.round(15 * MINUTE - 1), NOTHING);
    assert_eq!(ground.round(15 * MINUTE), ["delete bench-a-1"]);
    let row = ground.look(15 * MINUTE).rows.remove(0);
    assert_eq!(
        row.last_failure.as_deref(),
        Some("CreateContainerConfigError: secret \"huggingface\" not found")
    );
    // One that waits for its node holds none.
    let mut ground = with_pod_on("");
    unschedulable(&mut ground, "0/2 nodes are available");
    assert_eq!(ground.round(100 * MINUTE), NOTHING);
}

#[test]
fn a_job_that_kubernetes_does_not_take_is_told_and_forgotten_when_it_does() {
    let mut ground = Ground::new(8).pool("a", 1, 1);
    let why = "cannot make the Job bench-a-1: 403 Forbidden: exceeded quota: jobs";
    ground.rounds.note_refused(BTreeMap::from([(JOB.to_owned(), why.to_owned())]));
    assert_eq!(told(&mut ground, 10), Some(("quota", format!("no Job can be made: {why}"))));
    ground.rounds.note_refused(BTreeMap::new());
    assert_eq!(told(&mut ground, 20), None);
}
