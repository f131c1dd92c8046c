//! Redis keeps the queue for the next leader: who leads, in which epoch, and what [`kept`](crate::kept) lists. One script applies a
//! round, if its leader still leads.

mod explain;
mod link;
mod server;

use std::sync::{Arc, LazyLock, Mutex, Weak};
use std::time::{Duration, Instant};

use ::redis::{FromRedisValue, Script, ScriptInvocation, Value};
use domain::RecordId;
use tokio::sync::{Notify, OnceCell, watch};

use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::kept::{Change, KeptEntries};
use crate::leader::{LeaderWatch, NamedLeader};
use crate::memory::MemoryQueue;
use crate::memory_store::{Shared, lock};
use crate::owner::QueueOwner;
use crate::rounds::{Role, Rounds};

use explain::{corrupt, explain};
use link::Link;

pub use link::RedisOptions;

/// One hash tag: a cluster keeps these keys on one node.
const LEADER: &str = "kgf:{queue}:leader";
const RUNS: &str = "kgf:{queue}:runs";
const WORKERS: &str = "kgf:{queue}:workers";
/// Before the name of a run.
const UNITS: &str = "kgf:{queue}:units:";
/// Which record store the queue belongs to.
const OWNER: &str = "kgf:store";

/// Time between two beats of a leader without changes.
const BEAT_EVERY: Duration = Duration::from_secs(1);

/// Time between two looks at the leader of one that waits.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Time between two tries of a round that was not taken.
const RETRY_EVERY: Duration = Duration::from_millis(250);

/// Longest time for which an answer waits for its round.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// Longest time for which the first operations wait until it is known who leads.
const START_MAX: Duration = Duration::from_secs(2);

/// Longest time for which a leader that ends tries to say so.
const LEAVE_MAX: Duration = Duration::from_secs(2);

static APPLY: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("apply.lua")));
static CLAIM: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("claim.lua")));
static LEAVE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("leave.lua")));
static BIND: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("bind.lua")));

/// The connection of one process to what Redis 7 or Valkey keeps: one server, a primary behind Sentinel, or a cluster.
pub(crate) struct Keeper {
    link: Link,
    /// The server's address without login, for messages.
    place: String,
    /// The same in a normal form, equal for equal places.
    address: String,
    /// The address of this process.
    name: String,
    /// This process, whatever its address.
    id: String,
    begun: OnceCell<()>,
    /// Says that there is something for a round.
    wake: Notify,
    /// Counts what has changed about rounds and leading.
    told: watch::Sender<u64>,
}

impl Keeper {
    pub(crate) fn new(options: &RedisOptions, name: &str) -> Result<Self> {
        Ok(Self {
            link: Link::new(options)?,
            place: link::without_login(&options.url).to_owned(),
            address: link::address(&options.url)?,
            name: name.to_owned(),
            id: RecordId::random().as_str().to_owned(),
            begun: OnceCell::new(),
            wake: Notify::new(),
            told: watch::Sender::new(0),
        })
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Begins to lead or to wait, with the first operation; waits until it is known which, for [`START_MAX`].
    pub(crate) async fn begin(self: &Arc<Self>, shared: &Arc<Mutex<Shared>>, clock: &Arc<dyn Clock>) {
        let begin = async {
            let leading = lead(Arc::clone(self), Arc::downgrade(shared), Arc::clone(clock));
            tokio::spawn(leading);
        };
        self.begun.get_or_init(|| begin).await;
        let is_known = |rounds: &Rounds| !matches!(rounds.role(), Role::Starting);
        let _ = tokio::time::timeout(START_MAX, self.until(shared, |rounds| is_known(rounds).then_some(())))
            .await;
    }

    /// Waits until something holds of the rounds.
    async fn until<T>(&self, shared: &Mutex<Shared>, mut holds: impl FnMut(&Rounds) -> Option<T>) -> T {
        let mut told = self.told.subscribe();
        loop {
            told.mark_unchanged();
            if let Some(holding) = lock(shared).rounds.as_ref().and_then(&mut holds) {
                return holding;
            }
            // The sender is this keeper's.
            let _ = told.changed().await;
        }
    }

    fn tell(&self) {
        self.told.send_modify(|count| *count += 1);
    }

    /// Waits until the changes up to a mark were applied.
    pub(crate) async fn until_applied(&self, shared: &Mutex<Shared>, mark: u64) -> Result<()> {
        self.wake.notify_one();
        let applied = self.until(shared, |rounds| rounds.is_applied(mark));
        let silent = || Error::Unavailable {
            message: format!("{}: no round was taken within {} s", self.place, ANSWER_MAX.as_secs()),
        };
        tokio::time::timeout(ANSWER_MAX, applied).await.unwrap_or_else(|_| Err(silent()))
    }

    /// Waits until another process leads that this one led.
    pub(crate) async fn until_followed(&self, shared: &Mutex<Shared>) -> String {
        let followed = |rounds: &Rounds| match rounds.role() {
            Role::Followed(by) => Some(by.to_string()),
            _ => None,
        };
        self.until(shared, followed).await
    }

    /// Says that this leader ends.
    pub(crate) async fn leave(&self, shared: &Mutex<Shared>) {
        let Some(epoch) = epoch(shared) else { return };
        let mut call = LEAVE.key(LEADER);
        call.arg(epoch).arg(&self.id);
        if let Ok(Err(error)) = tokio::time::timeout(LEAVE_MAX, self.invoke(&call)).await {
            tracing::debug!(%error, "the next leader waits a moment");
        }
    }

    async fn invoke(&self, script: &ScriptInvocation<'_>) -> Result<Vec<Value>> {
        self.link.invoke(script).await.map_err(|refused| self.placed(explain(refused)))
    }

    /// Sends a plain command.
    async fn send<T: FromRedisValue>(&self, command: &::redis::Cmd) -> Result<T> {
        let sent = self.link.send(command).await;
        read(sent.map_err(|refused| self.placed(explain(refused)))?)
    }

    /// An error with the address that it is about, if the server was not reached or lets nobody in.
    fn placed(&self, error: Error) -> Error {
        let at = |message: String| format!("{}: {message}", self.place);
        match error {
            Error::Unavailable { message } => Error::Unavailable { message: at(message) },
            Error::Unfit { message } => Error::Unfit { message: at(message) },
            error => error,
        }
    }

    pub(crate) async fn owner(&self) -> Result<Option<QueueOwner>> {
        let mut get = ::redis::cmd("GET");
        get.arg(OWNER);
        Ok(self.send::<Option<String>>(&get).await?.as_deref().map(QueueOwner::of))
    }

    pub(crate) async fn bind(&self, from: Option<&QueueOwner>, to: &QueueOwner) -> Result<QueueOwner> {
        let mut call = BIND.key(OWNER);
        call.arg(from.map(QueueOwner::text).unwrap_or_default()).arg(to.text());
        Ok(QueueOwner::of(&first::<String>(self.invoke(&call).await?)?))
    }

    pub(crate) async fn check(&self) -> Result<Vec<String>> {
        let through_cluster = matches!(self.link, Link::Cluster(_));
        let nodes: Vec<String> = match self.send(&::redis::cmd("INFO")).await? {
            // A cluster answers per node: pairs of address and information.
            Value::Map(nodes) => nodes.into_iter().map(|(_, info)| read(info)).collect::<Result<_>>()?,
            one => vec![read(one)?],
        };
        let mut warnings = Vec::new();
        for node in nodes {
            warnings.extend(server::judge(&node, through_cluster)?);
        }
        warnings.dedup();
        Ok(warnings)
    }

    /// The leader that Redis names.
    async fn named(&self) -> Result<Option<NamedLeader>> {
        let mut get = ::redis::cmd("HMGET");
        get.arg(LEADER).arg(&["epoch", "id", "name", "beat", "left"]);
        let [epoch, id, name, beat, left] = self.send::<[Option<String>; 5]>(&get).await?;
        let Some(epoch) = epoch else { return Ok(None) };
        let number =
            |text: &str| text.parse().map_err(|_| corrupt(&format!("the leader has the number `{text}`")));
        Ok(Some(NamedLeader {
            epoch: number(&epoch)?,
            id: id.unwrap_or_default(),
            name: name.unwrap_or_default(),
            beat: beat.as_deref().map(number).transpose()?.unwrap_or_default(),
            has_left: left.is_some(),
        }))
    }

    /// Claims the next epoch after that of a leader. The epoch, and whether what is kept is whole; `None` if somebody was quicker.
    async fn claim(&self, after: Option<(u64, &str)>, seen: u64) -> Result<Option<(u64, bool)>> {
        let (epoch, id) = after.unwrap_or((0, ""));
        let mut call = CLAIM.key(LEADER);
        call.arg(epoch).arg(id).arg(seen).arg(&self.id).arg(&self.name);
        let [epoch, whole]: [u64; 2] = read(Value::Array(self.invoke(&call).await?))?;
        Ok((epoch > 0).then_some((epoch, whole == 1)))
    }

    /// What the leader before has left.
    async fn load(&self) -> Result<KeptEntries> {
        let all = |key: String| {
            let mut get = ::redis::cmd("HGETALL");
            get.arg(key);
            get
        };
        let runs: Vec<(String, Vec<u8>)> = self.send(&all(RUNS.to_owned())).await?;
        let workers = self.send(&all(WORKERS.to_owned())).await?;
        let mut units = Vec::with_capacity(runs.len());
        for (name, _) in &runs {
            units.push(self.send(&all(format!("{UNITS}{name}"))).await?);
        }
        Ok(KeptEntries { runs, units, workers })
    }

    /// Applies the next round of a leader: what became of it, and the leader that is named.
    async fn apply(&self, shared: &Mutex<Shared>, epoch: u64) -> Result<(String, u64, String, String)> {
        let mut call = APPLY.key(LEADER);
        call.arg(RUNS).arg(WORKERS).arg(UNITS).arg(epoch).arg(&self.id);
        if let Some(rounds) = &mut lock(shared).rounds {
            let (number, changes) = rounds.next();
            call.arg(number);
            changes.iter().for_each(|change| add(&mut call, change));
        }
        let [word, epoch, id, name]: [String; 4] = read(Value::Array(self.invoke(&call).await?))?;
        let epoch = epoch.parse().map_err(|_| corrupt(&format!("the epoch `{epoch}`")))?;
        Ok((word, epoch, id, name))
    }
}

fn add(call: &mut ScriptInvocation<'_>, change: &Change) {
    match change {
        Change::Clear => drop(call.arg("clear")),
        Change::Whole => drop(call.arg("whole")),
        Change::Run(run, entry) => drop(call.arg("run").arg(run.as_str()).arg(entry)),
        Change::RunGone(run) => drop(call.arg("run-gone").arg(run.as_str())),
        Change::Unit(run, id, entry) => drop(call.arg("unit").arg(run.as_str()).arg(id.0).arg(entry)),
        Change::UnitGone(run, id) => drop(call.arg("unit-gone").arg(run.as_str()).arg(id.0)),
        Change::Worker(worker, entry) => drop(call.arg("worker").arg(worker.as_str()).arg(entry)),
        Change::WorkerGone(worker) => drop(call.arg("worker-gone").arg(worker.as_str())),
        Change::Probe => {}
    }
}

fn read<T: FromRedisValue>(value: Value) -> Result<T> {
    ::redis::from_redis_value(value).map_err(|error| corrupt(&error.to_string()))
}

/// The first of the values that a script answers.
fn first<T: FromRedisValue>(values: Vec<Value>) -> Result<T> {
    read(values.into_iter().next().ok_or_else(|| corrupt("nothing"))?)
}

fn epoch(shared: &Mutex<Shared>) -> Option<u64> {
    match lock(shared).rounds.as_ref()?.role() {
        Role::Leading { epoch } => Some(*epoch),
        _ => None,
    }
}

fn leads(name: &str) -> Error {
    Error::NotLeader { leader: format!("the coordinator at {name} leads this fleet") }
}

/// Leads when nobody else does, and waits until then. Ends with the queue, or when it is followed.
async fn lead(keeper: Arc<Keeper>, queue: Weak<Mutex<Shared>>, clock: Arc<dyn Clock>) {
    let (began, mut watch, mut seen) = (Instant::now(), LeaderWatch::new(&keeper.name), 0);
    while let Some(shared) = queue.upgrade() {
        let pause = match epoch(&shared) {
            Some(epoch) => keeper.step(&shared, epoch, &*clock).await,
            None => keeper.look(&shared, &mut watch, &mut seen, began.elapsed(), &*clock).await,
        };
        keeper.tell();
        if matches!(lock(&shared).rounds.as_ref().map(Rounds::role), Some(Role::Followed(_))) {
            return;
        }
        drop(shared);
        // Changes end every pause but that after a failure.
        match pause {
            Pause::None => {}
            Pause::UntilChanges => drop(tokio::time::timeout(BEAT_EVERY, keeper.wake.notified()).await),
            Pause::For(time) => tokio::time::sleep(time).await,
        }
    }
}

/// What comes before the next step.
enum Pause {
    None,
    UntilChanges,
    For(Duration),
}

impl Keeper {
    /// Looks who leads, and claims if nobody does.
    async fn look(
        &self,
        shared: &Mutex<Shared>,
        watch: &mut LeaderWatch,
        seen: &mut u64,
        now: Duration,
        clock: &dyn Clock,
    ) -> Pause {
        let looked = async {
            let named = self.named().await?;
            *seen = named.as_ref().map_or(0, |named| named.epoch).max(*seen);
            if !watch.may_claim(now, named.as_ref()) {
                return Ok(named.map(|named| leads(&named.name)));
            }
            let after = named.as_ref().map(|named| (named.epoch, named.id.as_str()));
            let Some((epoch, is_whole)) = self.claim(after, *seen).await? else { return Ok(None) };
            let kept =
                if is_whole { self.load().await?.into_queue(clock.now_ms())? } else { MemoryQueue::kept() };
            let mut shared = lock(shared);
            shared.queue = kept;
            let anew = (!is_whole).then(|| vec![Change::Clear, Change::Whole]);
            if let Some(rounds) = &mut shared.rounds {
                rounds.lead(epoch, anew);
            }
            tracing::info!(epoch, "this coordinator leads");
            Ok(None)
        };
        let why = match looked.await {
            Ok(None) => return Pause::None,
            Ok(Some(other)) => other,
            Err(error) => {
                watch.unread();
                error
            }
        };
        if let Some(rounds) = &mut lock(shared).rounds {
            rounds.wait(why);
        }
        Pause::For(LOOK_EVERY)
    }

    /// One round of a leader.
    async fn step(&self, shared: &Mutex<Shared>, epoch: u64, clock: &dyn Clock) -> Pause {
        let (word, other, id, name) = match self.apply(shared, epoch).await {
            Ok(applied) => applied,
            Err(error) => {
                if let Some(rounds) = &mut lock(shared).rounds {
                    rounds.has_failed(error);
                }
                return Pause::For(RETRY_EVERY);
            }
        };
        if word == "done" {
            let mut shared = lock(shared);
            let Some(rounds) = &mut shared.rounds else { return Pause::None };
            rounds.is_good(clock.now_ms());
            return if rounds.is_due() { Pause::None } else { Pause::UntilChanges };
        }
        if other > epoch {
            tracing::warn!(epoch, other, name, "another coordinator leads since");
            if let Some(rounds) = &mut lock(shared).rounds {
                rounds.is_followed(leads(&name));
            }
            return Pause::None;
        }
        // Redis has come back from an older state, or was emptied: it is told everything anew.
        match self.claim((other > 0).then_some((other, id.as_str())), epoch).await {
            Ok(Some((next, _))) => {
                tracing::warn!(epoch, next, "Redis lost what it kept; it is written anew");
                let mut shared = lock(shared);
                let Shared { queue, rounds, .. } = &mut *shared;
                if let Some(rounds) = rounds {
                    rounds.lead(next, Some(queue.all_changes()));
                }
                Pause::None
            }
            // Somebody else was quicker; the next round says who.
            Ok(None) => Pause::None,
            Err(error) => {
                if let Some(rounds) = &mut lock(shared).rounds {
                    rounds.has_failed(error);
                }
                Pause::For(RETRY_EVERY)
            }
        }
    }
}
