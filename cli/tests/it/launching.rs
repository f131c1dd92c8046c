//! `kgfleet launch`, with a stand-in for helm that writes down its arguments.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::harness::process::finish;
use crate::harness::{Cluster, Data, NT_TASK, Server, free_port};

const UNSATISFIED: i32 = 1;
const USAGE: i32 = 2;
const INFRASTRUCTURE: i32 = 3;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A program in place of helm: keeps every command line, and a copy of the first values file.
fn helm(data: &Data) -> String {
    let folder = data.path().display();
    let script = format!(
        "#!/bin/sh\nn=$(ls {folder}/helm-*.args 2>/dev/null | wc -l)\nprintf '%s\\n' \"$@\" > {folder}/helm-$n.args\n\
         while [ $# -gt 0 ]; do\n  if [ \"$1\" = --values ]; then cp \"$2\" {folder}/helm-$n.yaml; break; fi\n  shift\ndone\n\
         echo called\n"
    );
    let path = data.write("helm", script);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

fn calls(data: &Data) -> Vec<String> {
    let path = |number: usize| data.path().join(format!("helm-{number}.args"));
    (0..).map_while(|number| std::fs::read_to_string(path(number)).ok()).collect()
}

/// The names of the pools in the values of a call.
fn pools(data: &Data, call: usize) -> Vec<String> {
    let text = std::fs::read_to_string(data.path().join(format!("helm-{call}.yaml"))).unwrap();
    let values: Value = serde_saphyr::from_str(&text).unwrap();
    let pools = values["servingEngineSpec"]["modelSpec"].as_array().unwrap();
    pools.iter().map(|pool| pool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_papers_matrix_is_planned_and_its_values_render_and_validate() {
    let data = Data::new();
    let paper = repository().join("task-data/configurations/paper.toml");
    let (paper, file) = (paper.to_str().unwrap(), data.path().join("values.yaml"));
    let values = file.to_str().unwrap();
    let keda = ["--gpus", "16", "--prometheus", "http://prometheus:9090", "--values", values];
    let planned = data.kgfleet(&[&["launch", paper][..], &keda].concat()).expect(0);
    planned.prints(&[
        "31 models on GPUs",
        "16 at once",
        "DeepSeek-R1",
        "hosted, without GPUs: ChatGPT 3.5 turbo",
    ]);
    let plan = data.kgfleet(&["launch", paper, "--gpus", "8", "--json"]).expect(UNSATISFIED).json();
    assert_eq!(plan["refused"].as_array().unwrap().len(), 3, "those on two nodes");
    assert_eq!(plan["refused"][0]["reason"], "needs 16 GPUs (H100 80 GB), and there are 8 (--gpus)");

    let python = repository().join("target/chart-venv/bin/python");
    if !python.exists() {
        crate::harness::skip("rendering the chart needs Helm's library: tests/setup installs it");
        return;
    }
    let check = repository().join("helm/kgfleet/tests/check.py");
    finish(Command::new(python).arg(check).args(["values", values])).expect(0).prints(&[" 0 failures"]);
}

#[test]
fn waves_are_installed_one_after_the_other() {
    let Some(cluster) = Cluster::start() else { return };
    let server = Server::start();
    let coordinator = cluster.coordinator();
    let data = &cluster.data;
    let _worker = cluster.worker("worker", &coordinator, &server);
    let model = |label: &str, model: &str| {
        format!(
            "[[models]]\nlabel = '{label}'\nmodel = '{model}'\nconnector = 'openai-compatible'\nstream = false\n"
        )
    };
    let two = model("first", "sim") + &model("second", "sim-other");
    let config =
        data.write("two.toml", format!("name = 'two'\niterations = 4\ntasks = ['{NT_TASK}']\n{two}"));
    let size = |name: &str, speed: u32| format!("[models.{name}]\ngpus = 1\ntokens_per_second = {speed}\n");
    let table = "[gpu]\nname = 'T'\nresource = 'nvidia.com/gpu'\nper_node = 1\n[dialogue]\ntokens = 10\n";
    let table = data.write("table.toml", table.to_owned() + &size("sim", 1) + &size("sim-other", 2));
    let (config, table, helm) = (config.to_str().unwrap(), table.to_str().unwrap(), helm(data));
    let launch = ["launch", config, "--table", table, "--apply", "--helm", &helm, "--base", "mine.yaml"];
    cluster.kgfleet(&coordinator, &launch).expect(0).says(&["wave 1 of 2", "wave 2 of 2", "is finished"]);
    let calls = calls(data);
    assert_eq!(calls.len(), 2);
    assert!(calls[0].starts_with("upgrade\n--install\nkgfleet\nhelm/kgfleet\n"), "{}", calls[0]);
    assert!(calls[0].contains("\n--values\nmine.yaml"), "one's own values come last: {}", calls[0]);
    assert_eq!((pools(data, 0), pools(data, 1)), (vec!["first".to_owned()], vec!["second".to_owned()]));
}

/// The table of models that take a GPU each.
fn table(data: &Data, models: &[&str]) -> String {
    let size = |name: &&str| format!("[models.{name}]\ngpus = 1\ntokens_per_second = 1\n");
    let head = "[gpu]\nname = 'T'\nresource = 'nvidia.com/gpu'\nper_node = 1\n[dialogue]\ntokens = 10\n";
    let text = head.to_owned() + &models.iter().map(size).collect::<String>();
    data.write("table.toml", text).to_str().unwrap().to_owned()
}

#[test]
fn a_pipeline_is_launched_stage_by_stage_and_every_judge_has_the_gpu_when_it_is_needed() {
    let Some(cluster) = Cluster::start() else { return };
    let coordinator = cluster.coordinator();
    let data = &cluster.data;
    let head = "name = 'stages'\nseed = 1\niterations = 20\ntasks = ['FactExtractStatic']\n";
    let model =
        |label: &str| format!("label = '{label}'\nmodel = 'sim-{label}'\nconnector = 'openai-compatible'\n");
    // By name the judge who comes last would be first.
    let (tested, grader, reviewer) = ("tested", "grader", "a-reviewer");
    let config = format!(
        "{head}pipeline = 'judged-facts'\n[[models]]\n{}[judges.grader]\n{}[judges.reviewer]\n{}",
        model(tested),
        model(grader),
        model(reviewer)
    );
    let config = data.write("stages.toml", config);
    let table = table(data, &["sim-tested", "sim-grader", "sim-a-reviewer"]);
    let (url, helm) = (coordinator.url(), helm(data));
    let launch = ["launch", config.to_str().unwrap(), "--table", &table, "--apply", "--helm", &helm];
    let mut launched = data.start(&[&launch[..], &["--coordinator", &url]].concat());
    for (wave, label) in [tested, grader, reviewer].into_iter().enumerate() {
        launched.until_it_says("following");
        assert_eq!(pools(data, wave), [label]);
        // What the pool would serve, as long as it is there.
        // Weak enough that the last judge has something to do.
        let skill = if label == tested { 0.1 } else { 0.9 };
        let served =
            format!("{head}[[models]]\nlabel = 'sim-{label}'\nconnector = 'simulated'\nskill = {skill}\n");
        let served = data.write("served.toml", served);
        let place = format!("127.0.0.1:{}", free_port());
        let simulator =
            data.start(&["simulate", "--benchmark", served.to_str().unwrap(), "--listen", &place]);
        let worker = cluster.worker_with(label, coordinator.port, &format!("http://{place}"), &[]);
        if wave < 2 {
            launched.until_it_says(&format!("wave {} of 3", wave + 2));
        } else {
            launched.until_it_says("is finished");
        }
        drop((worker, simulator));
    }
    launched.finish().expect(0);
    let runs: Vec<String> = data.runs().iter().map(|run| run.name().to_owned()).collect();
    assert!(runs.iter().any(|run| run.contains(".review.")), "the last judge had something to do: {runs:?}");
}

/// What `sbatch` was called with, line by line, where it does what this shell command says.
fn sbatch(data: &Data, then: &str) -> PathBuf {
    let said = data.path().join("sbatch.args");
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && exit 0\necho \"$MODEL|$VLLM_ARGS|$KGFLEET_COORDINATOR|$*\" >> {}\n{then}\n",
        said.display()
    );
    std::fs::create_dir_all(data.path().join("bin")).unwrap();
    let path = data.write("bin/sbatch", script);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    said
}

#[test]
fn the_papers_matrix_becomes_jobs_of_slurm() {
    let data = Data::new();
    let paper = repository().join("task-data/configurations/paper.toml");
    let launch = ["launch", paper.to_str().unwrap(), "--slurm", "--dry-run", "--servers", "2"];
    let more =
        ["--sbatch=--partition=gpu", "--pool-token-file", "pool token", "--script", "/s/worker.sbatch"];
    let planned = data.kgfleet(&[&launch[..], &more].concat()).expect(0);
    let lines: Vec<&str> = planned.stdout.lines().collect();
    assert!(lines[0].starts_with("kgfleet submit ") && lines.len() == 1 + 31, "{planned}");
    let of = |model: &str| *lines.iter().find(|line| line.contains(model)).unwrap();
    assert_eq!(
        of("MODEL=deepseek-ai/DeepSeek-R1 "),
        "MODEL=deepseek-ai/DeepSeek-R1 VLLM_ARGS='--tensor-parallel-size 8 --pipeline-parallel-size 2 --max-model-len 32768' \
         SERVER_WAIT=10800 \
         KGFLEET_TOKEN_FILE='pool token' sbatch --array=1-2 --nodes=2 --gpus-per-node=8 --cpus-per-task=18 --mem=900G \
         --partition=gpu /s/worker.sbatch"
    );
    assert!(of("Qwen2.5-7B-Instruct ").contains(" VLLM_ARGS='' SERVER_WAIT=1800 "), "{planned}");
    planned.says(&["hosted, without GPUs: ChatGPT 3.5 turbo", "HF_TOKEN"]);
    // A plan for so few GPUs leaves out what does not fit.
    data.kgfleet(&[&launch[..4], &["--gpus", "8"]].concat())
        .expect(UNSATISFIED)
        .says(&["does not fit: DeepSeek-R1"]);
    data.kgfleet(&["launch", "quick", "--dry-run"]).expect(USAGE).says(&["--slurm"]);
}

#[test]
fn a_launch_on_slurm_submits_the_run_and_an_array_for_each_model_and_judge() {
    let Some(cluster) = Cluster::start() else { return };
    let coordinator = cluster.coordinator();
    let data = &cluster.data;
    let model =
        |label: &str| format!("label = '{label}'\nmodel = 'sim-{label}'\nconnector = 'openai-compatible'\n");
    let config = format!(
        "name = 'stages'\niterations = 2\ntasks = ['FactExtractStatic']\npipeline = 'judged-facts'\n[[models]]\n{}\
         [judges.grader]\n{}[judges.reviewer]\n{}",
        model("tested"),
        model("judge"),
        model("judge")
    );
    let config = data.write("stages.toml", config);
    let table = table(data, &["sim-tested", "sim-judge"]);
    let url = coordinator.url();
    let script = repository().join("deploy/slurm/worker.sbatch");
    let script = script.to_str().unwrap();
    let launch = ["launch", config.to_str().unwrap(), "--table", &table, "--slurm", "--script"];
    let path = format!("{}:{}", data.path().join("bin").display(), std::env::var("PATH").unwrap());
    let run = |more: &[&str]| finish(data.command(&[&launch[..], more].concat()).env("PATH", &path));
    run(&[script]).expect(USAGE).says(&["--coordinator"]);
    run(&["none", "--coordinator", &url]).expect(USAGE).says(&["there is no none"]);
    assert!(data.runs().is_empty());
    let said = sbatch(data, "echo Submitted batch job 7");
    let launched = run(&[script, "--coordinator", &url]).expect(0).prints(&["Submitted batch job 7"]);
    let submitted = launched.stdout.lines().next().unwrap();
    assert_eq!(cluster.status(&coordinator, submitted).run.as_str(), submitted);
    let jobs = std::fs::read_to_string(said).unwrap();
    let array = |model: &str| {
        format!("sim-{model}||{url}|--array=1-1 --nodes=1 --gpus-per-node=1 --cpus-per-task=4 {script}\n")
    };
    assert_eq!(jobs, array("tested") + &array("judge"));
    // The user learns what is submitted, and which jobs are missing.
    sbatch(data, "echo invalid account >&2; exit 1");
    run(&[script, "--coordinator", &url]).expect(INFRASTRUCTURE).says(&[
        "was submitted",
        "MODEL=sim-tested",
        "invalid account",
    ]);
}

#[test]
fn a_launch_that_cannot_work_says_why_and_a_teardown_uninstalls() {
    let data = Data::new();
    let paper = repository().join("task-data/configurations/paper.toml");
    let (paper, helm) = (paper.to_str().unwrap(), helm(&data));
    let unknown = data.write(
        "unknown.toml",
        "name = 'u'\n[[models]]\nlabel = 'm'\nmodel = 'org/unknown'\nconnector = 'openai-compatible'\n",
    );
    let unknown = unknown.to_str().unwrap();
    data.kgfleet(&["launch", unknown]).expect(UNSATISFIED).prints(&["`org/unknown` is not in the table"]);
    let waves = ["launch", paper, "--gpus", "16", "--apply", "--helm", &helm];
    data.kgfleet(&waves).expect(USAGE).says(&["--coordinator", "--prometheus"]);
    let missing =
        ["launch", paper, "--gpus", "16", "--apply", "--prometheus", "http://p", "--helm", "no-such-helm"];
    data.kgfleet(&missing).expect(INFRASTRUCTURE).says(&["cannot start no-such-helm", "--helm"]);
    let table = data.write("table.toml", "[gpu]\nname = 3\n");
    data.kgfleet(&["launch", paper, "--table", table.to_str().unwrap()])
        .expect(USAGE)
        .says(&["table.toml", "name"]);
    assert!(calls(&data).is_empty());
    data.kgfleet(&["launch", "--teardown", "--release", "r", "--namespace", "n", "--helm", &helm]).expect(0);
    assert_eq!(calls(&data), ["uninstall\nr\n--namespace\nn\n"]);
}
