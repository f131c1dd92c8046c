//! Why servers ended whose work was not done, in a word.

use super::*;

const JOB: &str = "bench-a-1";
const POD: &str = "bench-a-1-0";

/// A way for a server to end.
type Ends = fn(&mut Ground);

/// The status of its pod.
fn status(ground: &mut Ground) -> &mut Value {
    &mut ground.pods.get_mut(POD).unwrap()["status"]
}

fn fails(ground: &mut Ground, reason: &str, message: &str) {
    ground.ends(JOB, 60, "Failed", reason, message);
}

fn has_served(ground: &mut Ground) {
    ground.works(POD, WorkerPhase::Serving, Some(30));
    ground.look(40);
    ground.workers.clear();
}

/// A container that was started so often in its place, and ended for this reason the last time.
fn restarted(times: u32, reason: &str) -> Value {
    let end = json!({"terminated": {"exitCode": 137, "reason": reason}});
    json!([{"name": "vllm", "restartCount": times, "lastState": end}])
}

const WAYS: [(&str, Ends); 12] = [
    ("unusable", |ground| ground.fails_with(JOB, 60, 2)),
    ("volume", |ground| {
        fails(ground, "BackoffLimitExceeded", "Job has reached the specified backoff limit");
        status(ground)["reason"] = json!("Evicted");
    }),
    ("not-loaded", |ground| ground.fails_with(JOB, 60, 3)),
    ("silent", |ground| {
        has_served(ground);
        ground.fails_with(JOB, 60, 3);
    }),
    ("deadline", |ground| fails(ground, "DeadlineExceeded", "Job was active longer than specified deadline")),
    ("out-of-memory", |ground| {
        status(ground)["initContainerStatuses"] = restarted(1, "OOMKilled");
        ground.fails_with(JOB, 60, 3);
    }),
    ("out-of-memory", |ground| status(ground)["initContainerStatuses"] = restarted(6, "OOMKilled")),
    ("crashes", |ground| status(ground)["initContainerStatuses"] = restarted(6, "Error")),
    ("image", |ground| {
        let waiting = json!({"waiting": {"reason": "ErrImagePull", "message": "no such image"}});
        status(ground)["phase"] = json!("Pending");
        status(ground)["initContainerStatuses"] = json!([{"name": "vllm", "state": waiting}]);
    }),
    ("evicted", |ground| {
        fails(ground, "PodFailurePolicy", "Pod has condition DisruptionTarget matching FailJob rule");
    }),
    ("node-lost", |ground| {
        ground.pods.get_mut(POD).unwrap()["metadata"]["deletionTimestamp"] = json!(text(60));
    }),
    ("other", |ground| fails(ground, "OfTheFuture", "nobody has heard of it")),
];

#[test]
fn servers_are_counted_by_the_reason_of_their_end_also_by_another_conductor() {
    for (word, ends) in WAYS {
        let mut ground = Ground::new(8).pool("a", 1, 1);
        ground.round(0);
        ground.pod(JOB, 0, "n1", 0);
        ends(&mut ground);
        let told = |outcome: &RoundOutcome| -> Vec<(String, &'static str, u32)> {
            let each = |((pool, fault), servers): (&(String, ServerFault), &u32)| {
                (pool.clone(), fault.as_str(), *servers)
            };
            outcome.faults.iter().map(each).collect()
        };
        let once = [("a".to_owned(), word, 1)];
        let outcome = ground.look(20 * MINUTE);
        assert_eq!(told(&outcome), once);
        ground.store(outcome.ended);
        ground.restart();
        ground.jobs.clear();
        ground.pods.clear();
        assert_eq!(told(&ground.look(21 * MINUTE)), once);
        // What failed before somebody mended it does not count.
        ground.cron_jobs[0]["metadata"]["annotations"]["kgfleet/retry"] = json!(text(22 * MINUTE));
        assert!(told(&ground.look(23 * MINUTE)).is_empty());
    }
}

#[test]
fn a_server_that_did_its_work_has_no_fault() {
    let mut ground = Ground::new(8).pool("a", 1, 1);
    ground.round(0);
    ground.pod(JOB, 0, "n1", 0);
    ground.ends(JOB, 60, "Complete", "", "");
    let outcome = ground.look(70);
    assert_eq!((outcome.faults.len(), outcome.ended[0].fault), (0, None));
}
