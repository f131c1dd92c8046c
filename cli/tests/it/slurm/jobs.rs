//! What Slurm does to jobs, one by one. Tests that wait for its clocks are run by `deploy/release-check slurm`.

use std::net::TcpListener;

use super::SlurmFleet;

#[test]
fn a_cancelled_task_stays_cancelled_and_ports_that_are_taken_stop_nobody() {
    let Some(fleet) = SlurmFleet::start() else { return };
    // Ports that follow from job ids meet those of others. Where they are taken already, that does as well.
    let _taken = [20_001, 20_002, 40_001, 40_002].map(|port| TcpListener::bind(("127.0.0.1", port)));
    // Both begin at the same moment.
    let loading = fleet.cluster.data.write("loading", "");
    let run = fleet.submit(60, "2", &[]);
    for task in [run.task(1), run.task(2)] {
        fleet.site.until("it runs", || fleet.log(&task).contains("vllm serve"));
    }
    std::fs::remove_file(loading).unwrap();
    fleet.until_at_work(&[run.task(1), run.task(2)]);
    fleet.site.call("scancel", &[&run.task(2)]);
    assert_eq!(fleet.site.state_after(&run.task(2)), "CANCELLED");
    fleet.ends(&run, 60);
    assert_eq!(fleet.site.of(&run.task(1), "JobState"), "COMPLETED");
    assert_eq!(fleet.site.of(&run.task(1), "Restarts"), "0");
    // Nothing is left for Prometheus to ask.
    let targets = fleet.cluster.data.path().join("jobs/targets").join(format!("slurm-{}.json", run.task(1)));
    assert!(!targets.exists() && targets.parent().unwrap().exists());
}

#[test]
#[ignore = "waits for Slurm's clocks: deploy/release-check slurm"]
fn a_server_of_two_nodes_is_one_job_that_ends_with_its_first_part() {
    let Some(fleet) = SlurmFleet::start() else { return };
    let run = fleet.submit(40, "1:16", &[]);
    fleet.ends(&run, 40);
    let task = run.task(1);
    assert_eq!(fleet.site.of(&task, "JobState"), "COMPLETED");
    assert_eq!(fleet.site.of(&task, "NumNodes"), "2");
    let log = fleet.log(&task);
    let parts = ["--node-rank 0 --master-addr n1\n", "--node-rank 1 --master-addr n1 --headless\n"];
    assert!(parts.iter().all(|part| log.contains(part)), "{log}");
}

#[test]
#[ignore = "waits for Slurm's clocks: deploy/release-check slurm"]
fn a_task_whose_time_is_up_comes_back_and_leaves_the_others_alone() {
    let Some(fleet) = SlurmFleet::start() else { return };
    let run = fleet.submit(400, "2", &[("GRACE", "5")]);
    let (first, last) = (run.task(1), run.task(2));
    fleet.until_at_work(&[first.clone(), last.clone()]);
    fleet.site.call("scontrol", &["update", &format!("JobId={last}"), "TimeLimit=1"]);
    fleet.site.until("the last task was requeued", || fleet.site.of(&last, "Restarts") == "1");
    assert_eq!(fleet.site.of(&first, "Restarts"), "0");
    assert_eq!(fleet.site.of(&first, "JobState"), "RUNNING");
    fleet.site.call("scontrol", &["update", &format!("JobId={last}"), "TimeLimit=60"]);
    fleet.ends(&run, 400);
    assert_eq!(fleet.site.of(&last, "JobState"), "COMPLETED");
}

#[test]
#[ignore = "waits for Slurm's clocks: deploy/release-check slurm"]
fn a_server_that_loads_is_not_taken_for_idle() {
    let Some(fleet) = SlurmFleet::start() else { return };
    let loading = fleet.cluster.data.write("loading", "");
    let run = fleet.submit(40, "1", &[("IDLE_MINUTES", "1"), ("IDLE_AFTER", "1")]);
    let task = run.task(1);
    // Longer than any patience with an idle server here.
    fleet.site.until("it has loaded for two minutes", || {
        let state = fleet.site.of(&task, "JobState");
        assert!(["PENDING", "RUNNING"].contains(&&*state), "{state}: {}", fleet.log(&task));
        fleet.site.of(&task, "RunTime").starts_with("00:02:")
    });
    std::fs::remove_file(loading).unwrap();
    fleet.ends(&run, 40);
}

#[test]
#[ignore = "waits for Slurm's clocks: deploy/release-check slurm"]
fn a_preempted_task_finishes_its_dialogues_and_comes_back() {
    let Some(fleet) = SlurmFleet::start() else { return };
    let run = fleet.submit(150, "1", &[("GRACE", "35")]);
    let task = run.task(1);
    fleet.until_at_work(std::slice::from_ref(&task));
    let urgent = ["--parsable", "-p", "urgent", "-N2", "--gpus-per-node=8", "--output=/dev/null", "--wrap"];
    let urgent = fleet.site.says("sbatch", &[&urgent[..], &["sleep 10"]].concat());
    fleet.site.until("the task was requeued", || fleet.site.of(&task, "Restarts") == "1");
    let log = fleet.log(&task);
    assert!(log.contains("draining: no new dialogues"), "{log}");
    assert!(!log.contains("dropping dialogues") && !log.contains("grace period is over"), "{log}");
    fleet.ends(&run, 150);
    assert_eq!(fleet.site.of(&task, "JobState"), "COMPLETED");
    assert_eq!(fleet.site.of(urgent.trim(), "JobState"), "COMPLETED");
}

#[test]
#[ignore = "waits for Slurm's clocks: deploy/release-check slurm"]
fn the_server_of_a_paused_run_gives_its_gpus_back_and_looks_again_later() {
    let Some(fleet) = SlurmFleet::start() else { return };
    let run = fleet.submit(150, "1", &[("IDLE_MINUTES", "1"), ("IDLE_AFTER", "1"), ("LATER_MINUTES", "1")]);
    let task = run.task(1);
    fleet.until_at_work(std::slice::from_ref(&task));
    fleet.cluster.kgfleet(&fleet.coordinator, &["pause", &run.run]).expect(0);
    assert_eq!(fleet.site.state_after(&task), "PENDING", "{}", fleet.log(&task));
    fleet.cluster.kgfleet(&fleet.coordinator, &["resume", &run.run]).expect(0);
    fleet.ends(&run, 150);
    assert_eq!(fleet.site.of(&task, "JobState"), "COMPLETED");
}
