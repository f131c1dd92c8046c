//! A Slurm of this test's own: munge, a controller, and two nodes with eight GPUs each that are only said to be there, all on
//! the loopback interface and in a temporary folder.

use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::geteuid;
use tempfile::TempDir;

use crate::harness::process::{finish, shield};
use crate::harness::{Finished, Running, free_port, skip, skip_where_nothing_helps};

/// How long Slurm may take for anything. It looks at time limits and preemptions every half minute.
const SLURM_MAX: Duration = Duration::from_secs(400);

/// Between two looks at it.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// How long jobs may take to end when the test is over.
const CLEAN_MAX: Duration = Duration::from_secs(30);

/// A Slurm that runs as long as this.
pub struct SlurmSite {
    folder: TempDir,
    /// Ended in this order: munge is needed until the end.
    _daemons: Vec<Running>,
}

impl SlurmSite {
    /// Starts it; `None`, said aloud, where that cannot be.
    pub fn start() -> Option<Self> {
        if !geteuid().is_root() {
            skip_where_nothing_helps("a Slurm of one's own is started by root only");
            return None;
        }
        let is_there = |program: &&str| Command::new(program).arg("--version").output().is_ok();
        if !["munged", "slurmctld", "slurmd", "sbatch"].iter().all(is_there) {
            skip("Slurm is missing: tests/setup slurm-wlm munge installs it");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let host = host.split('.').next().unwrap();
        let at = folder.path().display();
        let [controller, first, second] = [free_port(), free_port(), free_port()];
        let node = |name: &str, port: u16| {
            format!(
                "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=64 RealMemory=100000 Gres=gpu:8\n"
            )
        };
        let configuration = format!(
            "ClusterName=test\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={controller}\nSlurmUser=root\nSlurmdUser=root\n\
             AuthType=auth/munge\nCredType=cred/munge\nAuthInfo=socket={at}/munge.socket,cred_expire=2\n\
             StateSaveLocation={at}/state\nSlurmdSpoolDir={at}/spool-%n\nSlurmctldPidFile={at}/controller.pid\n\
             SlurmdPidFile={at}/%n.pid\nSlurmctldLogFile={at}/controller.log\nSlurmdLogFile={at}/%n.log\n\
             ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nJobAcctGatherType=jobacct_gather/none\n\
             AccountingStorageType=accounting_storage/none\nSwitchType=switch/none\nMpiDefault=none\n\
             SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\nSchedulerType=sched/builtin\n\
             SchedulerParameters=sched_interval=2\nPreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\nGresTypes=gpu\n\
             SlurmdParameters=config_overrides\nReturnToService=2\nKillWait=5\nMinJobAge=7200\n{}{}\
             PartitionName=gpu Nodes=n1,n2 Default=YES PriorityTier=1 GraceTime=40\n\
             PartitionName=urgent Nodes=n1,n2 PriorityTier=10 PreemptMode=OFF\n",
            node("n1", first),
            node("n2", second)
        );
        let write = |name: &str, content: &str| std::fs::write(folder.path().join(name), content).unwrap();
        write("slurm.conf", &configuration);
        write("gres.conf", &format!("AutoDetect=off\nNodeName=n[1-2] Name=gpu File={at}/gpu[0-7]\n"));
        (0..8).for_each(|gpu| write(&format!("gpu{gpu}"), ""));
        std::fs::create_dir(folder.path().join("state")).unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        finish(Command::new("mungekey").args(["--create", "--keyfile", &path("key")])).expect(0);
        let files = [("socket", "munge.socket"), ("key-file", "key"), ("pid-file", "munge.pid")];
        let files = files.into_iter().chain([("log-file", "munge.log"), ("seed-file", "munge.seed")]);
        let files: Vec<String> = files.map(|(option, file)| format!("--{option}={}", path(file))).collect();
        let mut site = Self { folder, _daemons: Vec::new() };
        site.daemon(site.command("munged").args(["--foreground", "--force"]).args(files), "Created socket");
        site.daemon(site.command("slurmctld").arg("-D"), "Running as primary controller");
        for node in ["n1", "n2"] {
            site.daemon(site.command("slurmd").args(["-D", "-N", node]), "slurmd started");
        }
        site.until("both nodes are idle", || {
            site.says("sinfo", &["-h", "-p", "gpu", "-o", "%t %D"]).trim() == "idle 2"
        });
        Some(site)
    }

    fn daemon(&mut self, command: &mut Command, says: &str) {
        let mut daemon = Running::start(command);
        daemon.until_it_says(says);
        daemon.go_on_listening();
        self._daemons.insert(0, daemon);
    }

    /// A command of this Slurm.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        shield(&mut command);
        command.env("SLURM_CONF", self.folder.path().join("slurm.conf"));
        command
    }

    /// Runs such a command to its end.
    pub fn call(&self, program: &str, arguments: &[&str]) -> Finished {
        finish(self.command(program).args(arguments)).expect(0)
    }

    /// What it prints.
    pub fn says(&self, program: &str, arguments: &[&str]) -> String {
        self.call(program, arguments).stdout
    }

    /// What Slurm knows of a job under a key, such as `JobState`.
    pub fn of(&self, job: &str, key: &str) -> String {
        let known = self.says("scontrol", &["--oneliner", "show", "job", job]);
        let value = known.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        value.unwrap_or_else(|| panic!("no {key} in {known}")).to_owned()
    }

    /// The state of a job, once it neither runs nor ends any more.
    pub fn state_after(&self, job: &str) -> String {
        self.until("a job has ended", || !["RUNNING", "COMPLETING"].contains(&&*self.of(job, "JobState")));
        self.of(job, "JobState")
    }

    /// Looks again and again until something happens.
    pub fn until(&self, what: &str, mut happened: impl FnMut() -> bool) {
        let begin = Instant::now();
        while !happened() {
            assert!(
                begin.elapsed() < SLURM_MAX,
                "waited in vain until {what}:\n{}",
                self.says("squeue", &["-a", "-t", "all"])
            );
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

impl Drop for SlurmSite {
    fn drop(&mut self) {
        // Jobs are children of no daemon, and would outlive them.
        let quietly = |program: &str, arguments: &[&str]| self.command(program).args(arguments).output();
        let _ = quietly("scancel", &["--full", "--user=root"]);
        let begin = Instant::now();
        while begin.elapsed() < CLEAN_MAX
            && quietly("squeue", &["-h"]).is_ok_and(|left| !left.stdout.is_empty())
        {
            std::thread::sleep(LOOK_EVERY);
        }
    }
}
