//! The life of a worker, from registration to its last report.

use std::sync::Arc;
use std::time::Duration;

use domain::exchange::{Departure, NameTaken, Registered, Registration, WorkExchange};
use domain::{ErrorCode, ServiceError, WorkerId};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::config::{SpoolConfig, WorkerConfig};
use crate::discovery::{Discovery, Endpoints, normal};
use crate::instance::Instance;
use crate::keeper::{ExchangeFactory, Keeper};
use crate::ledger::{Ledger, SharedLedger};
use crate::material::PackFolder;
use crate::outbox::spool::{Spool, SpoolError};
use crate::outbox::{OpenSpool, Outbox};
use crate::runs::HeldRuns;
use crate::slots::SlotCounts;
use crate::until_done::{COORDINATOR_WAIT_MAX, WorkerEnding};
use crate::work::{LoopInputs, Work};
use domain::Backoff;
use service_kit::{Stop, StopReceiver};

/// Maximum number of queued news for the work loop.
const NEWS_WAITING_MAX: usize = 256;

/// Timeout of the registration and of signing off.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// Extra time to wait beyond the registration of a process with the same name.
const NAME_MARGIN: Duration = Duration::from_secs(5);

/// Summary of a worker's life.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerReport {
    /// Dialogues that ended here, including failed ones.
    pub dialogues: u64,
    /// Granted dialogues by how they ended.
    pub tally: SlotCounts,
    /// Unacknowledged records. If there is a spool, the next worker with this name sends them.
    pub unacknowledged: u64,
    /// Why it ended by itself; `None` if it was told to end.
    pub ended: Option<WorkerEnding>,
}

/// Why a worker cannot run.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The address of a server is invalid.
    #[error("{0}")]
    Endpoint(#[from] models::SetupError),
    /// The spool is unusable.
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// Another process has this worker's name.
    #[error("worker {worker}: {by}; give each worker its own --name")]
    NameTaken {
        /// The name.
        worker: WorkerId,
        /// The process that has it.
        by: NameTaken,
    },
    /// The coordinator refuses this worker.
    #[error("the coordinator refuses this worker: {0}")]
    Refused(ServiceError),
    /// No coordinator answered for [`COORDINATOR_WAIT_MAX`].
    #[error("no coordinator answers for {} s: {error}", COORDINATOR_WAIT_MAX.as_secs())]
    NoCoordinator {
        /// The latest answer.
        error: ServiceError,
    },
    /// The machine lacks resources.
    #[error("cannot start the lease keeper: {0}")]
    Keeper(std::io::Error),
}

pub struct Worker;

impl Worker {
    /// Runs until `stop` or the coordinator requests a shutdown, and returns when all leases and records are
    /// delivered or given back. `connect` is called on each runtime that talks to the coordinator: this one, and the
    /// lease keeper's.
    ///
    /// If the coordinator is unreachable, it waits.
    ///
    /// # Errors
    /// See [`WorkerError`]; all of them need an operator.
    pub async fn run(
        mut config: WorkerConfig,
        connect: ExchangeFactory,
        mut stop: StopReceiver,
    ) -> Result<WorkerReport, WorkerError> {
        if let Endpoints::Listed(listed) = &mut config.endpoints {
            *listed = listed.iter().map(|endpoint| normal(endpoint)).collect::<Result<_, _>>()?;
            listed.sort();
            listed.dedup();
        }
        let (spool, instance) = open_spool(&config).await?;
        let exchange = connect();
        let registration = Registration {
            worker: config.worker.clone(),
            instance: instance.id.clone(),
            predecessors: instance.predecessors,
            kgfleet: env!("CARGO_PKG_VERSION").to_owned(),
            host: config.host.clone(),
        };
        // One that keeps records waits for whom to give them to.
        let keeps_records = spool.as_ref().is_some_and(|spool| !spool.recovered.records.is_empty());
        let patience = config.until_done.filter(|_| !keeps_records).map(|_| COORDINATOR_WAIT_MAX);
        let registered = tokio::select! {
            biased;
            () = asked_to_end(&mut stop) => return Ok(WorkerReport::default()),
            registered = register(&*exchange, registration.clone(), patience) => registered?,
        };
        tracing::info!(worker = %config.worker, coordinator = registered.kgfleet, "registered");
        let status = config.first_status();
        let ledger = SharedLedger::new(Ledger::new(registration, status));
        let (outbox, acknowledged) = Outbox::start(Arc::clone(&exchange), spool);
        let (keeper, renewals) =
            Keeper::start(ledger.clone(), connect, registered.report_every).map_err(WorkerError::Keeper)?;
        let (tell, news) = mpsc::channel(NEWS_WAITING_MAX);
        let discovery = Discovery::start(config.endpoints.clone(), config.server_key.clone(), tell);
        let runs = Arc::new(HeldRuns::new(
            Arc::clone(&exchange),
            config.evaluation.clone(),
            config.evaluators,
            config.pack_dir.clone().map(PackFolder::new),
        ));
        let worker = config.worker.clone();
        let mut work = Work::new(config, Arc::clone(&exchange), ledger.clone(), outbox, discovery, runs);
        let mut inputs = LoopInputs { stop, acknowledged, renewals, news };
        let dialogues = work.run(&mut inputs).await;
        drop(keeper);
        let unacknowledged = work.unacknowledged();
        let superseded = work.superseded();
        let because = work.ended_because();
        work.close().await;
        if let Some(by) = superseded {
            return Err(WorkerError::NameTaken { worker, by });
        }
        let why = because.as_ref().map_or(Departure::Drained, |ending| ending.why);
        match tokio::time::timeout(ANSWER_MAX, exchange.deregister(&worker, &instance.id, Some(why))).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the coordinator was not told of the end"),
            Err(_) => tracing::warn!("the coordinator was not told of the end in time"),
        }
        let tally = ledger.lock().slots.tally();
        Ok(WorkerReport { dialogues, tally, unacknowledged, ended: because })
    }
}

/// Opens the worker's own folder in the spool's, and finds the predecessors of this process. Records of workers that
/// do not come back are delivered, too.
async fn open_spool(config: &WorkerConfig) -> Result<(Option<OpenSpool>, Instance), SpoolError> {
    let Some(SpoolConfig { dir, bytes_max }) = config.spool.clone() else {
        return Ok((None, Instance::fresh()));
    };
    // Worker names may contain any characters, folder names may not.
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let name: String =
        config.worker.as_str().chars().map(|c| if plain(c) { c } else { '_' }).take(200).collect();
    let folder = dir.join(name);
    let path = folder.clone();
    let open = move || {
        let (spool, recovered) = Spool::open(&folder, bytes_max)?;
        let instance = Instance::in_folder(&folder)
            .map_err(|source| SpoolError::Io { path: folder.join("instances"), source })?;
        Ok((spool, recovered, instance))
    };
    let opened = service_kit::aside::run(open).await;
    let (spool, recovered, instance) =
        opened.unwrap_or_else(|error| Err(SpoolError::Io { path, source: std::io::Error::other(error) }))?;
    if recovered.torn_bytes > 0 {
        tracing::warn!(bytes = recovered.torn_bytes, "cut the unfinished end of the spool");
    }
    if !recovered.records.is_empty() {
        tracing::info!(
            records = recovered.records.len(),
            "sending what an earlier process left in the spool"
        );
    }
    Ok((Some(OpenSpool { spool, recovered, bytes_max }), instance))
}

/// Registers. Waits for an unreachable coordinator, and for another process with the same name, which may be dead:
/// until its registration would have ended. Any sign of life of it ends the wait. An unreachable coordinator ends it after
/// `patience`, if given.
async fn register(
    exchange: &dyn WorkExchange,
    registration: Registration,
    patience: Option<Duration>,
) -> Result<Registered, WorkerError> {
    let began = Instant::now();
    let is_over = || patience.is_some_and(|patience| began.elapsed() >= patience);
    let mut backoff = Backoff::default();
    let mut give_up = None;
    loop {
        match tokio::time::timeout(ANSWER_MAX, exchange.register(registration.clone())).await {
            Ok(Ok(Registered { taken: Some(by), .. })) => {
                let now = Instant::now();
                if now >= *give_up.get_or_insert(now + by.free_in + NAME_MARGIN) {
                    return Err(WorkerError::NameTaken { worker: registration.worker, by });
                }
                tracing::warn!(worker = %registration.worker, "{by}; waiting for it to fall silent");
            }
            Ok(Ok(registered)) => return Ok(registered),
            Ok(Err(error)) if error.code.is_transient() && is_over() => {
                return Err(WorkerError::NoCoordinator { error });
            }
            Ok(Err(error)) if error.code.is_transient() => {
                tracing::warn!(%error, "the coordinator cannot be reached; trying again");
            }
            Ok(Err(error)) => return Err(WorkerError::Refused(error)),
            Err(_) if is_over() => {
                let error = ServiceError::new(ErrorCode::Unavailable, "it does not answer");
                return Err(WorkerError::NoCoordinator { error });
            }
            Err(_) => tracing::warn!("the coordinator does not answer; trying again"),
        }
        tokio::time::sleep(backoff.next_delay()).await;
    }
}

async fn asked_to_end(stop: &mut StopReceiver) {
    if stop.wait_for(|stop| *stop > Stop::No).await.is_err() {
        std::future::pending::<()>().await; // Nobody is left who could ask.
    }
}
