//! The other launchers: the compose file's command lines, and the Slurm job with stand-ins for Slurm and vLLM.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use super::manifests::texts;
use crate::harness::process::{finish, shield};
use crate::harness::{Cluster, Data, NT_TASK, Running};

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy")
}

/// A program of this test's own.
fn program(data: &Data, name: &str, script: &str) -> PathBuf {
    let folder = data.path().join("bin");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn the_binary_takes_every_command_line_of_the_compose_file() {
    let text = std::fs::read_to_string(deploy().join("compose/compose.yaml")).unwrap();
    let compose: Value = serde_saphyr::from_str(&text).unwrap();
    let mut taken = 0;
    for (name, service) in compose["services"].as_object().unwrap() {
        if !service["image"].as_str().unwrap().contains("KGFLEET_IMAGE") {
            continue;
        }
        let line = [vec!["kgfleet".to_owned()], texts(&service["command"])].concat();
        if let Err(error) = cli::command_line().try_get_matches_from(&line) {
            panic!("{name}: {}: {error}", line.join(" "));
        }
        taken += 1;
    }
    assert_eq!(taken, 6);
}

#[test]
fn a_slurm_job_serves_works_and_drains_when_its_time_is_up() {
    let Some(cluster) = Cluster::start() else { return };
    let coordinator = cluster.coordinator();
    let data = &cluster.data;
    let kgfleet = env!("CARGO_BIN_EXE_kgfleet");
    // vllm serve MODEL --host HOST --port PORT …
    let vllm = program(data, "vllm", &format!("exec {kgfleet} simulate --model \"$2\" --listen \"$4:$6\""));
    let requeued = data.path().join("requeued");
    program(data, "scontrol", &format!("echo \"$@\" > {}", requeued.display()));
    let configuration = format!(
        "name = 's'\niterations = 5\ntasks = ['{NT_TASK}']\n[[models]]\nlabel = 'tiny'\nconnector = 'openai-compatible'\n\
         stream = false\n"
    );
    let configuration = data.write("s.toml", configuration);
    let submitted = cluster.kgfleet(&coordinator, &["submit", configuration.to_str().unwrap()]).expect(0);
    let port = crate::harness::free_port() % 20_000 + 20_000;
    let path = format!("{}:{}", data.path().join("bin").display(), std::env::var("PATH").unwrap());
    let mut command = Command::new(deploy().join("slurm/worker.sbatch"));
    shield(&mut command);
    command
        .env("PATH", path)
        .env("KGFLEET", kgfleet)
        .env("VLLM", vllm)
        .env("MODEL", "tiny")
        .env("GRACE", "20");
    command.env("KGFLEET_COORDINATOR", coordinator.url()).env("KGFLEET_WORK", data.path().join("slurm"));
    command.env("SLURM_JOB_ID", "77").env("SLURM_ARRAY_JOB_ID", "70").env("SLURM_ARRAY_TASK_ID", "3");
    command.env("PORT", port.to_string());
    let job = Running::start(&mut command);
    let (view, finished) = cluster.watch(&coordinator, submitted.stdout.trim());
    finished.expect(0);
    assert_eq!((view.scored, view.failed), (5, 0));
    cluster.kgfleet(&coordinator, &["workers"]).expect(0).prints(&["slurm-70_3"]);
    job.signal(Signal::TERM);
    job.finish().expect(0).says(&["draining", "worker slurm-70_3 ended: 5 dialogues, 0 undelivered records"]);
    assert_eq!(std::fs::read_to_string(requeued).unwrap(), "requeue 77\n");
}

#[test]
fn a_slurm_submission_starts_an_array_for_each_model() {
    let data = Data::new();
    let said = data.path().join("said");
    let keep = |what: &str| format!("echo {what} >> {}", said.display());
    program(&data, "sbatch", &keep("\"$MODEL\" \"$VLLM_ARGS\" \"$@\""));
    let kgfleet = program(&data, "kgfleet", &keep("\"$@\""));
    let path = format!("{}:{}", data.path().join("bin").display(), std::env::var("PATH").unwrap());
    let submit = |arguments: &[&str]| {
        let mut command = Command::new(deploy().join("slurm/submit"));
        finish(command.args(arguments).env("PATH", &path).env("KGFLEET", &kgfleet))
    };
    submit(&["bench.toml"]).expect(2).says(&["deploy/slurm/submit BENCHMARK MODEL"]);
    submit(&["bench.toml", "org/small:4", "org/large:1:8"]).expect(0);
    let script = deploy().join("slurm/worker.sbatch");
    let script = script.display();
    let said = std::fs::read_to_string(said).unwrap();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "submit bench.toml");
    assert_eq!(lines[1], format!("org/small  --array=1-4 --gpus=1 {script}"));
    assert_eq!(lines[2], format!("org/large --tensor-parallel-size 8  --array=1-1 --gpus=8 {script}"));
}
