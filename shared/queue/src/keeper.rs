//! Leads when nobody else does, and sends rounds to where the queue is kept for the next leader.

use std::pin::pin;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use domain::RecordId;
use futures::future::BoxFuture;
use tokio::sync::{Notify, OnceCell};
use tokio::time::Instant;

use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::kept::{Change, KeptEntries};
use crate::leader::{LeaderWatch, NamedLeader};
use crate::memory::MemoryQueue;
use crate::memory_store::{Shared, lock};
use crate::owner::QueueOwner;
use crate::rounds::{Role, Rounds};

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

/// Where the queue is kept for the next leader. Each call is one step: it happens wholly or not at all, one after another.
#[async_trait::async_trait]
pub(crate) trait BackingStore: Send + Sync {
    /// Its address without login, for messages.
    fn place(&self) -> &str;

    /// The address in a normal form, equal for equal places.
    fn address(&self) -> &str;

    async fn owner(&self) -> Result<Option<QueueOwner>>;

    /// Changes the owner from one to another. The owner that it has then.
    async fn bind(&self, from: Option<&QueueOwner>, to: &QueueOwner) -> Result<QueueOwner>;

    /// Warnings about its settings.
    async fn check(&self) -> Result<Vec<String>>;

    async fn named(&self) -> Result<Option<NamedLeader>>;

    /// Claims the next epoch; `None` if somebody was quicker.
    async fn claim(&self, claim: EpochClaim<'_>) -> Result<Option<Claimed>>;

    async fn load(&self) -> Result<KeptEntries>;

    /// Applies a round, if its leader still leads.
    fn apply(&self, round: Round<'_>) -> BoxFuture<'_, Result<Applied>>;

    /// Says that a leader ends.
    async fn leave(&self, epoch: u64, id: &str) -> Result<()>;
}

/// Who may lead by what outlives Redis: an emptied or restored Redis does not know who led last.
#[async_trait::async_trait]
pub trait LeaderFence: Send + Sync {
    /// Claims the right to lead, from whoever had it.
    ///
    /// # Errors
    /// Nobody knows: this process may not lead.
    async fn claim(&self) -> Result<()>;

    /// Sees that nobody has claimed it since.
    ///
    /// # Errors
    /// [`Error::NotLeader`]: somebody has. Any other error says that it is not known now.
    async fn check(&self) -> Result<()>;
}

/// A claim of the epoch after all that the caller has seen.
pub(crate) struct EpochClaim<'c> {
    /// Epoch and id of the leader that is followed; 0 and empty for none.
    pub(crate) after: (u64, &'c str),
    /// The highest epoch that was ever seen.
    pub(crate) seen: u64,
    pub(crate) id: &'c str,
    pub(crate) name: &'c str,
}

/// An epoch that was claimed.
pub(crate) struct Claimed {
    pub(crate) epoch: u64,
    /// Whether what is kept is whole.
    pub(crate) is_whole: bool,
}

/// The round of a leader.
pub(crate) struct Round<'r> {
    pub(crate) epoch: u64,
    pub(crate) id: &'r str,
    pub(crate) number: u64,
    pub(crate) changes: &'r [Change],
}

/// What became of a round.
pub(crate) enum Applied {
    Done,
    /// Nothing was changed: another epoch or another number is kept.
    Other {
        epoch: u64,
        id: String,
        name: String,
    },
}

/// What one process does to lead, and to send its rounds.
pub(crate) struct Keeper {
    store: Box<dyn BackingStore>,
    /// The address of this process.
    name: String,
    /// This process, whatever its address.
    id: String,
    /// Without one, Redis alone decides.
    fence: OnceLock<Arc<dyn LeaderFence>>,
    begun: OnceCell<()>,
    /// Says that there is something for a round.
    wake: Notify,
    /// Says that something has changed about rounds or leading.
    told: Notify,
}

impl Keeper {
    /// For the process with this name.
    pub(crate) fn new(store: Box<dyn BackingStore>, name: &str) -> Self {
        Self {
            store,
            name: name.to_owned(),
            id: RecordId::random().as_str().to_owned(),
            fence: OnceLock::new(),
            begun: OnceCell::new(),
            wake: Notify::new(),
            told: Notify::new(),
        }
    }

    pub(crate) fn store(&self) -> &dyn BackingStore {
        &*self.store
    }

    /// Leads from now on only where this fence lets it. The first one stays.
    pub(crate) fn set_fence(&self, fence: Arc<dyn LeaderFence>) {
        let _ = self.fence.set(fence);
    }

    /// Sees that the fence lets this process lead.
    async fn check_fence(&self) -> Result<()> {
        match self.fence.get() {
            Some(fence) => fence.check().await,
            None => Ok(()),
        }
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
        loop {
            let mut told = pin!(self.told.notified());
            told.as_mut().enable();
            if let Some(holding) = lock(shared).rounds.as_ref().and_then(&mut holds) {
                return holding;
            }
            told.await;
        }
    }

    /// Waits until the changes up to a mark were applied.
    pub(crate) async fn until_applied(&self, shared: &Mutex<Shared>, mark: u64) -> Result<()> {
        self.wake.notify_one();
        let applied = self.until(shared, |rounds| rounds.is_applied(mark));
        let silent = || Error::Unavailable {
            message: format!("{}: no round was taken within {} s", self.store.place(), ANSWER_MAX.as_secs()),
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
        if let Ok(Err(error)) = tokio::time::timeout(LEAVE_MAX, self.store.leave(epoch, &self.id)).await {
            tracing::debug!(%error, "the next leader waits a moment");
        }
    }

    /// Claims the next epoch after that of a leader; `None` if somebody was quicker.
    async fn claim(&self, after: Option<(u64, &str)>, seen: u64) -> Result<Option<Claimed>> {
        let after = after.unwrap_or((0, ""));
        self.store.claim(EpochClaim { after, seen, id: &self.id, name: &self.name }).await
    }

    /// Applies the next round of a leader.
    async fn apply(&self, shared: &Mutex<Shared>, epoch: u64) -> Result<Applied> {
        let applying = {
            let mut shared = lock(shared);
            let Some(rounds) = &mut shared.rounds else { return Ok(Applied::Done) };
            let (number, changes) = rounds.next();
            self.store.apply(Round { epoch, id: &self.id, number, changes })
        };
        applying.await
    }
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
        keeper.told.notify_waiters();
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
            let named = self.store.named().await?;
            *seen = named.as_ref().map_or(0, |named| named.epoch).max(*seen);
            if !watch.may_claim(now, named.as_ref()) {
                return Ok(named.map(|named| leads(&named.name)));
            }
            let after = named.as_ref().map(|named| (named.epoch, named.id.as_str()));
            let Some(Claimed { epoch, is_whole }) = self.claim(after, *seen).await? else { return Ok(None) };
            if let Some(fence) = self.fence.get() {
                fence.claim().await?;
            }
            let kept = match is_whole {
                true => self.store.load().await?.into_queue(clock.now_ms())?,
                false => MemoryQueue::kept(),
            };
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
        let applied = self.apply(shared, epoch).await;
        let failed = |error: Error| {
            if let Some(rounds) = &mut lock(shared).rounds {
                rounds.has_failed(error);
            }
            Pause::For(RETRY_EVERY)
        };
        let followed = |by: Error| {
            tracing::warn!(epoch, %by, "another coordinator leads since");
            if let Some(rounds) = &mut lock(shared).rounds {
                rounds.is_followed(by);
            }
            Pause::None
        };
        let (other, id) = match applied {
            Err(error) => return failed(error),
            Ok(Applied::Other { epoch: other, name, .. }) if other > epoch => return followed(leads(&name)),
            Ok(Applied::Other { epoch, id, .. }) => (epoch, Some(id)),
            Ok(Applied::Done) => (epoch, None),
        };
        // A Redis that was emptied or set back may have had another leader meanwhile, even if it names this one.
        match self.check_fence().await {
            Ok(()) => {}
            Err(by @ Error::NotLeader { .. }) => return followed(by),
            Err(error) => return failed(error),
        }
        let Some(id) = id else {
            let mut shared = lock(shared);
            let Some(rounds) = &mut shared.rounds else { return Pause::None };
            rounds.is_good(clock.now_ms());
            return if rounds.is_due() { Pause::None } else { Pause::UntilChanges };
        };
        // Redis has come back from an older state, or was emptied: it is told everything anew.
        match self.claim((other > 0).then_some((other, id.as_str())), epoch).await {
            Ok(Some(Claimed { epoch: next, .. })) => {
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
            Err(error) => failed(error),
        }
    }
}
