//! Caps: runs on one machine that end once they have used as much as they may, and go on under a higher cap.

use std::collections::BTreeSet;

use crate::harness::server::MODEL;
use crate::harness::{Data, Finished, NT_TASK, Server};

const ITERATIONS: usize = 40;

/// Answers until the server holds back: the first record is one of them, and reaches a cap of one token.
const ANSWERS: usize = 2;

/// A configuration of the task for the model at the server, under this cap.
fn configuration(data: &Data, server: &Server, cap: &str) -> String {
    let text = format!(
        "name = 'capped'\niterations = {ITERATIONS}\ntasks = ['{NT_TASK}']\n\
         [[models]]\nlabel = '{MODEL}'\nconnector = 'openai-compatible'\nendpoint = '{}'\n[cap]\n{cap}\n",
        server.url()
    );
    data.write("capped.toml", text).to_str().unwrap().to_owned()
}

/// Runs with one dialogue at a time, which the server holds back until the process has seen that the cap is reached.
fn until_capped(data: &Data, server: &Server, arguments: &[&str]) -> Finished {
    server.gate().close_after(ANSWERS);
    let mut process = data.start(arguments);
    process.until_it_says("its cap is reached");
    server.gate().open();
    let ended = process.finish().expect(3);
    let records = data.run().records().len();
    // The one that was held back, and one that began before its worker heard of the end.
    assert!((1..=ANSWERS + 2).contains(&records), "{records} records: {ended}");
    ended.says(&["stopped; what was stored is kept"])
}

#[test]
fn a_run_ends_at_its_cap_and_goes_on_under_a_higher_one() {
    let (data, server) = (Data::new(), Server::start());
    let file = configuration(&data, &server, "tokens = 1");
    let run = ["run", &file, "--no-sandbox", "--concurrency", "1"];
    let told = ["capped: ", " of 1 tokens used; raise `cap.tokens`", "`kgfleet run CONFIG` goes on"];
    until_capped(&data, &server, &run).says(&told);
    let before = data.run().records();
    let mut asked = server.gate().take_asked();
    assert_eq!(asked.len(), before.len(), "what was in flight has its record");

    // Under the same cap nothing is asked.
    let name = data.run().name().to_owned();
    data.kgfleet(&["resume", &name, "--no-sandbox"]).expect(3).says(&told);
    assert!(server.gate().take_asked().is_empty());
    assert_eq!(data.run().records(), before);

    configuration(&data, &server, "tokens = 1_000_000_000");
    let changes = ["- cap.tokens = 1", "+ cap.tokens = 1000000000", "40 dialogues scored"];
    data.kgfleet(&run).expect(0).says(&changes);
    let after = data.run().records();
    assert!(before.iter().all(|(key, entry)| after[key] == *entry));
    asked.extend(server.gate().take_asked());
    assert_eq!((asked.len(), after.len()), (ITERATIONS, ITERATIONS));
    assert_eq!(asked.iter().collect::<BTreeSet<_>>().len(), ITERATIONS, "nothing is asked twice");
}
