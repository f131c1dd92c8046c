//! Manifests that were changed after the run was planned; and paths in manifests and configurations that are not files.

use std::io::{Read, Seek};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use results::manifest::hash;
use serde_json::Value;

use crate::harness::{Data, NT_TASK};

const UNSATISFIED: i32 = 1;
const USAGE: i32 = 2;
const INFRASTRUCTURE: i32 = 3;

/// What was changed, how, and what must be named as different.
type Change = (&'static str, fn(&mut Value), &'static str);

fn swap_labels(manifest: &mut Value) {
    let models = &mut manifest["configuration"]["models"];
    let first = models[0]["label"].take();
    models[0]["label"] = models[1]["label"].take();
    models[1]["label"] = first;
}

/// What somebody does who knows of the hash of the configuration.
fn hash_again(manifest: &mut Value) {
    manifest["configuration_hash"] = hash(&manifest["configuration"]).into();
}

/// Of every kind of difference one; `results` knows the further ways to make them.
const CHANGES: [Change; 4] = [
    ("seed", |m| m["configuration"]["seed"] = 7.into(), "its configuration"),
    (
        "labels of two models, and the hash",
        |m| {
            swap_labels(m);
            hash_again(m);
        },
        "its plan",
    ),
    ("hash of the pack", |m| m["packs"][0]["hash"] = "0".repeat(64).into(), "its pack"),
    ("number of dialogues", |m| m["planned_dialogues"] = 2.into(), "its number of dialogues"),
];

#[test]
fn an_altered_manifest_is_found_by_verify_and_loaded_by_nothing() {
    let data = Data::new();
    data.kgfleet(&["run", "--task", NT_TASK, "--iterations", "1", "--no-sandbox"]).expect(0);
    let run = data.run();
    let (name, path) = (run.name(), run.dir.manifest_path());
    let sound = std::fs::read_to_string(&path).unwrap();
    let dialogue = format!("sim-strong/{NT_TASK}/0");
    for (what, change, named) in CHANGES {
        let mut manifest: Value = serde_json::from_str(&sound).unwrap();
        change(&mut manifest);
        std::fs::write(&path, manifest.to_string()).unwrap();
        let verified = data.kgfleet(&["verify", name, "--json"]);
        assert_eq!(verified.code(), Some(UNSATISFIED), "{what}: {verified}");
        let verified = verified.json();
        assert_eq!(verified["sound"], false, "{what}: {verified}");
        let altered = verified["altered"].to_string();
        assert!(altered.contains(named), "{what}: {altered}");
        for verb in [&["show", name, &dialogue][..], &["table", name], &["resume", name], &["rejudge", name]]
        {
            let refused = data.kgfleet(verb);
            assert_eq!(refused.code(), Some(INFRASTRUCTURE), "{what}: {refused}");
            refused.says(&["was altered", named, name]);
        }
    }
    // The last one stands for all others here.
    data.kgfleet(&["verify", name]).expect(UNSATISFIED).prints(&["was altered", "the log is sound"]);
    for verb in
        [&["export", name, "--format", "csv"][..], &["report", name], &["archive", name], &["retry", name]]
    {
        data.kgfleet(verb).expect(INFRASTRUCTURE).says(&["was altered"]);
    }
    // It stands in nobody's way, and goes when it is told to.
    data.kgfleet(&["run", "--task", NT_TASK, "--iterations", "2", "--no-sandbox"]).expect(0);
    std::fs::write(&path, &sound).unwrap();
    data.kgfleet(&["verify", name]).expect(0);
    std::fs::write(&path, sound.replacen("\"seed\": 1", "\"seed\": 2", 1)).unwrap();
    data.kgfleet(&["status"]).expect(0).says(&["was altered"]);
    data.kgfleet(&["rm", name]).expect(USAGE).says(&["was altered", "--force"]);
    data.kgfleet(&["rm", name, "--force"]).expect(0);
}

#[test]
fn a_run_whose_manifest_is_gone_or_damaged_stays_the_latest_and_every_verb_names_it() {
    let data = Data::new();
    let begin = || data.kgfleet(&["run", "--task", NT_TASK, "--iterations", "1", "--no-sandbox"]).expect(0);
    begin();
    let older = data.run().name().to_owned();
    begin();
    let newest = data.runs().into_iter().find(|run| run.name() != older).unwrap();
    let (name, path) = (newest.name(), newest.dir.manifest_path());
    let (sound, dialogue) = (std::fs::read(&path).unwrap(), format!("sim-strong/{NT_TASK}/0"));
    for damage in [None, Some("{")] {
        std::fs::remove_file(&path).unwrap();
        damage.iter().for_each(|content| std::fs::write(&path, content).unwrap());
        let listed = data.kgfleet(&["status"]).expect(0);
        listed.prints(&[name, "unreadable", &older]).says(&["manifest", name]);
        let shown = data.kgfleet(&["status", "latest"]).to_string();
        assert!(shown.contains("manifest") && shown.contains(name), "{shown}");
        for verb in [
            &["show", &dialogue][..],
            &["show"],
            &["table"],
            &["report"],
            &["compare"],
            &["export", "--format", "csv"],
            &["verify"],
            &["resume"],
            &["retry"],
            &["rejudge"],
            &["archive"],
            &["rm"],
        ] {
            for wanted in ["latest", name] {
                let arguments = [&verb[..1], &[wanted], &verb[1..]].concat();
                let refused = data.kgfleet(&arguments);
                assert_ne!(refused.code(), Some(0), "{arguments:?}: {refused}");
                refused.says(&["manifest", name]);
            }
        }
        std::fs::write(&path, &sound).unwrap();
        data.kgfleet(&["table", "latest"]).expect(0);
    }
}

/// A pipe that nobody writes into: who opens it as a file waits for ever.
fn pipe(folder: &Path, name: &str) -> String {
    let path = folder.join(name);
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn what_is_named_as_a_file_and_is_none_is_refused_at_once() {
    let data = Data::new();
    let pipe = pipe(data.path(), "pipe");
    let files = [pipe.as_str(), "/dev/zero"];
    data.kgfleet(&["run", "--task", NT_TASK, "--iterations", "1", "--no-sandbox"]).expect(0);
    let run = data.run();
    let (name, path) = (run.name(), run.dir.manifest_path());
    let sound: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    for file in files {
        // As a stranger sends it: with hashes that fit.
        let mut manifest = sound.clone();
        manifest["configuration"]["pack"] = file.into();
        manifest["packs"][0]["hash"] = "0".repeat(64).into();
        hash_again(&mut manifest);
        std::fs::write(&path, manifest.to_string()).unwrap();
        data.kgfleet(&["verify", name]).prints(&["not checked", "is not a regular file"]);
        data.kgfleet(&["show", name, &format!("sim-strong/{NT_TASK}/0")]).expect(0);
        data.kgfleet(&["resume", name]).says(&["is not in the sink"]);

        let of_pack = format!(
            "name = \"n\"\npack = \"{file}\"\n[[models]]\nlabel = \"m\"\nconnector = \"simulated\"\n"
        );
        let of_key = format!(
            "name = \"n\"\niterations = 1\n[[models]]\nlabel = \"m\"\nconnector = \"anthropic\"\nkey_file = \"{file}\"\n"
        );
        let of_recording = format!(
            "name = \"n\"\niterations = 1\n[[models]]\nlabel = \"m\"\nconnector = \"replay\"\nrecorded = [\"{file}\"]\n"
        );
        for configuration in [of_pack, of_key, of_recording] {
            let configuration = data.write("named.toml", configuration);
            let refused = data.kgfleet(&["run", configuration.to_str().unwrap(), "--task", NT_TASK]);
            assert!(matches!(refused.code(), Some(USAGE | INFRASTRUCTURE)), "{refused}");
            refused.says(&["is not a regular file"]);
        }
    }
}

/// Calls that read the pipe `p`, by the name that each expects.
const OF_A_PIPE: &[&str] = &[
    "run p.toml",
    "plan p.yaml",
    "submit p.toml --dry-run",
    "status --env-file p",
    "verify p.tar.zst",
    "table p.tar.zst",
    "table ./p_result.json",
    "table x --prices p",
    "table x --schemes p",
    "report x --schemes p",
    "rejudge x --with p.toml",
    "reevaluate ./p_result.json",
    "reevaluate x --graph g=p.ttl",
    "task check p.toml",
    "pack list p.kgpack",
    "pack import p_result.json --out x.kgpack",
    "halu generate --kg p.ttl --mapping wikidata --out x.kgpack",
    "halu generate --kg x.ttl --mapping p --out x.kgpack",
    "halu generate --kg x.ttl --mapping wikidata --wording p --out x.kgpack",
    "simulate --benchmark p.toml",
    "launch p.toml",
    "fleet token list --tokens p",
    "fleet token new --name a --role reader --append p",
    "status --fleet http://127.0.0.1:9 --token-file p",
    "status --fleet https://127.0.0.1:9 --ca p",
    "coordinator --queue memory --listen 127.0.0.1:0 --tokens p",
    "coordinator --queue memory --listen 127.0.0.1:0 --tls-cert p --tls-key p",
    "coordinator --queue rediss://127.0.0.1:9 --queue-ca p",
    "worker --fleet http://127.0.0.1:9 --endpoints-file p",
];

/// More time than a refusal takes on a busy machine.
const REFUSED_WITHIN: Duration = Duration::from_secs(60);

/// What a call says until it ends; `None` if it waits for something.
fn said(mut command: Command) -> Option<String> {
    let talk = tempfile::tempfile().unwrap();
    let mut child = command.stdout(Stdio::null()).stderr(talk.try_clone().unwrap()).spawn().unwrap();
    let until = Instant::now() + REFUSED_WITHIN;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > until {
            child.kill().and_then(|()| child.wait()).unwrap();
            return None;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let (mut talk, mut text) = (talk, String::new());
    talk.rewind().and_then(|()| talk.read_to_string(&mut text)).unwrap();
    Some(text)
}

#[test]
fn a_pipe_where_a_file_is_expected_is_refused_instead_of_waited_for() {
    let data = Data::new();
    for name in ["p", "p.toml", "p.yaml", "p.tar.zst", "p_result.json", "p.ttl", "p.kgpack"] {
        pipe(data.path(), name);
    }
    for call in OF_A_PIPE {
        let said = said(data.command(&call.split(' ').collect::<Vec<_>>()));
        assert!(said.as_ref().is_some_and(|said| said.contains("is not a regular file")), "{call}: {said:?}");
    }
}
