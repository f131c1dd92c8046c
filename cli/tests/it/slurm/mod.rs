//! The scripts of `deploy/slurm` on a real Slurm ([`site`]): what it does to jobs, one by one ([`jobs`]), and a benchmark from its
//! submission to its results with all of that in it ([`unattended`]). A simulator behind a script stands in for vLLM.

mod jobs;
mod site;
mod unattended;

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use domain::control::{RunPhase, WorkerView};

use self::site::SlurmSite;
use crate::harness::cluster::Coordinator;
use crate::harness::process::{finish, shield};
use crate::harness::{Cluster, NT_TASK};

/// A folder of scripts.
fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/slurm")
}

#[test]
fn a_submission_prints_the_jobs_of_its_models_and_refuses_what_cannot_be() {
    let submit = |arguments: &[&str]| {
        let mut command = Command::new(scripts().join("submit"));
        shield(&mut command);
        finish(
            command.args(arguments).env("KGFLEET_POOL_TOKEN_FILE", "pool.token").env("SBATCH_ARGS", "-p gpu"),
        )
    };
    submit(&["bench.toml"]).expect(2).says(&["deploy/slurm/submit [--dry-run] BENCHMARK MODEL"]);
    submit(&["bench.toml", "org/small:0"]).expect(2).says(&["org/small:0", "from 1"]);
    submit(&["bench.toml", "org/large:1:12"]).expect(2).says(&["neither at most the 8 of a node"]);
    let printed =
        submit(&["--dry-run", "bench.toml", "org/small:4", "org/large:1:8", "org/huge::16"]).expect(0);
    let script = scripts().join("worker.sbatch");
    let job = |model: &str, arguments: &str, of: &str| {
        let line = format!(
            "env MODEL={model} VLLM_ARGS={arguments} KGFLEET_TOKEN_FILE=pool.token sbatch {of} -p gpu"
        );
        format!("{line} {}\n", script.display())
    };
    let expected = [
        "kgfleet submit bench.toml\n".to_owned(),
        job("org/small", "", "--array=1-4 --nodes=1 --gpus-per-node=1 --cpus-per-task=4"),
        job(
            "org/large",
            "--tensor-parallel-size 8",
            "--array=1-1 --nodes=1 --gpus-per-node=8 --cpus-per-task=18",
        ),
        job(
            "org/huge",
            "--tensor-parallel-size 8 --pipeline-parallel-size 2",
            "--array=1-1 --nodes=2 --gpus-per-node=8 --cpus-per-task=18",
        ),
    ];
    assert_eq!(printed.stdout.replace('\'', ""), expected.concat());
}

const MODEL: &str = "tiny";

/// A coordinator beside a Slurm.
struct SlurmFleet {
    // Jobs end before the coordinator does.
    site: SlurmSite,
    coordinator: Coordinator,
    cluster: Cluster,
}

/// What was submitted.
struct SlurmRun {
    run: String,
    /// The job of the array.
    job: String,
}

impl SlurmRun {
    fn task(&self, number: u32) -> String {
        format!("{}_{number}", self.job)
    }
}

impl SlurmFleet {
    fn start() -> Option<Self> {
        // Slurm, a simulator and a worker for each task share this machine: leases are not to expire because of that.
        let cluster = Cluster::with_lease("10")?;
        let site = SlurmSite::start()?;
        let coordinator = cluster.coordinator();
        // `serve MODEL … --port PORT …`, which loads as long as there is a file `loading`.
        let (kgfleet, at) = (env!("CARGO_BIN_EXE_kgfleet"), cluster.data.path().display());
        let script = format!(
            "#!/bin/bash\necho \"vllm $*\"\nmodel=$2 headless=''\nwhile [ $# -gt 0 ]; do\n  case $1 in --port) port=$2 ;; --headless) \
             headless=1 ;; esac\n  shift\ndone\nwhile [ -e {at}/loading ]; do sleep 0.1; done\n[ -z \"$headless\" ] || exec sleep \
             infinity\nexec {kgfleet} simulate --model \"$model\" --profile h100-70b-tp8 --listen 127.0.0.1:$port\n"
        );
        let vllm = cluster.data.write("vllm", script);
        std::fs::set_permissions(vllm, std::fs::Permissions::from_mode(0o755)).unwrap();
        Some(Self { site, coordinator, cluster })
    }

    /// Runs `deploy/slurm/submit` for these servers of the one model, such as `2` or `1:16`.
    fn submit(&self, iterations: u32, servers: &str, variables: &[(&str, &str)]) -> SlurmRun {
        let data = &self.cluster.data;
        let configuration = format!(
            "name = 's'\niterations = {iterations}\ntasks = ['{NT_TASK}']\n[[models]]\nlabel = '{MODEL}'\n\
             connector = 'openai-compatible'\nstream = false\n"
        );
        let configuration = data.write("s.toml", configuration);
        let mut command = self.site.command(scripts().join("submit"));
        command.arg(configuration).arg(format!("{MODEL}:{servers}"));
        command.env("KGFLEET", env!("CARGO_BIN_EXE_kgfleet")).env("VLLM", data.path().join("vllm"));
        command
            .env("KGFLEET_FLEET", self.coordinator.url())
            .env("KGFLEET_WORK", data.path().join("jobs"))
            .env("WORKER_ARGS", "--concurrency 4 --evaluators 1");
        command.env("SBATCH_ARGS", format!("--output={}/%A_%a.log", data.path().display()));
        command.envs(variables.iter().copied());
        let submitted = finish(&mut command).expect(0);
        let mut lines = submitted.stdout.lines();
        let run = lines.next().unwrap().to_owned();
        let job = lines.find_map(|line| line.strip_prefix("Submitted batch job ")).unwrap().to_owned();
        SlurmRun { run, job }
    }

    /// Waits until the workers of these tasks have dialogues in flight.
    fn until_at_work(&self, tasks: &[String]) {
        self.site.until(&format!("{tasks:?} are at work"), || {
            let workers = self.cluster.kgfleet(&self.coordinator, &["fleet", "workers", "--json"]).expect(0);
            let workers: Vec<WorkerView> =
                workers.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            let is_busy = |worker: &&WorkerView| worker.status.in_flight > 0;
            let busy: Vec<&str> =
                workers.iter().filter(is_busy).map(|worker| worker.worker.as_str()).collect();
            let busy = |task: &String| busy.contains(&&*format!("slurm-{task}"));
            tasks.iter().all(busy)
        });
    }

    /// What a task has written so far, over all its starts.
    fn log(&self, task: &str) -> String {
        std::fs::read_to_string(self.cluster.data.path().join(format!("{task}.log"))).unwrap_or_default()
    }

    /// Waits until a run is finished and all its jobs are over; nothing of it may be missing or was asked for nothing.
    fn ends(&self, run: &SlurmRun, dialogues: u64) {
        let scored = || self.cluster.status(&self.coordinator, &run.run);
        self.site.until("the run is finished", || scored().phase == RunPhase::Finished);
        assert_eq!((scored().scored, scored().failed), (dialogues, 0));
        self.site.until("its jobs are over", || self.site.says("squeue", &["-h", "-j", &run.job]).is_empty());
        self.cluster.data.kgfleet(&["verify", &run.run]).expect(0);
    }
}
