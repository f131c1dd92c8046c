//! The queue in Redis: streams with consumer groups, one stream per run and model, every operation one Lua script.
//!
//! Operations are scripts because each one touches a stream, its pending-entries list and a few hashes, and other
//! coordinators must see all of it or nothing. Reads never block, because a blocking read holds a connection, and an
//! abandoned one still assigns its unit to a consumer that does not know of it. Coordinators poll.

mod explain;
mod keys;
mod link;
mod scripts;
mod server;
mod wire;

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use ::redis::{FromRedisValue, ScriptInvocation, Value};
use domain::{DialogueKey, InstanceId, ModelLabel, RunId, WorkerId};

use crate::clock::millis;
use crate::commit::{Commit, CommitEffect, Committed};
use crate::error::{Error, Result};
use crate::limits;
use crate::owner::QueueOwner;
use crate::run::{ModelCounts, Parked, RunRef, RunSpec, RunStatus, stored_state};
use crate::run_state::RunState;
use crate::store::QueueStore;
use crate::unit::{
    Added, Fence, Lease, LeaseRequest, NewUnit, Reap, Reaped, Renewal, Suspect, Transition, UnitId,
};
use crate::worker::{
    Claim, Heartbeat, HeartbeatOrders, PoolsEntry, RateLimit, RateReply, WorkerEntry, WorkerNameTaken,
};

use explain::{corrupt, explain};
use link::Link;
use scripts::ScriptAnswer;
use wire::{
    STATUS_FIELDS, add_fences, call, read_lease, read_record, read_status, read_suspect, transitions,
    write_record,
};

pub use link::RedisOptions;

/// A queue in Redis 7 or Valkey: one server, a primary behind Sentinel, or a cluster.
pub struct RedisStore {
    link: Link,
    /// Its address without login, for messages.
    place: String,
    /// The address in a normal form, equal for equal places.
    address: String,
}

impl RedisStore {
    /// A store at this address. It is not contacted yet: [`QueueStore::check`] does that.
    ///
    /// # Errors
    /// [`Error::Unfit`] if the address is invalid.
    pub fn new(options: &RedisOptions) -> Result<Self> {
        let (link, place) = (Link::new(options)?, link::without_login(&options.url).to_owned());
        let address = link::address(&options.url)?;
        Ok(Self { link, place, address })
    }

    async fn invoke(
        &self,
        name: &'static str,
        script: &ScriptInvocation<'_>,
        at: Option<&RunRef>,
    ) -> Result<ScriptAnswer> {
        match self.link.invoke(script).await {
            Ok(values) => Ok(ScriptAnswer::new(name, values)),
            Err(refused) => Err(self.placed(explain(refused, at))),
        }
    }

    /// Sends a plain command.
    async fn send<T: FromRedisValue>(&self, command: &::redis::Cmd) -> Result<T> {
        let sent = self.link.send(command).await;
        read(sent.map_err(|refused| self.placed(explain(refused, None)))?)
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

    async fn status(&self, run: &RunId) -> Result<Option<RunStatus>> {
        let mut command = ::redis::cmd("HMGET");
        command.arg(keys::run(run)).arg(STATUS_FIELDS);
        let values: Vec<Value> = self.send(&command).await?;
        if values.contains(&Value::Nil) {
            return Ok(None);
        }
        read_status(run, &mut ScriptAnswer::new("HMGET", values)).map(Some)
    }
}

#[async_trait::async_trait]
impl QueueStore for RedisStore {
    fn address(&self) -> Option<&str> {
        Some(&self.address)
    }

    async fn owner(&self) -> Result<Option<QueueOwner>> {
        let mut get = ::redis::cmd("GET");
        get.arg(keys::OWNER);
        Ok(self.send::<Option<String>>(&get).await?.as_deref().map(QueueOwner::of))
    }

    async fn bind(&self, from: Option<&QueueOwner>, to: &QueueOwner) -> Result<QueueOwner> {
        let mut call = scripts::BIND.key(keys::OWNER);
        call.arg(from.map(QueueOwner::text).unwrap_or_default()).arg(to.text());
        Ok(QueueOwner::of(&self.invoke("bind", &call, None).await?.read::<String>()?))
    }

    async fn create_run(&self, spec: &RunSpec) -> Result<RunStatus> {
        limits::check_spec(spec)?;
        // The name is added first: `runs` skips a name without a run, but a run without a name would be hidden.
        let mut name = ::redis::cmd("SADD");
        name.arg(keys::RUNS).arg(spec.run.as_str());
        self.send::<Value>(&name).await?;
        let mut call = scripts::CREATE.key(keys::run(&spec.run));
        call.arg(&spec.plan_hash).arg(millis(spec.lease_for)).arg(spec.max_strikes);
        call.arg(spec.generation).arg(spec.ticket_floor);
        let status = read_status(&spec.run, &mut self.invoke("create", &call, None).await?)?;
        spec.check_joins(&status.plan_hash)?;
        Ok(status)
    }

    async fn run(&self, run: &RunId) -> Result<Option<RunStatus>> {
        limits::check_run(run)?;
        self.status(run).await
    }

    async fn runs(&self) -> Result<Vec<RunStatus>> {
        let mut members = ::redis::cmd("SMEMBERS");
        members.arg(keys::RUNS);
        let mut names: Vec<String> = self.send(&members).await?;
        names.sort_unstable();
        let mut runs = Vec::new();
        for name in names {
            runs.extend(self.status(&RunId::new(name)).await?);
        }
        Ok(runs)
    }

    async fn set_state(&self, at: &RunRef, to: RunState) -> Result<RunState> {
        let mut call = call(&scripts::SET_STATE, at);
        call.arg(to.as_str());
        for from in RunState::ALL.into_iter().filter(|from| from.may_become(to)) {
            call.arg(from.as_str());
        }
        let mut answer = self.invoke("set_state", &call, Some(at)).await?;
        let from = stored_state(&answer.read::<String>()?)?;
        match answer.read()? {
            1 => Ok(from),
            _ => Err(Error::IllegalState { run: at.run.clone(), from, to }),
        }
    }

    async fn forget_run(&self, run: &RunId) -> Result<bool> {
        limits::check_run(run)?;
        let call = scripts::FORGET.key(keys::run(run));
        let there = self.invoke("forget", &call, None).await?.read::<u8>()? == 1;
        let mut name = ::redis::cmd("SREM");
        name.arg(keys::RUNS).arg(run.as_str());
        self.send::<Value>(&name).await?;
        Ok(there)
    }

    async fn add_units(&self, at: &RunRef, first: UnitId, units: &[NewUnit]) -> Result<Added> {
        limits::check_units(units)?;
        let mut call = call(&scripts::ADD_UNITS, at);
        call.arg(first.0);
        for unit in units {
            call.arg(unit.model.as_str()).arg(unit.dialogues).arg(&unit.payload);
        }
        let mut answer = self.invoke("add_units", &call, Some(at)).await?;
        Ok(Added { applied: answer.read::<u8>()? == 1, next: UnitId(answer.read()?) })
    }

    async fn lease(&self, at: &RunRef, ask: &LeaseRequest) -> Result<Vec<Lease>> {
        limits::check_lease(ask)?;
        let mut call = call(&scripts::LEASE, at);
        call.arg(ask.worker.as_str()).arg(ask.max_units).arg(u8::from(ask.alone));
        for model in &ask.models {
            call.arg(model.as_str());
        }
        let mut answer = self.invoke("lease", &call, Some(at)).await?;
        let deadline_ms = answer.read()?;
        answer.read_all(|answer| read_lease(answer, at, deadline_ms))
    }

    async fn renew(
        &self,
        at: &RunRef,
        worker: &WorkerId,
        models: &[ModelLabel],
        held: &[Fence],
    ) -> Result<Renewal> {
        limits::check_worker(worker)?;
        limits::check_models(models)?;
        limits::check_fences(held)?;
        let mut labels: Vec<_> = models.iter().chain(held.iter().map(|fence| &fence.model)).collect();
        labels.sort_unstable();
        labels.dedup();
        let mut call = call(&scripts::RENEW, at);
        call.arg(worker.as_str()).arg(labels.len());
        for label in labels {
            call.arg(label.as_str());
        }
        add_fences(&mut call, at, held);
        let mut answer = self.invoke("renew", &call, Some(at)).await?;
        let state = stored_state(&answer.read::<String>()?)?;
        let deadline_ms = answer.read()?;
        let holds_suspect = answer.read::<u8>()? == 1;
        let renewed = answer.read_all(|answer| read_lease(answer, at, deadline_ms))?;
        let holding: BTreeSet<_> = renewed.iter().map(|lease| &lease.fence).collect();
        let lost = held.iter().filter(|fence| !holding.contains(fence)).cloned().collect();
        // A unit holds at least one dialogue, so none means that the worker reported the lease.
        let unreported = renewed.into_iter().filter(|lease| lease.dialogues > 0).collect();
        Ok(Renewal { state, lost, unreported, holds_suspect, deadline_ms })
    }

    async fn release(&self, at: &RunRef, fences: &[Fence]) -> Result<Vec<Transition>> {
        limits::check_fences(fences)?;
        let mut call = call(&scripts::RELEASE, at);
        add_fences(&mut call, at, fences);
        transitions(self.invoke("release", &call, Some(at)).await?, at, fences)
    }

    async fn finish(&self, at: &RunRef, fences: &[Fence]) -> Result<Vec<Transition>> {
        limits::check_fences(fences)?;
        let mut call = call(&scripts::FINISH, at);
        add_fences(&mut call, at, fences);
        transitions(self.invoke("finish", &call, Some(at)).await?, at, fences)
    }

    async fn reap(&self, at: &RunRef, whose: &Reap) -> Result<Reaped> {
        let worker = match whose {
            Reap::Expired => "",
            Reap::Worker(worker) => {
                limits::check_worker(worker)?;
                worker.as_str()
            }
        };
        let mut call = call(&scripts::REAP, at);
        call.arg(worker).arg(limits::REAPED_PER_MODEL_MAX).arg(whose.cause());
        let mut answer = self.invoke("reap", &call, Some(at)).await?;
        let more = answer.read::<u8>()? == 1;
        let mut fates = answer.read_all(|answer| {
            Ok((answer.read::<String>()?, UnitId(answer.read()?), answer.read::<u8>()?))
        })?;
        // A set of models has no order of its own.
        fates.sort_unstable();
        let mut reaped = Reaped { more, ..Reaped::default() };
        for (_, unit, fate) in fates {
            let list = match fate {
                0 => &mut reaped.returned,
                1 => &mut reaped.suspected,
                2 => &mut reaped.struck,
                _ => &mut reaped.dead,
            };
            list.push(unit);
        }
        Ok(reaped)
    }

    async fn tickets(&self, at: &RunRef, count: u32) -> Result<Range<u64>> {
        limits::check_tickets(count)?;
        let mut call = call(&scripts::TICKETS, at);
        call.arg(count);
        let first: u64 = self.invoke("tickets", &call, Some(at)).await?.read()?;
        Ok(first..first + u64::from(count))
    }

    async fn commit(&self, at: &RunRef, commits: &[Commit]) -> Result<Vec<CommitEffect>> {
        limits::check_commits(commits)?;
        let mut call = call(&scripts::COMMIT, at);
        for Commit { key, record } in commits {
            call.arg(key.model.as_str()).arg(keys::cell(key)).arg(key.iteration).arg(write_record(*record));
        }
        self.invoke("commit", &call, Some(at)).await?.read_all(|answer| {
            let verdict: String = answer.read()?;
            match (verdict.as_str(), read_record(answer)?) {
                ("first", _) => Ok(CommitEffect::First),
                ("repeated", _) => Ok(CommitEffect::Repeated),
                ("supersedes", Some(other)) => Ok(CommitEffect::Supersedes(other)),
                ("loses", Some(other)) => Ok(CommitEffect::Loses(other)),
                _ => Err(answer.corrupt(&format!("is `{verdict}`"))),
            }
        })
    }

    async fn committed(&self, at: &RunRef, keys_: &[DialogueKey]) -> Result<Vec<Option<Committed>>> {
        limits::check_keys(keys_)?;
        let mut call = call(&scripts::COMMITTED, at);
        for key in keys_ {
            call.arg(keys::cell(key)).arg(key.iteration);
        }
        self.invoke("committed", &call, Some(at)).await?.read_all(read_record)
    }

    async fn counts(&self, at: &RunRef) -> Result<Vec<ModelCounts>> {
        let call = call(&scripts::COUNTS, at);
        let mut models = self.invoke("counts", &call, Some(at)).await?.read_all(|answer| {
            let model = ModelLabel::new(answer.read::<String>()?);
            let [
                added,
                pending,
                leased,
                dead,
                backlog_dialogues,
                scored,
                failed,
                suspects_pending,
                suspects_leased,
                until_ms,
            ] = {
                let mut numbers = [0_u64; 10];
                for number in &mut numbers {
                    *number = answer.read()?;
                }
                numbers
            };
            let reason: String = answer.read()?;
            let parked = (until_ms > 0).then_some(Parked { reason, until_ms });
            let done = added - pending - leased - dead;
            Ok(ModelCounts {
                model,
                added,
                pending,
                suspects_pending,
                suspects_leased,
                leased,
                dead,
                done,
                backlog_dialogues,
                scored,
                failed,
                parked,
            })
        })?;
        models.sort_unstable_by(|a, b| a.model.cmp(&b.model));
        Ok(models)
    }

    async fn suspects(
        &self,
        at: &RunRef,
        dead: bool,
        after: Option<UnitId>,
        limit: u32,
    ) -> Result<Vec<Suspect>> {
        limits::check_page(limit)?;
        let lowest = after.map_or_else(|| "-inf".to_owned(), |after| format!("({after}"));
        let mut call = call(&scripts::SUSPECTS, at);
        call.arg(if dead { "dead" } else { "suspects" }).arg(lowest).arg("+inf").arg(limit);
        self.invoke("suspects", &call, Some(at)).await?.read_all(read_suspect)
    }

    async fn suspect(&self, at: &RunRef, unit: UnitId) -> Result<Option<Suspect>> {
        limits::check_unit_ids(&[unit])?;
        let mut call = call(&scripts::SUSPECTS, at);
        call.arg("dead suspects").arg(unit.0).arg(unit.0).arg(1);
        Ok(self.invoke("suspects", &call, Some(at)).await?.read_all(read_suspect)?.pop())
    }

    async fn requeue(&self, at: &RunRef, units: &[UnitId]) -> Result<u64> {
        limits::check_unit_ids(units)?;
        let mut call = call(&scripts::REQUEUE, at);
        for unit in units {
            call.arg(unit.0);
        }
        self.invoke("requeue", &call, Some(at)).await?.read()
    }

    async fn park(&self, at: &RunRef, model: &ModelLabel, parked_for: Duration, reason: &str) -> Result<()> {
        limits::check_parking(model, parked_for)?;
        let mut call = call(&scripts::PARK, at);
        call.arg(model.as_str()).arg(millis(parked_for)).arg(limits::shorten(reason));
        self.invoke("park", &call, Some(at)).await.map(|_| ())
    }

    async fn unpark(&self, at: &RunRef, model: &ModelLabel) -> Result<()> {
        limits::check_model(model)?;
        let mut call = call(&scripts::UNPARK, at);
        call.arg(model.as_str());
        self.invoke("unpark", &call, Some(at)).await.map(|_| ())
    }

    async fn heartbeat(
        &self,
        worker: &WorkerId,
        claim: &Claim,
        info: &[u8],
        ttl: Duration,
    ) -> Result<Heartbeat> {
        limits::check_heartbeat(worker, claim, info, ttl)?;
        let mut call = scripts::HEARTBEAT.key(&keys::WORKERS);
        call.arg(worker.as_str()).arg(info).arg(millis(ttl)).arg(limits::WORKERS_MAX);
        call.arg(limits::WORKERS_PER_IDENTITY_MAX).arg(claim.instance.as_str()).arg(&claim.identity);
        for predecessor in &claim.predecessors {
            call.arg(predecessor.as_str());
        }
        let mut answer = self.invoke("heartbeat", &call, None).await?;
        Ok(match answer.read::<i8>()? {
            -1 => Heartbeat::Taken(WorkerNameTaken {
                instance: InstanceId::new(answer.read::<String>()?),
                info: answer.read()?,
                silent_ms: answer.read()?,
                free_in_ms: answer.read()?,
            }),
            drain => Heartbeat::Registered(HeartbeatOrders { drain: drain == 1 }),
        })
    }

    async fn workers(&self) -> Result<Vec<WorkerEntry>> {
        let call = scripts::WORKERS.key(&keys::WORKERS);
        let mut workers = self.invoke("workers", &call, None).await?.read_all(|answer| {
            Ok(WorkerEntry {
                worker: WorkerId::new(answer.read::<String>()?),
                instance: InstanceId::new(answer.read::<String>()?),
                info: answer.read()?,
                seen_ms: answer.read()?,
                draining: answer.read::<u8>()? == 1,
            })
        })?;
        workers.sort_unstable_by(|a, b| a.worker.cmp(&b.worker));
        Ok(workers)
    }

    async fn drain_worker(&self, worker: &WorkerId) -> Result<bool> {
        limits::check_worker(worker)?;
        let mut call = scripts::DRAIN_WORKER.key(&keys::WORKERS);
        call.arg(worker.as_str());
        Ok(self.invoke("drain_worker", &call, None).await?.read::<u8>()? == 1)
    }

    async fn deregister(&self, worker: &WorkerId, instance: &InstanceId) -> Result<bool> {
        limits::check_worker(worker)?;
        limits::check_instance(instance)?;
        let mut call = scripts::DEREGISTER.key(&keys::WORKERS);
        call.arg(worker.as_str()).arg(instance.as_str());
        Ok(self.invoke("deregister", &call, None).await?.read::<u8>()? == 1)
    }

    async fn note_pools(&self, release: &str, info: &[u8], ttl: Duration) -> Result<()> {
        limits::check_pools(release, info, ttl)?;
        let mut call = scripts::NOTE_POOLS.key(&keys::POOLS);
        call.arg(release).arg(info).arg(millis(ttl)).arg(limits::RELEASES_MAX);
        let releases: usize = self.invoke("note_pools", &call, None).await?.read()?;
        limits::at_most("releases with pools", limits::RELEASES_MAX, releases)
    }

    async fn pools(&self) -> Result<Vec<PoolsEntry>> {
        let call = scripts::POOLS.key(&keys::POOLS);
        let mut pools = self
            .invoke("pools", &call, None)
            .await?
            .read_all(|answer| Ok(PoolsEntry { release: answer.read()?, info: answer.read()? }))?;
        pools.sort_unstable_by(|a, b| a.release.cmp(&b.release));
        Ok(pools)
    }

    async fn take_rate(&self, bucket: &str, rate: RateLimit, permits: u32) -> Result<RateReply> {
        limits::check_rate(bucket, rate, permits)?;
        let mut call = scripts::TAKE_RATE.key(keys::rate(bucket));
        call.arg(rate.interval_us()).arg(rate.burst).arg(permits);
        let wait_ms = self.invoke("take_rate", &call, None).await?.read()?;
        Ok(if wait_ms == 0 { RateReply::Granted } else { RateReply::Wait { ms: wait_ms } })
    }

    async fn now_ms(&self) -> Result<u64> {
        let call = scripts::NOW.key(keys::CLOCK);
        self.invoke("now", &call, None).await?.read()
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
}

fn read<T: FromRedisValue>(value: Value) -> Result<T> {
    ::redis::from_redis_value(value).map_err(|error| corrupt(&error.to_string()))
}
