//! The users of a simulation: what each does, and when, follows from the seed.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::RunId;
use domain::control::{BenchmarkCommand, Control, RunPhase, Submission};
use serde_json::{Value, json};

use crate::book::{Asked, Came, Told};
use crate::fleet::FleetInTurn;

/// Users at work at the same time.
const USERS: u64 = 3;

/// Steps of a user.
const STEPS: u64 = 3;

/// How often a user asks again where nobody can say what came of it.
const TRIES: u32 = 8;

/// How long a user waits for the end of a benchmark before the next step.
const PATIENCE: Duration = Duration::from_secs(15);

/// The benchmarks that users name.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Which {
    Plain,
    Judged,
}

/// What is known by name.
#[derive(Default)]
struct Known {
    plain: Option<RunId>,
    judged: Option<RunId>,
}

fn models(labels: &[&str]) -> Vec<Value> {
    labels.iter().map(|label| json!({"label": label, "connector": "simulated"})).collect()
}

/// What is asked for: of the plain benchmark or the judged one, and whether extended.
fn submission(which: Which, extended: bool) -> Submission {
    let iterations = if extended { 4 } else { 2 };
    let configuration = match which {
        Which::Plain => json!({
            "name": "plain",
            "seed": 7,
            "iterations": iterations,
            "tasks": ["RdfConnectionExplainStatic-turtle"],
            "models": models(if extended { &["a", "b", "c"] } else { &["a", "b"] }),
        }),
        Which::Judged => json!({
            "name": "judged",
            "pipeline": "judged-facts",
            "iterations": iterations,
            "tasks": ["FactExtractStatic"],
            "models": models(&["m", "n"]),
            "judges": {"grader": models(&["grader"])[0], "reviewer": models(&["reviewer"])[0]},
        }),
    };
    Submission { configuration, pack: None }
}

/// The dialogues of the plain benchmark.
pub const PLAIN: u64 = 4;
/// The dialogues of a benchmark once it is extended.
pub const EXTENDED_PLAIN: u64 = 12;
/// The same of the judged one.
pub const EXTENDED_JUDGED: u64 = 8;

/// Lets all users work, each at its own pace.
pub async fn work(fleet: &Arc<FleetInTurn>) {
    let known = Arc::new(Mutex::new(Known::default()));
    let users = (0..USERS).map(|user| {
        let user = User { number: user, fleet: Arc::clone(fleet), known: Arc::clone(&known) };
        tokio::spawn(user.work())
    });
    for user in users.collect::<Vec<_>>() {
        user.await.unwrap();
    }
}

#[derive(Clone)]
struct User {
    number: u64,
    fleet: Arc<FleetInTurn>,
    known: Arc<Mutex<Known>>,
}

impl User {
    async fn work(self) {
        let world = &self.fleet.world;
        tokio::time::sleep(Duration::from_millis(world.below(1_500))).await;
        // One begins with each benchmark, and the last one with either.
        let first = match self.number {
            0 => Which::Plain,
            1 => Which::Judged,
            _ => self.which(),
        };
        self.ask_beside(Asked::Submit, world.once_in(3).then_some(Asked::Submit), first).await;
        for _ in 0..STEPS {
            let which = if world.once_in(4) { self.which() } else { first };
            if world.once_in(3) {
                self.wait_for_end(which).await;
                tokio::time::sleep(Duration::from_millis(world.below(1_500))).await;
            } else {
                tokio::time::sleep(Duration::from_millis(world.below(2_000))).await;
            }
            let asked = self.choose();
            self.ask_beside(asked, world.once_in(2).then(|| self.choose()), which).await;
        }
    }

    /// Asks for something, perhaps while somebody else asks for something of the same benchmark.
    async fn ask_beside(&self, asked: Asked, theirs: Option<Asked>, which: Which) {
        let other = self.clone();
        let beside = theirs.map(|theirs| tokio::spawn(async move { other.ask(theirs, which).await }));
        self.ask(asked, which).await;
        if let Some(beside) = beside {
            beside.await.unwrap();
        }
    }

    fn which(&self) -> Which {
        if self.fleet.world.once_in(2) { Which::Plain } else { Which::Judged }
    }

    fn choose(&self) -> Asked {
        match self.fleet.world.below(16) {
            0..4 => Asked::Extend,
            4..7 => Asked::Cancel,
            7..10 => Asked::Submit,
            10..12 => Asked::Retry,
            12 => Asked::Pause,
            13..15 => Asked::Resume,
            _ => Asked::Remove,
        }
    }

    fn name(&self, which: Which) -> Option<RunId> {
        let known = self.known.lock().unwrap();
        match which {
            Which::Plain => known.plain.clone(),
            Which::Judged => known.judged.clone(),
        }
    }

    /// Waits until a benchmark has all its records, for a while.
    async fn wait_for_end(&self, which: Which) {
        let Some(name) = self.name(which) else { return };
        let look = async {
            loop {
                tokio::time::sleep(Duration::from_millis(200)).await;
                let Some(live) = self.fleet.answering() else { continue };
                match live.call(live.access.view(&name)).await {
                    Some(Ok(view)) if view.phase == RunPhase::Active && !view.is_complete() => {}
                    Some(Err(error)) if error.code.is_transient() => {}
                    Some(_) => return,
                    None => {}
                }
            }
        };
        let _ = tokio::time::timeout(PATIENCE, look).await;
    }

    /// Asks for something, again where nobody can say what came of it.
    async fn ask(&self, asked: Asked, which: Which) {
        for _ in 0..TRIES {
            if self.ask_once(asked, which).await != Came::Unknown {
                return;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    async fn ask_once(&self, asked: Asked, which: Which) -> Came {
        let (world, book) = (&self.fleet.world, &self.fleet.book);
        let Some(live) = self.fleet.answering() else { return Came::Unknown };
        let known = self.name(which);
        let Some(name) = known.clone().or_else(|| (asked == Asked::Submit).then(|| RunId::new("?"))) else {
            return Came::Refused;
        };
        let begun = world.event();
        if asked == Asked::Remove {
            book.removes(&name);
        }
        let access = &live.access;
        let answer = live
            .call(async {
                match asked {
                    Asked::Submit => access.submit(submission(which, false)).await.map(|view| view.run),
                    Asked::Extend => access.extend(&name, submission(which, true)).await.map(|view| view.run),
                    Asked::Pause => command(access, &name, BenchmarkCommand::Pause).await,
                    Asked::Resume => command(access, &name, BenchmarkCommand::Resume).await,
                    Asked::Cancel => command(access, &name, BenchmarkCommand::Cancel).await,
                    Asked::Retry => access.retry(&name, &[]).await.map(|_| name.clone()),
                    Asked::Remove => access.remove(&name, true).await.map(|()| name.clone()),
                }
            })
            .await;
        let (came, name) = match answer {
            Some(Ok(name)) => (Came::Done, name),
            Some(Err(error)) if error.code.is_transient() => (Came::Unknown, name),
            Some(Err(_)) => (Came::Refused, name),
            None => (Came::Unknown, name),
        };
        if came == Came::Done && asked == Asked::Submit {
            let mut known = self.known.lock().unwrap();
            match which {
                Which::Plain => known.plain = Some(name.clone()),
                Which::Judged => known.judged = Some(name.clone()),
            }
        }
        let (at, place) = (world.elapsed().as_secs_f64(), live.process.name());
        tracing::info!("{at:.3} user {} at {place}: {asked:?} {name}: {came:?}", self.number);
        book.tell(Told { asked, name, begun, ended: world.event(), came });
        came
    }
}

async fn command(
    access: &coordinator::access::Access,
    name: &RunId,
    command: BenchmarkCommand,
) -> Result<RunId, domain::ServiceError> {
    access.command(name, command).await.map(|view| view.run)
}
