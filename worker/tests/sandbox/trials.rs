//! The tests.

use std::net::TcpListener;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{Either, select};
use rustix::process::{Signal, getpgid};
use tasks::{EvaluationLimits, Limit};
use worker::evaluate::sandbox::SandboxLimits;

use crate::child::{self, Report};
use crate::hostile::{self, Expected, JSONLD, LARGE, LIST, NT, QUERY, TURTLE};
use crate::pool::{LIMITS, Pool, block_on, exhausted, limits_named};

/// All tests by name.
pub const ALL: [(&str, fn()); 15] = [
    ("every_hostile_answer_has_a_verdict_and_neighbours_do_not_notice", hostile_answers),
    ("neighbours_are_judged_while_an_answer_runs_on", neighbours),
    ("a_product_over_a_large_graph_is_ended", large_graph),
    ("an_answer_above_the_size_limit_is_refused_unread", size),
    ("a_dead_child_is_replaced_and_counted", replacement),
    ("an_equal_answer_is_judged_once_unless_it_hit_a_limit", recall),
    ("processor_time_ends_what_the_engine_does_not", processor_time),
    ("requests_to_end_are_not_for_children", requests_to_end),
    ("an_answer_whose_child_was_killed_is_judged_in_full", killed),
    ("an_answer_whose_child_was_stopped_is_judged_in_full", stopped),
    ("a_long_answer_does_not_wait_for_a_child_that_does_not_read", unread),
    ("an_answer_whose_children_are_always_killed_is_not_judged", always_killed),
    ("tasks_that_cannot_be_loaded_are_an_error_of_ours", no_tasks),
    ("a_locked_down_process_can_open_nothing", locked_down),
    ("without_its_limits_the_kernel_still_refuses_files_sockets_and_programs", confined),
];

const HOUR: Duration = Duration::from_secs(3600);

/// Limits so high that the engine never stops by itself.
const PATIENT: EvaluationLimits =
    EvaluationLimits { query_time: HOUR, answer_bytes_max: 16 << 20, nesting_max: 256, rows_max: 1_000_000 };

fn hostile_answers() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let pool = Pool::start(&hostile::SMALL, 2, LIMITS);
    let mut failures = Vec::new();
    block_on(async {
        for answer in hostile::all(&address) {
            let judged = pool.judge(answer.task, answer.answer);
            let neighbour = pool.judge_reference(QUERY);
            let (verdict, ()) = futures::join!(judged, neighbour);
            let problem = match (verdict, answer.expected) {
                (Err(error), _) => Some(error.to_string()),
                (Ok(verdict), expected) => {
                    let limits = limits_named(&verdict);
                    let scores = verdict.scores.values().filter_map(serde_json::Value::as_f64);
                    let out_of_range = scores.clone().find(|score| !(0.0..=1.0).contains(score));
                    let combined = verdict.scores.get("combined").and_then(serde_json::Value::as_f64);
                    let worthless = combined.is_none_or(|score| score <= 0.2);
                    match expected {
                        _ if out_of_range.is_some() => Some(format!("scores {:?}", verdict.scores)),
                        _ if limits.contains(&Limit::Crash) => Some("a crash instead of a limit".to_owned()),
                        Expected::Limit(wanted) if !wanted.iter().any(|limit| limits.contains(limit)) => {
                            Some(format!("expected one of {wanted:?}, it names {limits:?}"))
                        }
                        Expected::Exhausted if !exhausted(&verdict) => {
                            Some(format!("infos {:?}", verdict.infos))
                        }
                        Expected::Worthless if !worthless => Some(format!("scores {:?}", verdict.scores)),
                        _ => None,
                    }
                }
            };
            failures.extend(problem.map(|problem| format!("{}: {problem}", answer.name)));
        }
        for task in [QUERY, TURTLE, JSONLD, NT, LIST] {
            pool.judge_reference(task).await;
        }
    });
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    listener.set_nonblocking(true).unwrap();
    let called = listener.accept().map(|(_, from)| from);
    assert_eq!(
        called.map_err(|error| error.kind()),
        Err(std::io::ErrorKind::WouldBlock),
        "an answer called out"
    );
}

fn neighbours() {
    // With these limits the endless query cannot have ended before fifty others are judged.
    let limits = SandboxLimits { cpu_seconds: 3600, ..LIMITS };
    let pool = Pool::start_with(&[QUERY, TURTLE], 2, limits, PATIENT);
    block_on(async {
        let endless = pool.judge(QUERY, hostile::endless()).boxed();
        let neighbours = async {
            for _ in 0..25 {
                pool.judge_reference(QUERY).await;
                pool.judge_reference(TURTLE).await;
            }
        };
        let first = select(endless, neighbours.boxed()).await;
        assert!(matches!(first, Either::Right(_)), "the endless query ended");
    });
    assert_eq!(pool.died(), 0);
}

fn large_graph() {
    // The engine's own clock is set too late to help.
    let pool = Pool::start_with(&[LARGE], 1, LIMITS, PATIENT);
    block_on(async {
        let verdict = pool.judge(LARGE, hostile::sorted_product()).await.unwrap();
        assert_eq!(verdict.scores["combined"], 0.2, "the query parses");
        assert!(exhausted(&verdict), "{:?}", verdict.infos);
        // Time is proven by the first child that did not listen; memory takes a second one.
        let deaths = if limits_named(&verdict) == [Limit::Memory] { 2 } else { 1 };
        assert_eq!(pool.died(), deaths, "{:?}", verdict.infos);
        pool.judge_reference(LARGE).await;
    });
}

fn size() {
    let evaluation = EvaluationLimits { answer_bytes_max: 1 << 20, ..EvaluationLimits::default() };
    let pool = Pool::start_with(&[QUERY, TURTLE, LIST], 1, LIMITS, evaluation);
    block_on(async {
        for task in [QUERY, TURTLE] {
            // Far above the limit, and what it would cost to judge it would end the child.
            let verdict = pool.judge(task, hostile::doubling() + &" ".repeat(4 << 20)).await.unwrap();
            assert_eq!(limits_named(&verdict), [Limit::Size], "{task}");
        }
        pool.judge(LIST, "x".repeat(4 << 20)).await.unwrap();
        pool.judge_reference(QUERY).await;
    });
    assert_eq!(pool.died(), 0, "nobody had to die for it");
}

fn replacement() {
    // Time enough to run out of memory.
    let limits = SandboxLimits { cpu_seconds: 3600, ..LIMITS };
    let pool = Pool::start_with(&[QUERY], 1, limits, PATIENT);
    block_on(async {
        for _ in 0..3 {
            let verdict = pool.judge(QUERY, hostile::doubling()).await.unwrap();
            assert_eq!(verdict.scores["combined"], 0.2, "the query parses");
            assert_eq!(limits_named(&verdict), [Limit::Memory]);
            pool.judge_reference(QUERY).await;
        }
    });
    let stats = pool.sandbox.stats();
    assert_eq!(stats.judged.load(Ordering::Relaxed), 6);
    assert_eq!(
        stats.died.load(Ordering::Relaxed),
        6,
        "memory is the answer's when a fresh child runs out of it, too"
    );
    assert_eq!(stats.started.load(Ordering::Relaxed), 7, "the first one and a replacement for each");
}

fn recall() {
    let limits = SandboxLimits { cpu_seconds: 3600, ..LIMITS };
    let pool = Pool::start_recalling(&[QUERY], limits, PATIENT);
    let stats = || {
        let stats = pool.sandbox.stats();
        (stats.judged.load(Ordering::Relaxed), stats.recalled.load(Ordering::Relaxed))
    };
    block_on(async {
        let wrong = || async { pool.judge(QUERY, "```sparql\nSELECT * {}\n```").await.unwrap() };
        let first = wrong().await;
        assert_eq!(first, wrong().await);
        assert_eq!(stats(), (1, 1));
        pool.judge_reference(QUERY).await;
        assert_eq!(stats(), (2, 1), "another answer");
        for _ in 0..2 {
            let verdict = pool.judge(QUERY, hostile::doubling()).await.unwrap();
            assert_eq!(limits_named(&verdict), [Limit::Memory]);
        }
        assert_eq!(stats(), (4, 1), "what ended a child may have been the moment's fault");
    });
}

fn processor_time() {
    let pool = Pool::start_with(&[QUERY], 1, LIMITS, PATIENT);
    block_on(async {
        let verdict = pool.judge(QUERY, hostile::endless()).await.unwrap();
        assert_eq!(limits_named(&verdict), [Limit::CpuTime]);
    });
    assert_eq!(pool.died(), 1, "its accounts prove it at once");
}

fn requests_to_end() {
    let pool = Pool::start(&[QUERY], 1, LIMITS);
    block_on(async {
        pool.judge_reference(QUERY).await;
        for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
            assert_eq!(pool.signal(signal), 1);
            pool.judge_reference(QUERY).await;
        }
    });
    assert_eq!(pool.died(), 0);
    let own = getpgid(None).unwrap();
    assert!(
        pool.children().into_iter().all(|child| getpgid(Some(child)).unwrap() != own),
        "a group of its own"
    );
}

fn killed() {
    let pool = Pool::start(&[QUERY], 1, LIMITS);
    // Not QUIT: a shell that starts tests in the background has it ignored, and children inherit that.
    let fatal = [Signal::KILL, Signal::ALARM, Signal::XCPU, Signal::ABORT, Signal::USR1];
    block_on(async {
        pool.judge_reference(QUERY).await;
        for signal in fatal {
            pool.end(signal);
            pool.judge_reference(QUERY).await;
        }
    });
    assert_eq!(pool.died(), fatal.len() as u64);
}

fn stopped() {
    // What is stopped never gets on, so the wait may be short; a busy machine must not be taken for it.
    let limits = SandboxLimits { starved_after: Duration::from_secs(2), ..LIMITS };
    let pool = Pool::start(&[QUERY], 1, limits);
    block_on(async {
        pool.judge_reference(QUERY).await;
        pool.stop();
        pool.judge_reference(QUERY).await;
    });
    assert_eq!(pool.died(), 1);
}

fn unread() {
    let limits = SandboxLimits { starved_after: Duration::from_secs(2), ..LIMITS };
    let pool = Pool::start(&[LIST], 1, limits);
    block_on(async {
        pool.judge_reference(LIST).await;
        pool.stop();
        // More than a pipe takes.
        pool.judge(LIST, "x".repeat(4 << 20)).await.unwrap();
    });
    assert_eq!(pool.died(), 1);
}

fn always_killed() {
    let limits = SandboxLimits { cpu_seconds: 3600, ..LIMITS };
    let pool = Pool::start_with(&[QUERY], 1, limits, PATIENT);
    let error = block_on(async {
        let judged = pool.judge(QUERY, hostile::endless()).boxed();
        let killer = async {
            loop {
                pool.signal(Signal::KILL);
                tokio::task::yield_now().await;
            }
        };
        match select(judged, killer.boxed()).await {
            Either::Left((judged, _)) => judged.unwrap_err(),
            Either::Right(((), _)) => unreachable!("it kills for ever"),
        }
    });
    assert!(matches!(error, worker::EvaluatorError::Interrupted { .. }), "{error}");
    block_on(pool.judge_reference(QUERY));
}

fn no_tasks() {
    let pool = Pool::start(&[QUERY], 1, LIMITS);
    let config = |program: &str, tasks| worker::SandboxConfig {
        program: program.into(),
        arguments: vec![child::EVALUATE.to_owned()],
        tasks,
        children: std::num::NonZeroUsize::MIN,
        evaluation: EvaluationLimits::default(),
        limits: LIMITS,
    };
    let this = std::env::current_exe().unwrap();
    let judge = |config| {
        let sandbox = worker::Sandbox::start(config).unwrap();
        let judgement = worker::Judgement { task: 0, case: 0, answer: "".into() };
        let error = block_on(worker::Evaluator::judge(&sandbox, judgement)).unwrap_err();
        assert!(matches!(error, worker::EvaluatorError::Start(_)), "{error}");
        error.to_string()
    };
    let missing = judge(config(this.to_str().unwrap(), serde_json::json!(["NoSuchTask"])));
    assert!(missing.contains("no task `NoSuchTask`"), "{missing}");
    let missing = judge(config("/no/such/program", serde_json::json!([])));
    assert!(missing.contains("/no/such/program"), "{missing}");
    block_on(pool.judge_reference(QUERY));
}

/// What a process found that was started so.
fn report_of(how: &str) -> Report {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let output = Command::new(std::env::current_exe().unwrap()).args([how, &address]).output().unwrap();
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

fn locked_down() {
    let report = report_of(child::PROBE);
    for (what, refused) in [
        ("connect", &report.connect),
        ("listen", &report.listen),
        ("open a file", &report.open),
        ("allocate beyond the limit", &report.allocate),
        ("start a program", &report.spawn),
    ] {
        assert!(refused.is_some(), "a locked-down process can {what}");
    }
}

fn confined() {
    let report = report_of(child::CONFINED);
    let in_force = |wall: &str| report.in_force.iter().any(|name| name.starts_with(wall));
    // What a kernel lacks is said by `kgfleet fleet workers`; what it has must hold.
    for (wall, what, refused) in [
        ("seccomp", "connect", &report.connect),
        ("seccomp", "listen", &report.listen),
        ("seccomp", "start a program", &report.spawn),
        ("Landlock", "open a file", &report.open),
    ] {
        assert!(!in_force(wall) || refused.is_some(), "{wall} is in force and lets a process {what}");
    }
    let of_parent = worker::evaluate::sandbox::confine::available();
    for wall in ["seccomp", "Landlock"] {
        let told = of_parent.iter().any(|name| name.starts_with(wall));
        assert_eq!(told, in_force(wall), "{wall}: told {of_parent:?}, in force {:?}", report.in_force);
    }
    println!("in force here: {:?}", report.in_force);
}
