//! Redis keeps the queue for the next leader: who leads, in which epoch, and what [`kept`](crate::kept) lists. One script applies a
//! round, if its leader still leads.

mod explain;
mod link;
mod server;
#[cfg(feature = "test-support")]
pub(crate) mod testing;

use std::sync::LazyLock;

use ::redis::{FromRedisValue, Script, ScriptInvocation, Value};
use futures::future::BoxFuture;

use crate::error::{Error, Result};
use crate::keeper::{Applied, BackingStore, Claimed, EpochClaim, Round};
use crate::kept::{Change, KeptEntries};
use crate::leader::NamedLeader;
use crate::owner::QueueOwner;

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

static APPLY: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("apply.lua")));
static CLAIM: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("claim.lua")));
static LEAVE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("leave.lua")));
static BIND: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("bind.lua")));

/// The connection of one process to Redis 7 or Valkey: one server, a primary behind Sentinel, or a cluster.
pub(crate) struct RedisServer {
    link: Link,
    /// Its address without login, for messages.
    place: String,
    /// The same in a normal form, equal for equal places.
    address: String,
}

impl RedisServer {
    pub(crate) fn new(options: &RedisOptions) -> Result<Self> {
        Ok(Self {
            link: Link::new(options)?,
            place: link::without_login(&options.url).to_owned(),
            address: link::address(&options.url)?,
        })
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
}

#[async_trait::async_trait]
impl BackingStore for RedisServer {
    fn place(&self) -> &str {
        &self.place
    }

    fn address(&self) -> &str {
        &self.address
    }

    async fn owner(&self) -> Result<Option<QueueOwner>> {
        let mut get = ::redis::cmd("GET");
        get.arg(OWNER);
        Ok(self.send::<Option<String>>(&get).await?.as_deref().map(QueueOwner::of))
    }

    async fn bind(&self, from: Option<&QueueOwner>, to: &QueueOwner) -> Result<QueueOwner> {
        let mut call = BIND.key(OWNER);
        call.arg(from.map(QueueOwner::text).unwrap_or_default()).arg(to.text());
        Ok(QueueOwner::of(&first::<String>(self.invoke(&call).await?)?))
    }

    async fn check(&self) -> Result<Vec<String>> {
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

    async fn claim(&self, claim: EpochClaim<'_>) -> Result<Option<Claimed>> {
        let EpochClaim { after, seen, id, name } = claim;
        let mut call = CLAIM.key(LEADER);
        call.arg(after.0).arg(after.1).arg(seen).arg(id).arg(name);
        let [epoch, whole]: [u64; 2] = read(Value::Array(self.invoke(&call).await?))?;
        Ok((epoch > 0).then_some(Claimed { epoch, is_whole: whole == 1 }))
    }

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

    fn apply(&self, round: Round<'_>) -> BoxFuture<'_, Result<Applied>> {
        let Round { epoch, id, number, changes } = round;
        let mut call = APPLY.key(LEADER);
        call.arg(RUNS).arg(WORKERS).arg(UNITS).arg(epoch).arg(id).arg(number);
        changes.iter().for_each(|change| add(&mut call, change));
        Box::pin(async move {
            let [word, epoch, id, name]: [String; 4] = read(Value::Array(self.invoke(&call).await?))?;
            if word == "done" {
                return Ok(Applied::Done);
            }
            let epoch = epoch.parse().map_err(|_| corrupt(&format!("the epoch `{epoch}`")))?;
            Ok(Applied::Other { epoch, id, name })
        })
    }

    async fn leave(&self, epoch: u64, id: &str) -> Result<()> {
        let mut call = LEAVE.key(LEADER);
        call.arg(epoch).arg(id);
        self.invoke(&call).await.map(drop)
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
