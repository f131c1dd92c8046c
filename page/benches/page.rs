//! What a request costs: `cargo bench -p page`.
//!
//! A coordinator with the published matrix (41 models, 26 tasks, 45 500 dialogues with a record) and 1 000 workers, and
//! requests to its page without sockets. Prints figures with the bound beside them and asserts nothing.

#![allow(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

#[path = "../tests/it/world.rs"]
#[allow(dead_code, reason = "tests use more of it")]
mod world;

use std::time::{Duration, Instant};

use domain::control::{Control, Submission};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

use world::{Played, World, path};

/// Models of the published matrix with 20 iterations of every task, and with 50.
const PROPRIETARY: usize = 10;
const OPEN: usize = 31;
const WORKERS: usize = 1_000;
/// Workers that report between two looks: every worker does once in ten seconds.
const REPORTING: usize = WORKERS / 10;
/// Requests of each kind.
const REQUESTS: u32 = 20;
/// What a page computes is kept for a second.
const TICK: Duration = Duration::from_millis(1_050);
/// Time without a visitor.
const QUIET: Duration = Duration::from_secs(5);

/// Processor time of this process.
fn cpu() -> Duration {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(used.tv_sec as u64, used.tv_nsec as u32)
}

fn line(what: &str, figure: &str, bound: &str) {
    println!("{what:<64} {figure:>22}   {bound}");
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(measure());
}

async fn measure() {
    println!("{} processors", std::thread::available_parallelism().map_or(1, usize::from));
    let world = World::open();
    let names: Vec<String> = (0..PROPRIETARY + OPEN).map(|n| format!("model-{n}")).collect();
    let models = names.iter().enumerate().map(|(n, name)| {
        let iterations = if n < PROPRIETARY { 20 } else { 50 };
        json!({"label": name, "connector": "openai-compatible", "model": name, "iterations": iterations})
    });
    let configuration = json!({"name": "matrix", "seed": 1, "models": models.collect::<Vec<_>>()});
    let view = world.access.submit(Submission { configuration, pack: None }).await.unwrap();
    let run = view.run;
    let mut workers = Vec::with_capacity(WORKERS);
    for number in 0..WORKERS {
        let mut worker = Played::serving(
            &world.access,
            &format!("worker-{number}"),
            &names.iter().map(String::as_str).collect::<Vec<_>>(),
        )
        .await;
        worker.take(&world.access, 0).await;
        workers.push(worker);
    }
    let mut worker =
        Played::serving(&world.access, "worker-0", &names.iter().map(String::as_str).collect::<Vec<_>>())
            .await;
    let text = "The answer is Ann, because she is known by most. ".repeat(20);
    loop {
        worker.take(&world.access, 2).await;
        let answered = worker.answer(&world.access, |key| {
            let score = f64::from(key.iteration % 7) / 6.0;
            let scores = json!({"f1": score, "max": {"f1": score, "combined": score}});
            (json!({"state": "scored", "scores": scores, "infos": {}}), text.clone())
        });
        if answered.await == 0 {
            break;
        }
    }
    let view = world.access.view(&run).await.unwrap();
    println!(
        "{} of {} dialogues, {} models, {WORKERS} workers",
        view.done(),
        view.planned,
        view.models.len()
    );

    // Their registrations have ended meanwhile.
    for worker in &mut workers {
        worker.take(&world.access, 0).await;
    }
    let mut next = 0;

    let cell = "model=model-7&task=RdfFriendCount-turtle-1";
    let dialogue = format!("{}/dialogue?{cell}&iteration=3", path(&run));
    let begun = (Instant::now(), cpu());
    world.visit().get(&dialogue).await.expect(200);
    let first = format!("{:.0} ms, {:.0} ms CPU", ms(begun.0.elapsed()), ms(cpu() - begun.1));
    line("the first dialogue of a run: its log is read", &first, "once per run");
    // The first look begins to compute the intervals, aside.
    let begun = (Instant::now(), cpu());
    world.visit().get(&path(&run)).await.expect(200);
    let wall = begun.0.elapsed();
    loop {
        tokio::time::sleep(TICK).await;
        let page = world.visit().get(&path(&run)).await;
        if page.body.matches(">0.5").count() > 60 {
            break;
        }
    }
    line("the first look at a run", &format!("{:.1} ms", ms(wall)), "at most 100 ms");
    line(
        "until its intervals are there, all threads",
        &format!("{:.0} ms CPU", ms(cpu() - begun.1)),
        "at most 1 % of the time",
    );

    for (what, address, ticks) in [
        ("list of runs, computed", "/".to_owned(), true),
        ("list of runs, within the same second", "/".to_owned(), false),
        ("run, computed", path(&run), true),
        ("run, within the same second", path(&run), false),
        ("workers, computed", "/workers".to_owned(), true),
        ("workers, within the same second", "/workers".to_owned(), false),
        ("dialogues of a model on a task", format!("{}/dialogues?{cell}", path(&run)), false),
        ("a dialogue", dialogue, false),
    ] {
        let (mut wall, mut used, mut bytes) = (Vec::new(), Duration::ZERO, 0);
        for _ in 0..REQUESTS {
            if ticks {
                tokio::time::sleep(TICK).await;
                for _ in 0..REPORTING {
                    workers[next % WORKERS].take(&world.access, 0).await;
                    next += 1;
                }
            }
            let begun = (Instant::now(), cpu());
            bytes = world.visit().get(&address).await.expect(200).body.len();
            wall.push(begun.0.elapsed());
            used += cpu() - begun.1;
        }
        wall.sort();
        let (median, worst) = (wall[wall.len() / 2], wall[wall.len() - 1]);
        let figure = format!("{:.1} ms, worst {:.1} ms", ms(median), ms(worst));
        line(&format!("{what} ({} kB)", bytes / 1000), &figure, "at most 100 ms");
        line("", &format!("{:.1} ms CPU", ms(used / REQUESTS)), "at most 10 ms");
    }
    let before = cpu();
    tokio::time::sleep(QUIET).await;
    let quiet = format!("{:.2} ms CPU in {} s", ms(cpu() - before), QUIET.as_secs());
    line("nobody looks", &quiet, "nothing but the clock");
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
