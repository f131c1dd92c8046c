//! A worker from its first words to its last.

use std::sync::Arc;
use std::time::Duration;

use domain::exchange::{NameTaken, Registered, Registration, WorkExchange};
use domain::{ServiceError, WorkerId};
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
use crate::runs::Runs;
use crate::servers::WrongModel;
use crate::slots::Tally;
use crate::work::{Ears, Work};
use domain::Backoff;
use service_kit::{Stop, StopReceiver};

/// News of servers that wait for the work loop.
const NEWS_WAITING_MAX: usize = 256;

/// The longest wait for an answer to the first and last words.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// How much longer than its registration lasts a process that has the same name is waited for.
const NAME_MARGIN: Duration = Duration::from_secs(5);

/// What a worker did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerReport {
    /// Dialogues that ended here, failed ones included.
    pub dialogues: u64,
    /// How the dialogues that were granted ended.
    pub tally: Tally,
    /// Records that no coordinator has acknowledged. Where there is a spool, they are sent when a worker of this name
    /// is started again.
    pub unacknowledged: u64,
}

/// Why a worker does not work.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The address of a server is none.
    #[error("{0}")]
    Endpoint(#[from] models::SetupError),
    /// The spool cannot be used.
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// A server serves something else.
    #[error(transparent)]
    WrongModel(#[from] WrongModel),
    /// Another process has this worker's name.
    #[error("worker {worker}: {by}; give each worker a --name of its own")]
    NameTaken {
        /// The name.
        worker: WorkerId,
        /// Who has it.
        by: NameTaken,
    },
    /// The coordinator does not take this worker.
    #[error("the coordinator refuses this worker: {0}")]
    Refused(ServiceError),
    /// The machine does not give what is needed.
    #[error("cannot start the lease keeper: {0}")]
    Keeper(std::io::Error),
}

pub struct Worker;

impl Worker {
    /// Works until `stop` or the coordinator asks for an end, and returns when what it held is delivered or given
    /// back. `connect` is called on each runtime that talks to the coordinator: here, and on the lease keeper's.
    ///
    /// A coordinator that cannot be reached is waited for.
    ///
    /// # Errors
    /// See [`WorkerError`]; all of them need a person.
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
        let registered = tokio::select! {
            registered = register(&*exchange, registration.clone()) => registered?,
            () = asked_to_end(&mut stop) => return Ok(WorkerReport::default()),
        };
        tracing::info!(worker = %config.worker, coordinator = registered.kgfleet, "registered");
        let status = config.first_status();
        let ledger = SharedLedger::new(Ledger::new(registration, status));
        let (outbox, arrivals) = Outbox::start(Arc::clone(&exchange), spool);
        let (keeper, renewals) =
            Keeper::start(ledger.clone(), connect, registered.report_every).map_err(WorkerError::Keeper)?;
        let (tell, news) = mpsc::channel(NEWS_WAITING_MAX);
        let discovery = Discovery::start(config.endpoints.clone(), config.server_key.clone(), tell);
        let runs = Arc::new(Runs::new(
            Arc::clone(&exchange),
            config.evaluation.clone(),
            config.evaluators,
            config.pack_dir.clone().map(PackFolder::new),
        ));
        let worker = config.worker.clone();
        let mut work = Work::new(config, Arc::clone(&exchange), ledger.clone(), outbox, discovery, runs);
        let mut ears = Ears { stop, arrivals, renewals, news };
        let ended = work.run(&mut ears).await;
        drop(keeper);
        let unacknowledged = work.unacknowledged();
        let superseded = work.superseded();
        work.close().await;
        if let Some(by) = superseded {
            return Err(WorkerError::NameTaken { worker, by });
        }
        match tokio::time::timeout(ANSWER_MAX, exchange.deregister(&worker, &instance.id)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the coordinator was not told of the end"),
            Err(_) => tracing::warn!("the coordinator was not told of the end in time"),
        }
        let tally = ledger.lock().slots.tally();
        Ok(WorkerReport { dialogues: ended?, tally, unacknowledged })
    }
}

/// Opens the worker's own folder under the spool's, and finds out which processes this one follows. What workers that do
/// not come back have left beside it is delivered, too.
async fn open_spool(config: &WorkerConfig) -> Result<(Option<OpenSpool>, Instance), SpoolError> {
    let Some(SpoolConfig { dir, bytes_max }) = config.spool.clone() else {
        return Ok((None, Instance::fresh()));
    };
    // Names of workers may have any characters; those of folders may not.
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
    let opened = tokio::task::spawn_blocking(open).await;
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

/// Registers, with patience for a coordinator that is not there, and for another process that has the name and may be
/// dead: until its registration would have ended, which whatever is heard of it in that time prevents.
async fn register(
    exchange: &dyn WorkExchange,
    registration: Registration,
) -> Result<Registered, WorkerError> {
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
            Ok(Err(error)) if error.code.is_transient() => {
                tracing::warn!(%error, "the coordinator cannot be reached; trying again");
            }
            Ok(Err(error)) => return Err(WorkerError::Refused(error)),
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
