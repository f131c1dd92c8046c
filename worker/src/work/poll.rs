//! Sends reports to the coordinator and carries out its answers.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use domain::exchange::{ANY_MODEL, Offer, Orders, Report, Serves, UNIT_DIALOGUES_MAX};
use domain::{ErrorCode, ServiceError};
use tokio::time::Instant;

use super::Work;
use super::ending::DrainPhase;
use super::leaving::LOOK_EVERY;
use crate::servers::ServerKey;
use crate::slots::{Granted, Tag};
use crate::{metrics, name};
use domain::Backoff;

/// How long the coordinator may hold an answer until there is work.
const WAIT: Duration = Duration::from_secs(20);

/// Extra time before an overdue answer counts as failed.
const WAIT_EXTRA: Duration = Duration::from_secs(10);

/// Minimum age of a pending report before a newer one with news replaces it, because several things change at once.
const REPLACED_AFTER: Duration = Duration::from_millis(25);

/// The same where there is room for which the pending report does not ask: a slot waits for it. It is also looked no more
/// often than this whether there is.
const ROOM_AFTER: Duration = Duration::from_millis(4);

/// Pause after an answer that returned early without work.
const PAUSE: Duration = Duration::from_millis(100);

type Call = Pin<Box<dyn Future<Output = Result<Orders, ServiceError>> + Send>>;

/// Dialogues wanted by servers.
#[derive(Clone, Copy, Default)]
struct Wanted {
    /// To start at once.
    now: u32,
    /// To lease ahead.
    ahead: u32,
}

impl Wanted {
    fn add(self, other: Self) -> Self {
        Self { now: self.now + other.now, ahead: self.ahead + other.ahead }
    }
}

/// The result of a report.
pub(super) struct ReportAnswer {
    report: Arc<Report>,
    began: Instant,
    orders: Result<Orders, ServiceError>,
}

/// A report without an answer.
struct PendingReport {
    report: Arc<Report>,
    began: Instant,
    call: Call,
    /// When it was looked last whether a newer one would say more.
    looked: Instant,
    /// Whether anything has happened since then.
    stirred: bool,
}

/// The pending report, and when the next may be sent.
#[derive(Default)]
pub(super) struct Poll {
    pending: Option<PendingReport>,
    not_before: Option<Instant>,
    /// When a worker without room asks again what is left.
    look_at: Option<Instant>,
    backoff: Backoff,
    /// Why the coordinator cannot be asked.
    pub(super) trouble: Option<String>,
}

impl Poll {
    /// The answer to the pending report; pends forever if there is none.
    pub(super) async fn answer(&mut self) -> ReportAnswer {
        let Some(pending) = &mut self.pending else { return std::future::pending().await };
        let orders = pending.call.as_mut().await;
        let answered = ReportAnswer { report: Arc::clone(&pending.report), began: pending.began, orders };
        self.pending = None;
        answered
    }

    /// Something has happened that a newer report might say.
    pub(super) fn stir(&mut self) {
        if let Some(pending) = &mut self.pending {
            pending.stirred = true;
        }
    }
}

impl Work {
    /// Sends a report if one is due; returns when the next may be.
    pub(super) fn advance_poll(&mut self, now: Instant) -> Option<Instant> {
        let look_at = self.review_pending(now);
        if self.poll.pending.is_some() {
            return look_at;
        }
        if let Some(not_before) = self.poll.not_before.filter(|not_before| now < *not_before) {
            return Some(not_before);
        }
        let offers = self.offers(now);
        let status = self.status(now);
        self.config.readiness.set(status.trouble.clone().map_or(Ok(()), Err));
        metrics::trouble(status.trouble.is_some());
        let looks = self.until.is_some() && self.ledger.lock().slots.is_empty();
        let wait = if offers.iter().any(|offer| offer.room > 0) {
            if looks { LOOK_EVERY } else { WAIT }
        } else if (looks && self.poll.look_at.is_none_or(|at| at <= now)) || self.ledger.lock().has_news(None)
        {
            Duration::ZERO
        } else {
            // The lease keeper reports it with its next renewal.
            let serves: Vec<Serves> = offers.into_iter().map(|offer| offer.serves).collect();
            let mut ledger = self.ledger.lock();
            (ledger.serves, ledger.status) = (serves, status);
            return self.poll.look_at.filter(|_| looks);
        };
        self.poll.look_at = Some(now + LOOK_EVERY);
        let (report, registration) = {
            let mut ledger = self.ledger.lock();
            ledger.serves = offers.iter().map(|offer| offer.serves.clone()).collect();
            ledger.status = status;
            (Arc::new(ledger.report(offers, wait)), ledger.registration.clone())
        };
        let (exchange, sent) = (Arc::clone(&self.exchange), Report::clone(&report));
        let call = async move {
            let answer = name::report(&*exchange, registration, sent);
            tokio::time::timeout(wait + WAIT_EXTRA, answer).await.unwrap_or_else(|_| {
                Err(ServiceError::new(
                    ErrorCode::Unavailable,
                    "the coordinator did not answer a report in time",
                ))
            })
        };
        let call = Box::pin(call);
        self.poll.pending = Some(PendingReport { report, began: now, call, looked: now, stirred: false });
        None
    }

    /// Gives the pending report up where a newer one may be answered otherwise; returns when to look again.
    fn review_pending(&mut self, now: Instant) -> Option<Instant> {
        let pending = self.poll.pending.as_ref()?;
        if !pending.stirred || pending.report.wait.is_zero() {
            return None;
        }
        let look_at = pending.looked + ROOM_AFTER;
        if now < look_at {
            return Some(look_at);
        }
        let replaced_at = self.replaced_after(&pending.report, now).map(|after| pending.began + after);
        if replaced_at.is_some_and(|at| at <= now) {
            // There was no work for its offers. If an answer is in transit nevertheless, its grants come again with
            // the next one.
            self.poll.pending = None;
        } else if let Some(pending) = &mut self.poll.pending {
            (pending.looked, pending.stirred) = (now, replaced_at.is_some());
        }
        replaced_at
    }

    /// How old a report must be before a newer one replaces it; `None` while a newer one would contain nothing that may
    /// change the answer.
    fn replaced_after(&self, report: &Report, now: Instant) -> Option<Duration> {
        let offered =
            |offer: &Offer| report.offers.iter().any(|old| old.serves == offer.serves && old.room > 0);
        if self.offers(now).iter().any(|offer| offer.room > 0 && !offered(offer)) {
            return Some(ROOM_AFTER);
        }
        self.ledger.lock().has_news(Some(report)).then_some(REPLACED_AFTER)
    }

    /// The current offers: what is served, and the room for it.
    fn offers(&self, now: Instant) -> Vec<Offer> {
        let accepting = self.phase == DrainPhase::Working && self.outbox.has_room();
        let ledger = self.ledger.lock();
        let slots = &ledger.slots;
        let mut unresolved = slots.total().pending;
        let mut pending: BTreeMap<&Serves, u32> = BTreeMap::new();
        let mut hosted: BTreeMap<&Serves, BTreeSet<&ServerKey>> = BTreeMap::new();
        let mut closed: BTreeSet<&Serves> = BTreeSet::new();
        let mut lacking: BTreeSet<&Serves> = BTreeSet::new();
        for (key, lane) in &self.lanes {
            let count = slots.count(key);
            unresolved -= count.pending;
            *pending.entry(&lane.serves).or_default() += count.pending;
            if count.pending + count.running > 0 {
                hosted.entry(&lane.serves).or_default().extend(&lane.servers);
            }
            // A model that only this worker's own servers serve is not offered while its breaker is open; others are
            // parked by the coordinator.
            if self.breakers.get(key).is_some_and(|breaker| breaker.is_open(now)) {
                closed.insert(&lane.serves);
            }
            if count.pending > 0 && lane.lacks_cases(key, slots) {
                lacking.insert(&lane.serves);
            }
        }
        let room = |serves: &Serves, wanted: Wanted| {
            let pending = pending.get(serves).copied().unwrap_or(0) + unresolved;
            let room = (wanted.now + wanted.ahead).saturating_sub(pending);
            // Less than half of the wanted prefetch is not worth a call while there is something to start, and each
            // server has a case of its own.
            let worth = room >= wanted.ahead / 2 || pending == 0 || lacking.contains(serves);
            if accepting && worth { room } else { 0 }
        };
        let mut offers = Vec::new();
        for model in self.servers.models(now) {
            let servers = self.servers.of_model(&model, now);
            // Where no names are told, the coordinator leaves out the models whose breakers are open.
            let is_any = model == ANY_MODEL;
            let serves = Serves::Model(model);
            let of_lanes = hosted.get(&serves).filter(|_| is_any).into_iter().flatten().copied();
            let servers = servers.iter().chain(of_lanes);
            let wanted = servers.map(|server| self.wanted(server)).fold(Wanted::default(), Wanted::add);
            let wanted = if closed.contains(&serves) && !is_any { Wanted::default() } else { wanted };
            offers.push(Offer { room: room(&serves, wanted), serves });
        }
        for connector in &self.config.connectors {
            let serves = Serves::Connector(*connector);
            let servers = hosted.get(&serves).into_iter().flatten();
            // One more unit for a model without any: its limit is unknown before its first grant.
            let one_more = Wanted { now: 0, ahead: UNIT_DIALOGUES_MAX };
            let wanted = servers.map(|server| self.wanted(server)).fold(one_more, Wanted::add);
            offers.push(Offer { room: room(&serves, wanted), serves });
        }
        offers
    }

    /// Dialogues wanted by a server.
    fn wanted(&self, server: &ServerKey) -> Wanted {
        match self.servers.free(server) {
            0 if self.servers.in_flight(server) == 0 => Wanted::default(), // It does not answer.
            now => Wanted { now, ahead: self.servers.prefetch(server) },
        }
    }

    pub(super) fn answered(&mut self, answered: ReportAnswer, now: Instant) {
        let ReportAnswer { report, began, orders } = answered;
        match orders {
            Ok(orders) => {
                self.told(orders.outlook, began, now);
                self.poll.backoff.reset();
                self.poll.trouble = None;
                let noted = orders.noted;
                let granted = self.take_orders(&report, orders, now);
                let idle = granted == 0 && (!noted || !report.wait.is_zero());
                let early = now.duration_since(began) < PAUSE;
                self.poll.not_before = (idle && early).then(|| now + PAUSE);
            }
            Err(error) => {
                metrics::exchange_failed(error.code);
                if let Some(until) = &mut self.until {
                    until.unanswered();
                }
                tracing::warn!(%error, "the coordinator cannot be asked for work");
                self.poll.trouble = Some(format!("the coordinator cannot be asked for work: {error}"));
                self.poll.not_before = Some(now + self.poll.backoff.next_delay());
            }
        }
    }

    /// Carries out the coordinator's orders; returns the number of new units.
    pub(super) fn take_orders(&mut self, report: &Report, orders: Orders, now: Instant) -> usize {
        let Orders { grants, lost, noted, drain, superseded, outlook: _ } = orders;
        let mut stopped: Vec<Tag> = Vec::new();
        let mut new = 0;
        {
            let mut ledger = self.ledger.lock();
            if noted {
                ledger.noted(report);
            }
            for lease in &lost {
                // Of a run that has just ended, a lease without such dialogues may still be held.
                let dialogues = ledger.slots.unasked(lease);
                if dialogues > 0 {
                    tracing::warn!(?lease, dialogues, "a lease was lost; its dialogues are stopped");
                }
                stopped.extend(ledger.slots.lost(lease));
            }
            for grant in grants {
                self.outbox.offer(&grant.lease.run);
                new += usize::from(ledger.slots.grant(grant) == Granted::New);
            }
            if self.phase != DrainPhase::Working {
                ledger.slots.give_back_all();
            }
        }
        metrics::leases_lost(lost.len());
        stopped.iter().for_each(|tag| self.abort(tag));
        self.unsettled |= new > 0;
        if drain {
            self.drain(now);
        }
        if let Some(by) = superseded {
            self.supersede(by, now);
        }
        new
    }
}
