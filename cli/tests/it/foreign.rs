//! Foreign runs: nothing that their manifests name is contacted or read before the user trusts them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use results::archive;
use results::manifest::hash;
use rustix::process::Signal;
use serde_json::Value;

use crate::harness::server::MODEL;
use crate::harness::{Data, NT_TASK, Receiver, RunOnDisk, Server};

/// What a user has in a file.
const SECRET: &str = "sk-of-the-user";

const USAGE: i32 = 2;

/// A configuration of one model at a server, with more lines about it.
fn configuration(url: &str, iterations: u32, more: &str) -> String {
    format!(
        "name = 'foreign'\niterations = {iterations}\ntasks = ['{NT_TASK}']\n[[models]]\nlabel = '{MODEL}'\n\
         connector = 'openai-compatible'\nendpoint = '{url}'\n{more}\n"
    )
}

/// A judged configuration with these lines about its first judge; the model and the second judge are simulated.
fn judged(iterations: u32, judge: &str) -> String {
    format!(
        "name = 'facts'\npipeline = 'judged-facts'\niterations = {iterations}\ntasks = ['FactExtractStatic']\n\
         [[models]]\nlabel = 'm'\nconnector = 'simulated'\n[judges.grader]\nlabel = 'grader'\n{judge}\n\
         [judges.reviewer]\nlabel = 'reviewer'\nconnector = 'simulated'\n"
    )
}

/// The line of a configuration that names the file of a key.
fn key_file(path: &Path) -> String {
    format!("key_file = '{}'", path.display())
}

/// A run of this configuration that was killed when it asked its first question.
fn unfinished(server: &Server, data: &Data, configuration: &Path) -> RunOnDisk {
    server.gate().close();
    let mut process = data.start(&["run", configuration.to_str().unwrap(), "--concurrency", "1"]);
    process.until_it_says("starting run");
    server.gate().until_held(1);
    process.signal(Signal::KILL);
    process.finish();
    server.gate().open();
    data.run()
}

/// Writes the manifest of a run with another model, as somebody does who knows how it is hashed.
fn alter(run: &RunOnDisk, change: impl FnOnce(&mut Value)) {
    let mut manifest = run.manifest.clone();
    change(&mut manifest.configuration["models"][0]);
    manifest.configuration_hash = hash(&manifest.configuration);
    manifest.write(&run.dir.manifest_path()).unwrap();
}

/// An archive that names what its author likes.
fn packed(run: &RunOnDisk, data: &Data) -> PathBuf {
    let name = format!("runs/{}/manifest.json", run.name());
    let file = data.path().join("strange.tar.zst");
    let log = (format!("runs/{}/log/", run.name()), run.dir.log());
    archive::write(&file, &run.manifest.run, &[log, (name, run.dir.manifest_path())]).unwrap();
    file
}

/// Copies a data folder as it is, to another machine.
fn copied(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let place = to.join(entry.file_name());
        if entry.path().is_dir() {
            copied(&entry.path(), &place);
        } else {
            fs::copy(entry.path(), place).unwrap();
        }
    }
}

#[test]
fn a_strangers_archive_gets_no_key_and_no_question_before_the_user_says_so() {
    let (server, trap) = (Server::with_key(SECRET), Receiver::start(0));
    let (stranger, user) = (Data::new(), Data::new());
    let secret = user.write("secret", format!("{SECRET}\n"));
    let text = configuration(&server.url(), 2, &key_file(&secret));
    user.unpack(&packed(&unfinished(&server, &stranger, &stranger.write("a.toml", &text)), &stranger));
    let run = user.run();

    // To a server of the stranger's, with a file or a variable of the user's.
    let refused = |key: &str| {
        let more = user.write("more.toml", configuration(&trap.url(), 3, key));
        let verbs: [&[&str]; 4] = [
            &["resume", "latest"],
            &["retry", run.name()],
            &["run", more.to_str().unwrap(), "--resume", run.name()],
            &["run", more.to_str().unwrap(), "--resume", run.name(), "--extend"],
        ];
        for verb in verbs {
            let mut command = user.command(verb);
            let ended = crate::harness::process::finish(command.env("ANTHROPIC_API_KEY", SECRET));
            let ended = ended.expect(USAGE).says(&[&trap.url(), "--trust-endpoints"]);
            assert!(
                trap.until(|_| true).is_empty(),
                "{verb:?} asked the stranger: {:?}",
                trap.until(|_| true)
            );
            let key = key.split('\'').nth(1).unwrap_or("ANTHROPIC_API_KEY");
            ended.says(&[key]);
        }
    };
    alter(&run, |model| model["endpoint"] = trap.url().into());
    refused(&key_file(&secret));
    alter(&run, |model| {
        (model["endpoint"], model["key_env"]) = (trap.url().into(), "ANTHROPIC_API_KEY".into());
        model["key_file"].take();
    });
    refused("key_env = 'ANTHROPIC_API_KEY'");
    alter(&run, |model| {
        // The usual variable of a provider goes to whatever address is named beside it.
        model["connector"] = "anthropic".into();
        model["endpoint"] = trap.url().into();
        model["key_file"].take();
    });
    refused("");

    // To the server that the user knows.
    alter(&run, |_| ());
    let (place, file) = (server.url(), secret.to_str().unwrap());
    user.kgfleet(&["resume", run.name()]).expect(USAGE).says(&[&place, file, "--trust-endpoints"]);
    assert!(user.run().entries().is_empty());
    let trusted = user.kgfleet(&["resume", run.name(), "--trust-endpoints"]).expect(0);
    trusted.says(&[&place, file, "2 dialogues scored"]);
    user.kgfleet(&["resume", run.name()]).expect(0);
    // What was trusted is this run as it was.
    alter(&run, |model| model["endpoint"] = trap.url().into());
    refused(&key_file(&secret));
}

#[test]
fn a_run_is_the_users_own_by_the_users_state_folder() {
    let (server, data) = (Server::with_key(SECRET), Data::new());
    let secret = data.write("secret", SECRET);
    let text = configuration(&server.url(), 2, &key_file(&secret));
    let run = unfinished(&server, &data, &data.write("a.toml", text));
    let kgfleet = data.state().join("kgfleet");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let notes: Vec<PathBuf> =
        fs::read_dir(kgfleet.join("own-runs")).unwrap().map(|note| note.unwrap().path()).collect();
    assert_eq!((mode(&kgfleet), mode(&kgfleet.join("own-runs"))), (0o700, 0o700));
    assert!(notes.len() == 1 && mode(&notes[0]) == 0o600, "{notes:?}");

    // As a version left it that took no notes.
    fs::rename(&kgfleet, data.state().join("elsewhere")).unwrap();
    data.kgfleet(&["resume", run.name()]).expect(USAGE).says(&["--trust-endpoints", &server.url()]);
    // Without a home nothing is known of anybody.
    let homeless = |more: &[&str]| {
        let mut command = data.command(&[&["resume", run.name()], more].concat());
        crate::harness::process::finish(command.env_remove("XDG_STATE_HOME").env_remove("HOME"))
    };
    homeless(&[]).expect(USAGE).says(&["XDG_STATE_HOME", "HOME", "--trust-endpoints"]);
    homeless(&["--trust-endpoints"]).expect(0).says(&["2 dialogues scored", "XDG_STATE_HOME"]);
    // It was not noted there, and is from here on.
    data.kgfleet(&["retry", run.name()]).expect(USAGE);
    data.kgfleet(&["retry", run.name(), "--trust-endpoints"]).expect(0);
    data.kgfleet(&["retry", run.name()]).expect(0);
    // What is judged again is as much the user's as what was judged.
    data.kgfleet(&["rejudge", run.name()]).expect(0);
    data.kgfleet(&["retry", "latest"]).expect(0);
    // A folder that others may write says nothing about the user.
    fs::set_permissions(kgfleet.join("own-runs"), fs::Permissions::from_mode(0o777)).unwrap();
    data.kgfleet(&["resume", run.name()]).expect(USAGE).says(&["others may write", "--trust-endpoints"]);
}

#[test]
fn the_configuration_in_the_users_hand_is_the_users_word() {
    let (server, trap) = (Server::with_key(SECRET), Receiver::start(0));
    let (theirs, user) = (Data::new(), Data::new());
    let secret = user.write("secret", SECRET);
    let file = user.write("a.toml", configuration(&server.url(), 2, &key_file(&secret)));
    let run = unfinished(&server, &theirs, &file);
    let again = ["run", file.to_str().unwrap()];

    // A run that claims to be of this configuration, and is of another.
    copied(&theirs.path().join("runs"), &user.path().join("runs"));
    let mut forged = user.run();
    let hash = forged.manifest.configuration_hash.clone();
    forged.manifest.configuration["models"][0]["endpoint"] = trap.url().into();
    forged.manifest.configuration_hash = hash;
    forged.manifest.write(&forged.dir.manifest_path()).unwrap();
    user.kgfleet(&again).expect(0).says(&["starting run"]);
    assert!(trap.until(|_| true).is_empty(), "{:?}", trap.until(|_| true));
    fs::remove_dir_all(user.path().join("runs")).unwrap();

    copied(&theirs.path().join("runs"), &user.path().join("runs"));
    user.kgfleet(&again).expect(0).says(&["continuing run", run.name(), "2 dialogues scored"]);
    user.kgfleet(&["resume", run.name()]).expect(0);
}

#[test]
fn an_archive_names_no_keys_and_is_still_the_run_that_it_was() {
    let (server, data, other) = (Server::with_key(SECRET), Data::new(), Data::new());
    let secret = data.write("the-secret-place", SECRET);
    let text = configuration(&server.url(), 2, &key_file(&secret));
    let config = data.write("a.toml", text);
    data.kgfleet(&["run", config.to_str().unwrap()]).expect(0);
    let run = data.run();
    let file = data.path().join("run.tar.zst");
    let file = file.to_str().unwrap();
    data.kgfleet(&["archive", "latest", "--out", file]).expect(0).says(&["names of keys"]);
    let mut unpacked = Vec::new();
    let packed = fs::File::open(file).unwrap();
    std::io::Read::read_to_end(&mut zstd::Decoder::new(packed).unwrap(), &mut unpacked).unwrap();
    let text = String::from_utf8_lossy(&unpacked);
    assert!(!text.contains("the-secret-place") && !text.contains("key_file"), "it names the key");

    other.unpack(Path::new(file));
    let unpacked = other.run();
    assert_eq!(unpacked.manifest.configuration_hash, run.manifest.configuration_hash);
    assert!(unpacked.manifest.is_as_hashed() && run.manifest.is_as_hashed());
    other.kgfleet(&["verify", run.name()]).expect(0);
    // Keys are given by a configuration.
    other.kgfleet(&["resume", run.name()]).expect(USAGE).says(&[&server.url(), "without a key", "--extend"]);
    let more = other.write("more.toml", configuration(&server.url(), 4, &key_file(&secret)));
    let mut extend = vec!["run", more.to_str().unwrap(), "--resume", run.name(), "--extend"];
    other.kgfleet(&extend).expect(USAGE);
    extend.push("--trust-endpoints");
    other.kgfleet(&extend).expect(0).says(&["4 dialogues scored"]);
    other.kgfleet(&["resume", run.name()]).expect(0);
    assert!(other.run().dir.manifest().unwrap().is_as_hashed());
}

#[test]
fn a_pipeline_from_elsewhere_is_as_foreign_as_a_run() {
    let (server, here, there) = (Server::start(), Data::new(), Data::new());
    let judge = format!("connector = 'openai-compatible'\nmodel = '{MODEL}'\nendpoint = '{}'", server.url());
    let file = here.write("facts.toml", judged(1, &judge));
    let finished = here.kgfleet(&["run", file.to_str().unwrap(), "--json"]);
    let name = finished.json()["run"].as_str().unwrap().to_owned();
    // The judge's answers are no verdicts.
    here.kgfleet(&["resume", &name]).expect(1);
    let stage = here.runs().into_iter().find(|run| run.name().contains(".grade.")).unwrap();
    here.kgfleet(&["resume", stage.name()]).expect(1);
    copied(here.path(), there.path());
    let asked = server.gate().take_asked().len();
    assert!(asked > 0);
    let judging = ["rejudge", &name, "--with", file.to_str().unwrap()];
    for verb in [&["resume", &name][..], &["retry", &name], &["resume", stage.name()], &judging] {
        there.kgfleet(verb).expect(USAGE).says(&[&server.url(), "--trust-endpoints"]);
    }
    assert!(server.gate().take_asked().is_empty());
    there.kgfleet(&["retry", &name, "--trust-endpoints"]).expect(1);
    assert!(!server.gate().take_asked().is_empty());
    there.kgfleet(&["resume", stage.name()]).expect(1);
}

#[test]
fn an_archive_of_a_judged_benchmark_is_the_whole_of_it_and_names_no_keys() {
    let (server, here, there) = (Server::with_key(SECRET), Data::new(), Data::new());
    let secret = here.write("the-secret-place", SECRET);
    let judge = format!(
        "connector = 'openai-compatible'\nmodel = '{MODEL}'\nendpoint = '{}'\nkey_file = '{}'",
        server.url(),
        secret.display()
    );
    let config = here.write("facts.toml", judged(2, &judge));
    // The judge's answers are no verdicts.
    let finished = here.kgfleet(&["run", config.to_str().unwrap(), "--json"]);
    let name = finished.json()["run"].as_str().unwrap().to_owned();
    let file = here.path().join("facts.tar.zst");
    let file = file.to_str().unwrap();
    here.kgfleet(&["archive", &name, "--out", file]).expect(0).says(&["names of keys"]);
    let unpacked = tempfile::tempdir().unwrap();
    let head = archive::unpack(Path::new(file), unpacked.path()).unwrap();
    let text =
        |path: &str| String::from_utf8_lossy(&fs::read(unpacked.path().join(path)).unwrap()).into_owned();
    let is_file = |path: &str| unpacked.path().join(path).is_file();
    let texts = head.files.iter().filter(|file| is_file(&file.path));
    let files: BTreeMap<String, String> = texts.map(|file| (file.path.clone(), text(&file.path))).collect();
    let names_keys =
        |(_, text): &(&String, &String)| text.contains("the-secret-place") || text.contains("key_file");
    assert!(files.iter().find(names_keys).is_none(), "it names the key");
    there.unpack(Path::new(file));
    let table = |data: &Data| data.kgfleet(&["table", &name]).expect(0).stdout;
    assert_eq!(table(&there), table(&here));
    assert_eq!(there.kgfleet(&["verify", &name]).stdout, here.kgfleet(&["verify", &name]).stdout);
    there.kgfleet(&["retry", &name]).expect(USAGE).says(&[
        &server.url(),
        "without a key",
        "--trust-endpoints",
    ]);
}
