//! Renews leases on a dedicated thread.
//!
//! A worker that evaluates on every core may be slow to do anything else, and a lease that is renewed too late makes
//! its unit a suspect. So renewal shares only the ledger with the work loop. It has its own thread, its own runtime,
//! and its own connection, because a connection is driven by the runtime that made it.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use domain::exchange::{Orders, Report, WorkExchange};
use domain::{ErrorCode, ServiceError, machine};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::ledger::SharedLedger;
use crate::{metrics, name};
use domain::Backoff;

/// Connects to the coordinator, on the runtime that calls it.
pub type ExchangeFactory = Arc<dyn Fn() -> Arc<dyn WorkExchange> + Send + Sync>;

/// Maximum number of replies queued for the work loop. More are dropped: the next reply brings everything again.
const REPLIES_WAITING_MAX: usize = 16;

/// How often the keeper checks whether a renewal is due: new leases may be shorter.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Minimum timeout of a renewal, however short the leases.
const ANSWER_MIN: Duration = Duration::from_secs(1);

/// The keeper of one worker. Ends when it is dropped. In a simulation it is a task instead of a thread.
pub struct Keeper {
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The result of a renewal.
pub struct RenewalReply {
    /// The report that was sent.
    pub report: Report,
    /// When it was sent.
    pub asked: Instant,
    /// The answer.
    pub orders: Orders,
}

impl Keeper {
    /// Starts renewing, at least every `report_every`, and every third of the shortest lease.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(
        ledger: SharedLedger,
        connect: ExchangeFactory,
        report_every: Duration,
    ) -> std::io::Result<(Self, mpsc::Receiver<RenewalReply>)> {
        let (replies, received) = mpsc::channel(REPLIES_WAITING_MAX);
        let (end, ended) = oneshot::channel();
        let keep = async move {
            tokio::select! {
                biased;
                _ = ended => {}
                () = renew(ledger, connect, report_every, replies) => {}
            }
        };
        let thread = if machine::simulated().is_some() {
            tokio::spawn(keep);
            None
        } else {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let thread = std::thread::Builder::new().name("lease-keeper".to_owned());
            Some(thread.spawn(move || runtime.block_on(keep))?)
        };
        Ok((Self { end: Some(end), thread }, received))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // It ends at its next await.
            let _ = thread.join();
        }
    }
}

async fn renew(
    ledger: SharedLedger,
    connect: ExchangeFactory,
    report_every: Duration,
    replies: mpsc::Sender<RenewalReply>,
) {
    let mut exchange = connect();
    let mut backoff = Backoff::default();
    let (mut renewed, mut next) = (Instant::now(), None);
    loop {
        let interval = {
            let ledger = ledger.lock();
            ledger.slots.shortest_lease().map_or(report_every, |lease| (lease / 3).min(report_every))
        };
        let due = next.unwrap_or(renewed + interval);
        if Instant::now() < due {
            tokio::time::sleep_until(due.min(Instant::now() + LOOK_EVERY)).await;
            continue;
        }
        let (report, registration) = {
            let ledger = ledger.lock();
            (ledger.renewal(), ledger.registration.clone())
        };
        let began = Instant::now();
        let answer = tokio::time::timeout(
            interval.max(ANSWER_MIN),
            name::report(&*exchange, registration, report.clone()),
        )
        .await;
        let timed_out = answer.is_err();
        let answer = answer.unwrap_or_else(|_| {
            let message = format!("no answer within {:?}", interval.max(ANSWER_MIN));
            Err(ServiceError::new(ErrorCode::Unavailable, message))
        });
        match answer {
            Ok(orders) => {
                (renewed, next) = (began, None);
                backoff.reset();
                // A full channel means that the work loop is behind; see the constant.
                let _ = replies.try_send(RenewalReply { report, asked: began, orders });
            }
            Err(error) => {
                metrics::exchange_failed(error.code);
                tracing::warn!(leases = report.held.len(), %error, "leases were not renewed");
                if timed_out {
                    // A connection may hang when a new one would work.
                    exchange = connect();
                }
                next = Some(Instant::now() + backoff.next_delay().min(interval));
            }
        }
        metrics::renewal_age(renewed.elapsed());
    }
}
