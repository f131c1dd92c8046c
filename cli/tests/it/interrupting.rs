//! Ctrl-C: once finishes the dialogues in flight, twice drops them. Both leave a run that can be resumed.

use rustix::process::Signal;

use crate::harness::{Data, NT_TASK, RunOnDisk, Running, Server};

const ITERATIONS: u32 = 12;
const IN_FLIGHT: u32 = 4;

/// A run of which the first question was answered, or not, and the next ones wait for their answers.
fn waiting(server: &Server, data: &Data, first_is_answered: bool) -> Running {
    server.gate().close_after(usize::from(first_is_answered));
    let process = data.start(&server.run_arguments(&[NT_TASK], ITERATIONS, IN_FLIGHT));
    server.gate().until_held(if first_is_answered { IN_FLIGHT as usize } else { 1 });
    process
}

/// Goes on to the end. Every dialogue with a record keeps it and is not asked again.
fn goes_on(server: &Server, data: &Data, run: &RunOnDisk) {
    let before = run.records();
    server.gate().open();
    server.gate().take_asked();
    data.kgfleet(&["resume", run.name()]).expect(0).says(&["12 dialogues scored"]);
    let after = run.records();
    assert!(before.iter().all(|(key, entry)| after[key] == *entry));
    assert_eq!(server.gate().take_asked().len(), ITERATIONS as usize - before.len());
    data.kgfleet(&["verify", run.name()]).expect(0);
}

#[test]
fn one_interrupt_finishes_what_is_in_flight() {
    for signal in [Signal::INT, Signal::TERM] {
        let (server, data) = (Server::start(), Data::new());
        let mut process = waiting(&server, &data, true);
        process.signal(signal);
        process.until_it_says("waiting for the answers to 4 calls");
        server.gate().open();
        let finished = process.finish().expect(130);
        let run = data.run();
        let resume = format!("kgfleet resume {}", run.name());
        finished.says(&["5 dialogues scored", &resume]).prints(&[NT_TASK]);
        let records = run.records();
        assert_eq!(records.len(), 1 + IN_FLIGHT as usize);
        assert!(records.values().all(|entry| entry.outcome.is_scored()));
        goes_on(&server, &data, &run);
    }
}

#[test]
fn two_interrupts_drop_what_is_in_flight() {
    let (server, data) = (Server::start(), Data::new());
    let mut process = waiting(&server, &data, false);
    process.signal(Signal::INT);
    process.until_it_says("interrupt again to drop");
    process.signal(Signal::INT);
    process.finish().expect(130).says(&["dropping the dialogues in flight", "0 dialogues scored"]);
    let run = data.run();
    assert!(run.records().is_empty());
    goes_on(&server, &data, &run);
}
