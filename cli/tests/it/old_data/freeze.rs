//! Makes the archives. By hand, once for a version that wrote something new:
//! `KGFLEET_FREEZE=NAME cargo test -p cli --test it old_data::freeze -- --ignored`.

use std::path::Path;
use std::time::{Duration, Instant};

use domain::control::BenchmarkView;
use rustix::process::Signal;

use super::{EXACT, JUDGED, LEASE, Left, NAME_OF_WORKER, QUEUE, archive};
use crate::harness::cluster::Coordinator;
use crate::harness::{Cluster, Data, Running, free_port};

/// How long a state may take to come.
const PATIENCE: Duration = Duration::from_secs(120);

const TASKS: &str = r#"["RdfFriendCount-nt-1", "RdfFriendCount-turtle-1", "RdfSyntaxFixList-turtle", "SparqlSyntaxFixingListLcQuad"]"#;

fn models(skills: &[(&str, f64)]) -> String {
    let model = |(label, skill): &(&str, f64)| {
        format!("[[models]]\nlabel = \"{label}\"\nconnector = \"simulated\"\nskill = {skill}\n")
    };
    skills.iter().map(model).collect()
}

fn judges(roles: &[&str], skill: f64) -> String {
    let judge = |role: &&str| {
        format!("[judges.{role}]\nlabel = \"{role}\"\nconnector = \"simulated\"\nskill = {skill}\n")
    };
    roles.iter().map(judge).collect()
}

fn exact(iterations: u32) -> String {
    let models = models(&[("strong", 0.9), ("weak", 0.3)]);
    format!("name = \"old run\"\nseed = 21\niterations = {iterations}\ntasks = {TASKS}\n{models}")
}

fn judged_facts() -> String {
    format!(
        "name = \"old facts\"\npipeline = \"judged-facts\"\nseed = 22\niterations = 12\ntasks = [\"FactExtractStatic\"]\n{}{}",
        models(&[("middling", 0.5), ("weak", 0.2)]),
        judges(&["grader", "reviewer"], 0.9)
    )
}

fn kghalubench() -> String {
    format!(
        "name = \"old halu\"\npipeline = \"kghalubench\"\npack = \"halu-demo\"\nseed = 23\niterations = 5\n\
         tasks = [\"KGHalu-01\"]\n{}{}",
        models(&[("able", 0.9), ("feeble", 0.3)]),
        judges(&["writer", "abstention", "embedder", "classifier", "entailment", "expert"], 1.0)
    )
}

/// Where an archive is written; never where there is one.
fn place(what: &str) -> std::path::PathBuf {
    let name =
        std::env::var("KGFLEET_FREEZE").expect("KGFLEET_FREEZE names what is frozen, such as 0.1.0-5689a37");
    let folder = archive::folder().join(name).join(what);
    std::fs::create_dir_all(folder.parent().unwrap()).unwrap();
    assert!(!folder.with_extension("sealed").exists(), "{} is frozen", folder.display());
    folder
}

/// Writes the archive, and beside it what it holds.
fn keep(data: &Data, place: &Path) {
    let left = serde_json::to_string_pretty(&Left::of(data)).unwrap();
    archive::seal(data.path(), &place.with_extension("sealed"));
    std::fs::write(place.with_extension("json"), left + "\n").unwrap();
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain until {what}");
    }
}

#[test]
#[ignore = "writes testdata; run by hand once for a version that writes something new, never for an old one"]
fn freeze_a_folder() {
    let place = place("folder");
    let data = Data::new();
    // Finished, extended, and killed while it asked what was new.
    let file = data.write(EXACT, exact(2));
    let file = file.to_str().unwrap();
    let slowly = ["--concurrency", "1", "--evaluators", "1", "--export", "csv"];
    data.kgfleet(&[&["run", file][..], &slowly].concat()).expect(0);
    let run = data.run().name().to_owned();
    data.write(EXACT, exact(6));
    let mut process = data.start(&[&["run", file, "--resume", &run, "--extend"][..], &slowly].concat());
    data.until_recorded(&mut process, 26);
    process.signal(Signal::KILL);
    drop(process);

    // Killed when the first answers had been graded.
    let file = data.write(JUDGED, judged_facts());
    let mut process = data.start(&[&["run", file.to_str().unwrap()][..], &slowly].concat());
    until("a grader has said something", || {
        assert!(!process.has_ended(), "it was over too soon");
        data.runs().iter().any(|run| run.name().contains(".grade.") && !run.entries().is_empty())
    });
    process.signal(Signal::KILL);
    drop(process);
    keep(&data, &place);
}

#[test]
#[ignore = "writes testdata; run by hand once for a version that writes something new, never for an old one"]
fn freeze_a_fleet() {
    let place = place("fleet");
    let mut cluster = Cluster::with_lease(LEASE).expect("redis-server");
    let (exact, judged) = (cluster.data.write(EXACT, exact(4)), cluster.data.write(JUDGED, kghalubench()));
    // The one model that is asked fails for good at some prompts, and never answers some.
    let simulator = r#"
        models = [{ name = "strong" }]
        [[faults.rules]]
        when = { probability = 0.5 }
        fault = { status = { code = 400 } }
        prompt_contains = "in turtle syntax"
        [[faults.rules]]
        when = "always"
        fault = "hang"
        prompt_contains = "SPARQL"
    "#;
    let simulator = cluster.data.write("simulator.toml", simulator);
    let places = [free_port(), free_port()].map(|port| format!("127.0.0.1:{port}"));
    let _first = cluster.data.start(&[
        "simulate",
        simulator.to_str().unwrap(),
        "--seed",
        "21",
        "--listen",
        &places[0],
    ]);
    let _second =
        cluster.data.start(&["simulate", "--benchmark", judged.to_str().unwrap(), "--listen", &places[1]]);
    let coordinator = cluster.coordinator();
    let submitted = [&exact, &judged].map(|file| {
        let finished = cluster.kgfleet(&coordinator, &["submit", file.to_str().unwrap()]).expect(0);
        finished.stdout.trim().to_owned()
    });
    // Whoever is not named here is not asked: the judged benchmark stops before the stage of its classifier.
    let second = format!("http://{}", places[1]);
    let mut more = vec!["--endpoint", &second, "--concurrency", "8"];
    for model in ["strong", "able", "feeble", "writer", "abstention", "embedder"] {
        more.extend(["--model", model]);
    }
    let worker =
        cluster.worker_with(NAME_OF_WORKER, coordinator.port, &format!("http://{}", places[0]), &more);
    until("all that can be answered is answered", || {
        let views = submitted.each_ref().map(|name| cluster.status(&coordinator, name));
        let done = |view: &BenchmarkView, stage: &str| {
            let cells = view.cells.iter().filter(|cell| cell.task.as_str() == stage);
            let counts: Vec<(u64, u64)> = cells.map(|cell| (cell.scored, cell.planned)).collect();
            !counts.is_empty() && counts.iter().all(|(scored, planned)| scored == planned && *planned > 0)
        };
        views[0].scored + views[0].failed >= 12 && done(&views[1], "similarity") && done(&views[1], "abstain")
    });
    stop(&cluster, coordinator, worker, &submitted[0]);
    let queue = written_to(&cluster);
    cluster.data.write(QUEUE, queue);
    cluster.redis.kill();
    std::fs::remove_file(simulator).unwrap();
    keep(&cluster.data, &place);
}

/// Kills a worker, and the coordinator once it has noticed: a lease that lasts until the year of the archive would not be over
/// for whoever has an earlier clock.
fn stop(cluster: &Cluster, coordinator: Coordinator, worker: Running, run: &str) {
    worker.signal(Signal::KILL);
    worker.finish();
    until("the lost leases have ended", || {
        let view = cluster.status(&coordinator, run);
        view.models.iter().all(|model| model.units_leased == 0)
            && view.models.iter().any(|model| model.units_suspect > 0)
    });
    coordinator.process.signal(Signal::KILL);
    coordinator.process.finish();
}

/// Everything that Redis was told, as commands in its own protocol, which every version understands.
fn written_to(cluster: &Cluster) -> Vec<u8> {
    let folder: Vec<String> = cluster.redis.say("CONFIG GET dir");
    let folder = Path::new(&folder[1]).join("appendonlydir");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let mut told: Vec<_> = files.filter(|file| file.to_str().unwrap().ends_with(".incr.aof")).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    std::fs::read(told.remove(0)).unwrap()
}
