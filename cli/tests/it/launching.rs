//! `kgfleet launch`, with stand-ins for helm and kubectl that write down their arguments.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::process::finish;
use crate::harness::{Cluster, Data};

const UNSATISFIED: i32 = 1;
const USAGE: i32 = 2;
const INFRASTRUCTURE: i32 = 3;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A program in place of another one: keeps every command line, and a copy of the first values file; says what a file of its
/// name and `.says` holds.
fn program(data: &Data, name: &str) -> String {
    let folder = data.path().display();
    let script = format!(
        "#!/bin/sh\nn=$(ls {folder}/{name}-*.args 2>/dev/null | wc -l)\nprintf '%s\\n' \"$@\" > {folder}/{name}-$n.args\n\
         while [ $# -gt 0 ]; do\n  if [ \"$1\" = --values ]; then cp \"$2\" {folder}/{name}-$n.yaml; break; fi\n  shift\ndone\n\
         cat {folder}/{name}.says 2>/dev/null || true\n"
    );
    let path = data.write(name, script);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The command lines of a program, a word a line.
fn calls(data: &Data, name: &str) -> Vec<String> {
    let path = |number: usize| data.path().join(format!("{name}-{number}.args"));
    (0..).map_while(|number| std::fs::read_to_string(path(number)).ok()).collect()
}

/// What helm was told to install.
fn installs(data: &Data) -> Vec<String> {
    let mut calls = calls(data, "helm");
    calls.retain(|call| call.starts_with("upgrade\n"));
    calls
}

#[test]
fn the_papers_matrix_is_planned_and_its_values_render_and_validate() {
    let data = Data::new();
    let paper = repository().join("task-data/configurations/paper.toml");
    let (paper, file) = (paper.to_str().unwrap(), data.path().join("values.yaml"));
    let values = file.to_str().unwrap();
    let options = ["--gpus", "16", "--gpu-hours", "150", "--values", values];
    let planned = data.kgfleet(&[&["launch", paper][..], &options].concat()).expect(0);
    planned.prints(&[
        "DeepSeek-R1",
        "2x8",
        " (bound 6:36) on at most 16 GPUs (H100 80 GB)",
        "; budget 150",
        "hosted, without GPUs: ChatGPT 3.5 turbo",
        "(keys in the Secret `provider-keys`: anthropic, api-openai-com, gemini)",
        "weights: each server fetches its weights; with a shared volume for them (sharedPvcStorage in a",
    ]);
    // With weights on a volume that all servers share, by one's own values, it is over sooner.
    let base = data.write("mine.yaml", "sharedPvcStorage:\n  enabled: true\n");
    let shared = ["launch", paper, "--gpus", "16", "--json", "--base", base.to_str().unwrap()];
    let shared = data.kgfleet(&shared).expect(0).json();
    let number = |key: &str| shared[key].as_f64().unwrap();
    assert_eq!(shared["weights"], "shared-volume");
    assert!(number("hours") < 0.5 * number("hours_with_other_weights"), "{shared}");
    assert!(number("gpu_hours") < 0.5 * number("gpu_hours_with_other_weights"), "{shared}");
    let plan = data.kgfleet(&["launch", paper, "--gpus", "8", "--json"]).expect(UNSATISFIED).json();
    assert_eq!(plan["weights"], "afar");
    assert_eq!(plan["refused"].as_array().unwrap().len(), 3, "those on two nodes");
    assert_eq!(plan["refused"][0]["reason"], "needs 16 GPUs (H100 80 GB), and there are 8 (--gpus)");
    assert_eq!(plan["pools"].as_array().unwrap().len(), 28);
    assert!(plan["hours"].as_f64().unwrap() >= plan["bound_hours"].as_f64().unwrap(), "{plan}");

    let python = repository().join("target/chart-venv/bin/python");
    if !python.exists() {
        crate::harness::skip("rendering the chart needs Helm's library: tests/setup installs it");
        return;
    }
    let check = repository().join("helm/kgfleet/tests/check.py");
    finish(Command::new(python).arg(check).args(["values", values])).expect(0).prints(&[" 0 failures"]);
}

/// The table of models that take a GPU each.
fn table(data: &Data, models: &[&str]) -> String {
    let size = |name: &&str| format!("[models.{name}]\ngpus = 1\ntokens_per_second = 1\ngated = true\n");
    let head = "[gpu]\nname = 'T'\nresource = 'nvidia.com/gpu'\nper_node = 1\n[dialogue]\ntokens = 10\n";
    let text = head.to_owned() + &models.iter().map(size).collect::<String>();
    data.write("table.toml", text).to_str().unwrap().to_owned()
}

#[test]
fn a_launch_checks_what_is_needed_and_installs_all_pools_at_once() {
    let data = Data::new();
    let (helm, kubectl) = (program(&data, "helm"), program(&data, "kubectl"));
    let model = |label: &str| {
        format!("[[models]]\nlabel = '{label}'\nmodel = 'sim-{label}'\nconnector = 'openai-compatible'\n")
    };
    let head = "name = 'two'\niterations = 4\ntasks = ['FactExtractStatic']\npipeline = 'judged-facts'\n";
    let judges = "[judges.grader]\nlabel = 'judge'\nmodel = 'sim-judge'\nconnector = 'openai-compatible'\n\
                  [judges.reviewer]\nlabel = 'judge'\nmodel = 'sim-judge'\nconnector = 'openai-compatible'\n";
    let config = data.write("two.toml", head.to_owned() + &model("first") + &model("second") + judges);
    let table = table(&data, &["sim-first", "sim-second", "sim-judge"]);
    let (config, programs) = (config.to_str().unwrap(), ["--helm", &helm, "--kubectl", &kubectl]);
    let launch =
        ["launch", config, "--table", &table, "--apply", "--base", "mine.yaml", "--namespace", "bench"];
    let launch = [&launch[..], &programs].concat();
    data.write("helm.says", "null");
    // Nothing is installed that could not start.
    data.kgfleet(&launch).expect(USAGE).says(&[
        "nothing was installed",
        "kubectl -n bench create secret generic huggingface --from-literal=token=...",
    ]);
    assert!(installs(&data).is_empty());
    assert_eq!(
        calls(&data, "kubectl")[0],
        "get\nsecret\nhuggingface\n--ignore-not-found\n-o\njson\n--namespace\nbench\n"
    );
    data.write("kubectl.says", json!({"data": {"token": "eA=="}}).to_string());
    let launched = data.kgfleet(&launch).expect(0);
    launched.prints(&["first", "second", "judge", "to judge", "later"]);
    let calls = calls(&data, "helm");
    let installs = calls.last().unwrap();
    assert!(installs.starts_with("upgrade\n--install\nkgfleet\nhelm/kgfleet\n"), "{installs}");
    assert!(installs.contains("\n--values\nmine.yaml"), "one's own values come last: {installs}");
    assert!(installs.contains(&format!("run.config={config}")), "{installs}");
    let text = std::fs::read_to_string(data.path().join(format!("helm-{}.yaml", calls.len() - 1))).unwrap();
    let values: Value = serde_saphyr::from_str(&text).unwrap();
    let pools = values["servingEngineSpec"]["modelSpec"].as_array().unwrap();
    let told: Vec<(&str, u64)> = pools
        .iter()
        .map(|pool| (pool["name"].as_str().unwrap(), pool["estimate"]["dialogues"].as_u64().unwrap()))
        .collect();
    assert_eq!(told, [("first", 4), ("second", 4), ("judge", 0)], "a judge of two stages has one pool");
    assert_eq!(values["conductor"], json!({"enabled": true, "gpus": 1, "gpusPerNode": 1}));
}

/// A benchmark of these models, of which the table has the size of `fits` alone.
fn sized(data: &Data, models: &[&str]) -> (String, String) {
    let model = |label: &&str| {
        format!("[[models]]\nlabel = '{label}'\nmodel = 'sim-{label}'\nconnector = 'openai-compatible'\n")
    };
    let head = "name = 'sized'\niterations = 4\ntasks = ['FactExtractStatic']\n";
    let config = data.write("sized.toml", head.to_owned() + &models.iter().map(model).collect::<String>());
    (config.to_str().unwrap().to_owned(), table(data, &["sim-fits"]))
}

#[test]
fn of_a_plan_that_does_not_fit_nothing_is_installed_unless_somebody_wants_what_fits() {
    let data = Data::new();
    let (helm, kubectl) = (program(&data, "helm"), program(&data, "kubectl"));
    data.write("helm.says", "null");
    data.write("kubectl.says", json!({"data": {"token": "eA=="}}).to_string());
    let (config, table) = sized(&data, &["fits", "unknown"]);
    let launch = ["launch", &config, "--table", &table, "--apply", "--helm", &helm, "--kubectl", &kubectl];
    data.kgfleet(&launch)
        .expect(UNSATISFIED)
        .prints(&["does not fit: unknown"])
        .says(&["nothing was installed", "--what-fits"]);
    assert_eq!(installs(&data), [""; 0]);
    data.kgfleet(&[&launch[..], &["--what-fits"]].concat())
        .expect(UNSATISFIED)
        .says(&["installing what fits, 1 of 2 models"]);
    assert_eq!(installs(&data).len(), 1);
    // Nor where the budget ends before a model begins.
    let (config, table) = sized(&data, &["fits"]);
    let budget = ["--gpu-hours", "0.001"];
    let launch = ["launch", &config, "--table", &table, "--apply", "--helm", &helm, "--kubectl", &kubectl];
    data.kgfleet(&[&launch[..], &budget].concat())
        .expect(UNSATISFIED)
        .prints(&["over the budget, never started: fits"])
        .says(&["nothing was installed", "--what-fits"]);
    assert_eq!(installs(&data).len(), 1);
    data.kgfleet(&[&launch[..], &budget, &["--what-fits"]].concat()).expect(UNSATISFIED);
    assert_eq!(installs(&data).len(), 2);
    // On Slurm it is the same, and what would be done is told all the same.
    let (config, table) = sized(&data, &["fits", "unknown"]);
    let slurm = ["launch", &config, "--table", &table, "--slurm", "--fleet", "http://127.0.0.1:9"];
    data.kgfleet(&slurm).expect(UNSATISFIED).says(&[
        "does not fit: unknown",
        "nothing was submitted",
        "--what-fits",
    ]);
    data.kgfleet(&[&slurm[..], &["--dry-run"]].concat()).expect(UNSATISFIED).prints(&["MODEL=sim-fits"]);
}

#[test]
fn a_launch_into_a_release_with_a_run_that_is_not_over_changes_nothing_and_says_what_to_do() {
    let Some(cluster) = Cluster::start() else { return };
    let coordinator = cluster.coordinator();
    let data = &cluster.data;
    let (helm, kubectl, url) = (program(data, "helm"), program(data, "kubectl"), coordinator.url());
    data.write("kubectl.says", json!({"data": {"token": "eA=="}}).to_string());
    let (config, table) = sized(data, &["fits"]);
    let launch = ["launch", &config, "--table", &table, "--apply", "--helm", &helm, "--kubectl", &kubectl];
    let launch = |more: &[&str]| data.kgfleet(&[&launch[..], more].concat());
    let to = ["--fleet", url.as_str()];
    let text = std::fs::read_to_string(&config).unwrap();
    let has = |config: &str| data.write("helm.says", json!({"run": {"config": config}}).to_string());

    // Nobody says whether the run of another configuration is over.
    has("name = 'other'");
    launch(&[]).expect(USAGE).says(&["nothing was installed", "another configuration", "--fleet"]);
    // Its coordinator says that it is: it has none.
    launch(&to).expect(0);
    let run = cluster.kgfleet(&coordinator, &["submit", &config]).expect(0).stdout.trim().to_owned();
    launch(&to).expect(USAGE).says(&[
        "nothing was installed",
        &format!("works on {run} ("),
        &format!("--extend {run}"),
        &format!("kgfleet cancel {run}"),
    ]);
    assert_eq!(installs(data).len(), 1);
    // The same configuration is not submitted again, so its pools may change; and what is added to the run begins no other.
    has(&text);
    launch(&[]).expect(0);
    has("name = 'other'");
    launch(&["--extend", &run]).expect(0);
    let last = installs(data).pop().unwrap();
    assert!(last.contains(&format!("\n--set-string\nrun.extend={run}\n")), "{last}");
    cluster.kgfleet(&coordinator, &["cancel", &run]).expect(0);
    launch(&to).expect(0);
}

#[test]
fn what_pools_do_is_told_and_one_that_failed_is_tried_again() {
    let data = Data::new();
    let kubectl = program(&data, "kubectl");
    let labels = json!({"kgfleet/pool": "small"});
    let estimate = r#"{"gpus":2,"parts":1,"servers":1,"load_seconds":300,"dialogues_per_second":1}"#;
    let container = json!({"name": "worker", "args": ["worker", "--model", "org/small"]});
    let condition = json!({
        "type": "Failed", "status": "True", "reason": "PodFailurePolicy",
        "message": "Container worker for pod bench/x failed with exit code 2 matching FailJob rule at index 0",
        "lastTransitionTime": "2026-01-01T02:00:00Z",
    });
    let list = json!({"kind": "List", "items": [
        {
            "kind": "CronJob",
            "metadata": {"name": "bench-small", "labels": labels, "annotations": {"kgfleet/estimate": estimate}},
            "spec": {"jobTemplate": {"spec": {"template": {"spec": {"containers": [container]}}}}},
        },
        {
            "kind": "Job", "metadata": {"name": "bench-small-1", "uid": "1", "labels": labels},
            "status": {"startTime": "2026-01-01T00:00:00Z", "conditions": [condition]},
        },
        {
            "kind": "Job", "metadata": {"name": "bench-small-2", "uid": "2", "labels": labels},
            "status": {"startTime": "2026-01-01T02:00:00Z"},
        },
        {
            "kind": "Event", "involvedObject": {"uid": "2"}, "reason": "FailedCreate",
            "message": "pods is forbidden: exceeded quota: gpus", "lastTimestamp": jiff::Timestamp::now().to_string(),
        },
        {"kind": "CronJob", "metadata": {"name": "other", "labels": {"kgfleet/pool": "other"}}},
    ]});
    data.write("kubectl.says", list.to_string());
    let prices = repository().join("deploy/costs/prices.toml");
    let status = ["launch", "--status", "--release", "bench", "--namespace", "n", "--kubectl", &kubectl];
    data.kgfleet(&[&status[..], &["--prices", prices.to_str().unwrap()]].concat())
        .expect(UNSATISFIED)
        .prints(&[
            "org/small",
            "4.0 GPU-hours",
            "1 queued, gets no further server; does not start: FailedCreate: pods is forbidden: exceeded quota: gpus",
            "small failed: PodFailurePolicy: Container worker for pod bench/x failed with exit code 2",
            "kgfleet launch --retry small",
            "no pool: other: the annotation kgfleet/estimate",
        ]);
    let told = data.kgfleet(&[&status[..], &["--json"]].concat()).expect(UNSATISFIED).json();
    assert_eq!(told["problems"].as_array().map(Vec::len), Some(1), "{told}");
    assert_eq!((&told["pools"][0]["is_given_up"], &told["gpu_hours"]), (&json!(true), &json!(4.0)));
    assert!(calls(&data, "kubectl")[0].starts_with("get\ncronjobs.batch,jobs.batch,pods\n--selector\n"));
    let retry = |pool: &str| {
        let options = ["--release", "bench", "--namespace", "n", "--kubectl", &kubectl];
        data.kgfleet(&[&["launch", "--retry", pool][..], &options].concat())
    };
    retry("large").expect(USAGE).says(&["no pool `large`", "small"]);
    retry("small").expect(0);
    let last = calls(&data, "kubectl").pop().unwrap();
    assert!(last.starts_with("annotate\ncronjobs.batch\n--selector\n"), "{last}");
    assert!(
        last.contains("app.kubernetes.io/instance=bench,kgfleet/pool=small\n--overwrite\nkgfleet/retry=20"),
        "{last}"
    );
    data.write("kubectl.says", json!({"kind": "List", "items": []}).to_string());
    let missing = "there is no release `bench` in the namespace `n`";
    data.kgfleet(&status).expect(INFRASTRUCTURE).says(&[missing]);
    retry("small").expect(INFRASTRUCTURE).says(&[missing]);
    let missing = ["launch", "--status", "--kubectl", "no-such-kubectl"];
    data.kgfleet(&missing).expect(INFRASTRUCTURE).says(&["cannot start no-such-kubectl", "--kubectl"]);
}

/// What `sbatch` was called with, line by line, where it does what this shell command says.
fn sbatch(data: &Data, then: &str) -> PathBuf {
    let said = data.path().join("sbatch.args");
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && exit 0\necho \"$MODEL|$VLLM_ARGS|$KGFLEET_FLEET|$*\" >> {}\n{then}\n",
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
    run(&[script]).expect(USAGE).says(&["--fleet"]);
    run(&["none", "--fleet", &url]).expect(USAGE).says(&["there is no none"]);
    assert!(data.runs().is_empty());
    let said = sbatch(data, "echo Submitted batch job 7");
    let launched = run(&[script, "--fleet", &url]).expect(0).prints(&["Submitted batch job 7"]);
    let submitted = launched.stdout.lines().next().unwrap();
    assert_eq!(cluster.status(&coordinator, submitted).run.as_str(), submitted);
    let jobs = std::fs::read_to_string(said).unwrap();
    let array = |model: &str| {
        format!("sim-{model}||{url}|--array=1-1 --nodes=1 --gpus-per-node=1 --cpus-per-task=4 {script}\n")
    };
    assert_eq!(jobs, array("tested") + &array("judge"));
    // The user learns what is submitted, and which jobs are missing.
    sbatch(data, "echo invalid account >&2; exit 1");
    run(&[script, "--fleet", &url]).expect(INFRASTRUCTURE).says(&[
        "was submitted",
        "MODEL=sim-tested",
        "invalid account",
    ]);
}

#[test]
fn a_launch_that_cannot_work_says_why_and_a_teardown_uninstalls() {
    let data = Data::new();
    let paper = repository().join("task-data/configurations/paper.toml");
    let (paper, helm, kubectl) = (paper.to_str().unwrap(), program(&data, "helm"), program(&data, "kubectl"));
    let unknown = data.write(
        "unknown.toml",
        "name = 'u'\n[[models]]\nlabel = 'm'\nmodel = 'org/unknown'\nconnector = 'openai-compatible'\n",
    );
    let unknown = unknown.to_str().unwrap();
    data.kgfleet(&["launch", unknown]).expect(UNSATISFIED).prints(&["`org/unknown` is not in the table"]);
    // Without kubectl nothing can be checked, which is said; without helm nothing can be installed.
    let missing = [
        "launch",
        paper,
        "--gpus",
        "16",
        "--apply",
        "--kubectl",
        "no-such-kubectl",
        "--helm",
        "no-such-helm",
    ];
    data.kgfleet(&missing).expect(INFRASTRUCTURE).says(&[
        "the Secrets were not checked",
        "cannot start no-such-helm",
        "--helm",
    ]);
    let table = data.write("table.toml", "[gpu]\nname = 3\n");
    data.kgfleet(&["launch", paper, "--table", table.to_str().unwrap()])
        .expect(USAGE)
        .says(&["table.toml", "name"]);
    assert!(calls(&data, "helm").is_empty());
    let programs = ["--helm", &helm, "--kubectl", &kubectl];
    data.kgfleet(&[&["launch", "--teardown", "--release", "r", "--namespace", "n"][..], &programs].concat())
        .expect(0);
    // The chart's hook drains workers, for which helm waits.
    assert_eq!(calls(&data, "helm"), ["uninstall\nr\n--timeout\n30m\n--namespace\nn\n"]);
}
