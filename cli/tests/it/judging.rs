//! Deaths of evaluation processes change no score: a perfect model keeps full marks.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;

use domain::Outcome;
use rustix::process::Signal;

use crate::harness::{Data, Running};

/// Tasks that lose points when their answers are judged with less than full effort.
const TASKS: [&str; 2] = ["Text2SparqlExecEvalListOrganizational", "Text2SparqlExecEvalListOrgaNumerical"];
const ITERATIONS: usize = 150;
const DIALOGUES: usize = TASKS.len() * ITERATIONS;

/// Between two signals, in records.
const RECORDS_BETWEEN: usize = 20;

/// A model that knows everything.
fn perfect(data: &Data) -> PathBuf {
    let text = format!(
        "name = 'perfect'\nseed = 7\niterations = {ITERATIONS}\ntasks = {TASKS:?}\n\
         [[models]]\nlabel = 'perfect'\nconnector = 'simulated'\nskill = 1.0\nconcurrency = 16\n"
    );
    data.write("perfect.toml", text)
}

/// Starts it in a process group of its own.
fn start(data: &Data) -> Running {
    let configuration = perfect(data);
    let arguments = ["run", configuration.to_str().unwrap(), "--evaluators", "1"];
    Running::start(data.command(&arguments).process_group(0))
}

/// Waits until there are more records; how many, or nothing when the process ended before.
fn until_more(data: &Data, process: &mut Running, than: usize) -> Option<usize> {
    loop {
        let ended = process.has_ended();
        let records = data.runs().first().map_or(0, |run| run.entries().len());
        if ended {
            return None;
        }
        if records > than {
            return Some(records);
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[track_caller]
fn all_perfect(data: &Data) {
    let run = data.run();
    let records = run.records();
    assert_eq!(records.len(), DIALOGUES);
    for (key, entry) in records {
        let Outcome::Scored { scores, infos } = &entry.outcome else { panic!("{key}: {:?}", entry.outcome) };
        let best = scores.values().filter_map(|score| score.pointer("/combined").or(Some(score))?.as_f64());
        let best = best.fold(0.0, f64::max);
        let limited = serde_json::to_string(infos).unwrap().contains("evaluation limit");
        assert!(best == 1.0 && !limited, "{key}: {scores:?} {infos:?}");
        assert!(entry.rounds.len() == 1, "{key}: a perfect answer needs no second round");
    }
    data.kgfleet(&["verify", run.name()]).expect(0);
}

#[test]
fn signals_to_the_whole_group_change_no_score() {
    let data = Data::new();
    let (mut records, mut stops) = (0, 0);
    loop {
        let mut process = start(&data);
        if until_more(&data, &mut process, records + RECORDS_BETWEEN).is_none() {
            process.finish().expect(0);
            break;
        }
        process.signal_group([Signal::INT, Signal::TERM][stops % 2]);
        stops += 1;
        let finished = process.finish();
        records = data.run().entries().len();
        // What was in flight may have been all that was left. The same command again would start another run.
        if records == DIALOGUES {
            finished.expect(0);
            break;
        }
        finished.expect(130);
    }
    assert!(stops >= 3, "stopped {stops} times");
    all_perfect(&data);
}
