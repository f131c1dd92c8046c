//! A benchmark from its submission to its results, while Slurm and people do what they do at night.

use super::SlurmFleet;

#[test]
#[ignore = "waits for Slurm's clocks: deploy/release-check slurm"]
fn a_benchmark_goes_on_by_itself_through_a_limit_a_preemption_a_cancelled_task_and_a_pause() {
    let Some(fleet) = SlurmFleet::start() else { return };
    let site = &fleet.site;
    let variables = [("GRACE", "5"), ("IDLE_AFTER", "1"), ("LATER_MINUTES", "1")];
    let run = fleet.submit(1_600, "3:4", &variables);
    let tasks: Vec<String> = (1..=3).map(|number| run.task(number)).collect();
    fleet.until_at_work(&tasks);

    site.call("scancel", &[&tasks[1]]);
    site.call("scontrol", &["update", &format!("JobId={}", tasks[2]), "TimeLimit=1"]);
    site.until("the task whose time is up was requeued", || site.of(&tasks[2], "Restarts") == "1");
    site.call("scontrol", &["update", &format!("JobId={}", tasks[2]), "TimeLimit=60"]);

    let urgent = ["-p", "urgent", "-N2", "--gpus-per-node=8", "--output=/dev/null", "--wrap", "sleep 10"];
    site.call("sbatch", &urgent);
    site.until("the first task was preempted", || site.of(&tasks[0], "Restarts") == "1");
    fleet.until_at_work(&tasks[..1]);

    fleet.cluster.kgfleet(&fleet.coordinator, &["pause", &run.run]).expect(0);
    site.until("no GPU is held", || site.says("squeue", &["-h", "-t", "R,CG"]).is_empty());
    fleet.cluster.kgfleet(&fleet.coordinator, &["resume", &run.run]).expect(0);

    fleet.ends(&run, 1_600);
    let states: Vec<String> = tasks.iter().map(|task| site.of(task, "JobState")).collect();
    assert_eq!(states, ["COMPLETED", "CANCELLED", "COMPLETED"]);
    let shown = fleet.cluster.data.kgfleet(&["table", &run.run]).expect(0);
    shown.prints(&["tiny"]);
}
