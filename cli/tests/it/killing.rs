//! `kill -9` at any moment: nothing durable is lost, nothing durable is asked again.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use domain::seed::dialogue_seed;
use domain::{DialogueKey, RecordId};
use rustix::process::Signal;
use serde_json::Value;
use vllm_sim::identity::Draw;

use crate::harness::{
    CHEAP_TASKS, Data, Finished, NT_TASK, RunOnDisk, Running, Server, TURTLE_PROMPT, TURTLE_TASK, process,
    server,
};

/// Processes killed, over as many runs as that takes.
const KILLS: u64 = 50;

/// Runs at most. A run that ends before its first kill says that the moments are chosen badly.
const RUNS_MAX: u64 = 25;

/// Iterations of each task: dialogues of a run are four times as many.
const ITERATIONS: u32 = 100;

/// Between two looks at the log of a process that is to be killed.
const LOOK_EVERY: Duration = Duration::from_micros(500);

/// When a process is killed. Drawn from a seed; which dialogue it hits is up to the machine, and the verdict must be the
/// same wherever it hits.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// So long after the start: while it plans, reads the log, passes a torn tail, starts its evaluators.
    Delay(Duration),
    /// When the log has grown by so many bytes: in the middle of asking, judging and committing.
    Growth(u64),
    /// When all is recorded and files are being exported.
    Export,
}

impl Moment {
    fn draw(number: u64) -> Self {
        let draw = |part: u64| Draw::new(&[0x6b69_6c6c, number, part]).unit();
        match draw(0) {
            0.0..0.2 => Self::Delay(Duration::from_secs_f64(draw(1) * 0.5)),
            0.2..0.3 => Self::Export,
            // One record takes about 300 bytes of the log.
            _ => Self::Growth(1 + (draw(1) * 15_000.0) as u64),
        }
    }

    /// Waits for the moment; false when the process ended before.
    fn wait(self, process: &mut Running, data: &Data, started: Instant, bytes_before: u64) -> bool {
        loop {
            let here = match self {
                Self::Delay(delay) => started.elapsed() >= delay,
                Self::Growth(bytes) => log_bytes(data) >= bytes_before + bytes,
                Self::Export => data.runs().iter().any(|run| run.exported().next().is_some()),
            };
            if process.has_ended() {
                return false;
            }
            if here {
                return true;
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

fn log_bytes(data: &Data) -> u64 {
    data.runs().iter().map(RunOnDisk::log_bytes).sum()
}

/// One life of a process: how it ended, or nothing when it was killed.
fn live(data: &Data, arguments: &[String], moment: Option<Moment>) -> Option<Finished> {
    let bytes_before = log_bytes(data);
    let started = Instant::now();
    let mut process = data.start(arguments);
    if moment.is_some_and(|moment| moment.wait(&mut process, data, started, bytes_before)) {
        process.signal(Signal::KILL);
        drop(process);
        return None;
    }
    Some(process.finish())
}

#[test]
fn a_run_killed_at_any_moment_ends_with_one_record_per_dialogue() {
    let server = Server::start();
    let (mut kills, mut runs, mut hit) = (0, 0, 0);
    while kills < KILLS {
        runs += 1;
        assert!(runs <= RUNS_MAX, "{runs} runs took only {kills} kills");
        let run_seed = runs;
        let data = Data::new();
        let mut start = server.run_arguments(&CHEAP_TASKS, ITERATIONS, 16);
        start.extend(["--seed".to_owned(), run_seed.to_string()]);
        let planned = CHEAP_TASKS.len() * ITERATIONS as usize;
        let mut durable: BTreeMap<DialogueKey, RecordId> = BTreeMap::new();
        server.gate().take_asked();
        loop {
            let arguments = match data.runs().first() {
                // The same command goes on as well, unless the run is finished: then it would start another one.
                Some(run) if kills % 2 == 0 || durable.len() == planned => {
                    ["resume", run.name(), "--evaluators", "1"].map(str::to_owned).to_vec()
                }
                _ => start.clone(),
            };
            let moment = (kills < KILLS).then(|| Moment::draw(kills));
            let finished = live(&data, &arguments, moment);

            let asked: HashSet<u64> = server.gate().take_asked().into_iter().collect();
            for key in durable.keys() {
                assert!(
                    !asked.contains(&dialogue_seed(run_seed, key)),
                    "{key} was durable and was asked again"
                );
            }
            let mut now = BTreeMap::new();
            if let Some(run) = data.runs().first() {
                let ids = run.records().into_iter().map(|(key, entry)| (key, entry.attempt.id));
                now.extend(ids);
            }
            for (key, id) in &durable {
                assert_eq!(now.get(key), Some(id), "{key} was durable and is lost after {moment:?}");
            }
            hit += usize::from(finished.is_none() && now.len() > durable.len());
            durable = now;
            match finished {
                None => kills += 1,
                Some(finished) => {
                    finished.expect(0);
                    break;
                }
            }
        }
        let run = data.run();
        assert_eq!(durable.len(), planned);
        assert!(durable.keys().all(|key| key.model.as_str() == server::MODEL));
        let results = run.exported().find(|path| path.to_string_lossy().ends_with("_result.json"));
        let results: Vec<Value> = serde_json::from_slice(&std::fs::read(results.unwrap()).unwrap()).unwrap();
        assert_eq!(results.len(), planned);
        let verified = data.kgfleet(&["verify", run.name()]).expect(0);
        verified.prints(&[&format!("{planned} dialogues: {planned} scored, 0 failed; 0 records superseded")]);
    }
    eprintln!("{kills} kills over {runs} runs; {hit} of them while records were being written");
}

#[test]
fn a_flip_in_the_last_frame_of_a_finished_run_is_damage_to_every_verb() {
    let server = Server::start();
    let data = Data::new();
    let arguments = server.run_arguments(&[NT_TASK], 3, 4);
    data.kgfleet(&arguments).expect(0);
    let run = data.run();
    let segment = run.dir.log().join("00000001-00000001.kglog");
    let whole = std::fs::read(&segment).unwrap();
    let magic = b"\x89KGF\r\n\x1a\n";
    let frames = whole.windows(magic.len()).enumerate().filter(|(_, bytes)| bytes == magic);
    let frames: Vec<usize> = frames.map(|(at, _)| at).collect();
    // The last one says that the run has ended; the last record is in the one before.
    let [.., last, event] = frames[..] else { panic!("{frames:?}") };
    let lost = run.entries().pop().unwrap().key;

    // One of every part of a frame: magic, lengths, checksums, payload. Every byte is flipped in `results`.
    for at in [last, last + 9, last + 13, last + 17, last + 21, last + 25, last + 40, event - 1] {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x10;
        std::fs::write(&segment, &flipped).unwrap();
        let verified = data.kgfleet(&["verify", run.name()]).expect(1);
        verified.prints(&["corrupt bytes", "the log is damaged", &lost.to_string()]);
        data.kgfleet(&["show", run.name(), &lost.to_string()]).expect(2);
        data.kgfleet(&["export", run.name(), "--format", "jsonl"]).expect(0);
        assert_eq!(std::fs::read(&segment).unwrap(), flipped, "flipped at {at}");
    }
    let damaged = std::fs::read(&segment).unwrap();
    for arguments in [arguments, vec!["resume".to_owned(), run.name().to_owned()]] {
        data.kgfleet(&arguments).expect(0);
        assert_eq!(std::fs::read(&segment).unwrap(), damaged);
    }
    let verified = data.kgfleet(&["verify", run.name()]).expect(1);
    verified.prints(&["3 dialogues: 3 scored", "the log is damaged"]);
}

#[test]
fn evaluation_processes_end_with_the_process_that_started_them() {
    let server = Server::stuck_at(TURTLE_PROMPT);
    let data = Data::new();
    let mut process = data.start(&server.run_arguments(&[NT_TASK, TURTLE_TASK], 10, 32));
    // Judged means that there is a process that judges.
    data.until_recorded(&mut process, 10);
    let pid = process.pid();
    let evaluators = process.children();
    assert!(!evaluators.is_empty());
    process.signal(Signal::KILL);
    drop(process);
    let deadline = Instant::now() + Duration::from_secs(60);
    while evaluators.iter().any(|&evaluator| process::is_alive(evaluator)) {
        assert!(
            Instant::now() < deadline,
            "evaluation processes {evaluators:?} of the killed {pid:?} live on"
        );
        std::thread::sleep(LOOK_EVERY);
    }
}
