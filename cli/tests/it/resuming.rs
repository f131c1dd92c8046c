//! The same command again continues an unfinished run, and starts a new one if the run is finished.

use domain::control::BenchmarkView;
use rustix::process::Signal;

use crate::harness::{Data, NT_TASK, Server, TURTLE_PROMPT, TURTLE_TASK};

const TASKS: [&str; 2] = [NT_TASK, TURTLE_TASK];
const ITERATIONS: u32 = 10;

/// A run of which one task is recorded and the other was asked when its process was killed.
fn half_a_run(server: &Server) -> Data {
    let data = Data::new();
    let mut process = data.start(&server.run_arguments(&TASKS, ITERATIONS, 64));
    data.until_recorded(&mut process, ITERATIONS as usize);
    process.signal(Signal::KILL);
    drop(process);
    assert!(data.run().records().keys().all(|key| key.task.as_str() == NT_TASK));
    data
}

#[test]
fn the_same_command_goes_on_and_then_starts_anew() {
    let server = Server::stuck_at(TURTLE_PROMPT);
    let data = half_a_run(&server);
    let before = data.run().records();
    let listed = data.kgfleet(&["status", "--json"]).expect(0).json();
    assert_eq!((&listed["state"], &listed["scored"]), (&"interrupted".into(), &ITERATIONS.into()));
    let name = data.run().name().to_owned();
    data.kgfleet(&["verify", &name]).expect(1).prints(&["10 planned dialogues have no record yet"]);

    server.gate().take_asked();
    let again = server.run_arguments(&TASKS, ITERATIONS, 64);
    data.kgfleet(&again).expect(0).says(&["continuing run", &name, "20 dialogues scored, 0 failed"]);
    let after = data.run().records();
    assert_eq!(after.len(), 20);
    assert!(before.iter().all(|(key, entry)| after[key] == *entry), "durable records stay as they were");
    assert_eq!(server.gate().take_asked().len(), 10, "only what was missing is asked");

    data.kgfleet(&again).expect(0).says(&["starting run", "20 dialogues scored, 0 failed"]);
    let runs = data.runs();
    assert_eq!(runs.len(), 2);
    assert_eq!(runs.iter().map(|run| run.records().len()).collect::<Vec<_>>(), [20, 20]);
    assert_eq!(server.gate().take_asked().len(), 20);
}

#[test]
fn resume_goes_on_and_another_command_does_not() {
    let server = Server::stuck_at(TURTLE_PROMPT);
    let data = half_a_run(&server);
    let name = data.run().name().to_owned();
    // Another seed is another run.
    let mut other = server.run_arguments(&TASKS[..1], 2, 4);
    other.extend(["--seed".to_owned(), "5".to_owned()]);
    data.kgfleet(&other).expect(0).says(&["starting run"]);
    assert_eq!(data.runs().len(), 2);

    data.kgfleet(&["resume", &name[..4]]).expect(2).says(&["2 runs", &name]);
    data.kgfleet(&["resume", &name[..name.len() - 1]]).expect(0).says(&["20 dialogues scored"]);
    data.kgfleet(&["verify", &name]).expect(0);
    data.kgfleet(&["verify", "latest"]).expect(0).prints(&["2 dialogues"]);
    // A finished run has nothing to ask; its table and exports are made again.
    server.gate().take_asked();
    data.kgfleet(&["resume", &name]).expect(0).says(&["20 dialogues scored"]).prints(&[NT_TASK, TURTLE_TASK]);
    assert!(server.gate().take_asked().is_empty());
}

#[test]
fn one_run_is_shown_with_the_room_that_it_needs_until_it_is_over() {
    let server = Server::stuck_at(TURTLE_PROMPT);
    let data = half_a_run(&server);
    let run = data.run();
    let interrupted = data.kgfleet(&["status", "latest"]).expect(0);
    let interrupted = interrupted.prints(&[
        &format!("run {} interrupted: 10/20 dialogues, 0 failed\n", run.name()),
        "records: ",
        " so far, about ",
        " more; ",
        " free\n",
        TURTLE_TASK,
    ]);
    assert!(!interrupted.stderr.contains("do not fit"), "{interrupted}");
    let shown = data.kgfleet(&["status", run.name(), "--json"]).expect(0).json();
    assert_eq!((&shown["state"], &shown["phase"]), (&"interrupted".into(), &"active".into()));
    let disk = &shown["disk"];
    // As many records are there as are to come.
    assert_eq!(
        (&disk["written_bytes"], &disk["coming_bytes"]),
        (&run.log_bytes().into(), &run.log_bytes().into())
    );
    assert!(disk["free_bytes"].as_u64().unwrap() > 0, "{shown}");
    let view: BenchmarkView = serde_json::from_value(shown).unwrap();
    assert_eq!((view.scored, view.models.len()), (10, 1));

    server.gate().take_asked();
    data.kgfleet(&["resume", run.name()]).expect(0);
    let over = data.kgfleet(&["status", run.name()]).expect(0);
    assert!(over.stdout.starts_with(&format!("run {} finished: 20/20 dialogues", run.name())), "{over}");
    assert!(!over.stdout.contains("records: "), "{over}");
    let over = data.kgfleet(&["status", run.name(), "--json"]).expect(0).json();
    assert_eq!((&over["state"], over.get("disk")), (&"finished".into(), None));
}
