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
