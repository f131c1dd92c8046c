//! Checks that queue and record store belong together.
//!
//! A coordinator on an empty folder, because a volume is not mounted or a prefix is misspelt, would tell workers that their
//! runs do not exist and start others in the same queue. And two queues over one record store would have every answer bought
//! twice. So each knows the other: the queue has the identity of its store, and the store has the address of its queue, and a
//! name and a number that the queue was given with its [`QueueOwner`].
//!
//! A queue is bound first, then the store accepts it. Whoever finds a queue that is bound and not accepted yet, at the address
//! that the store knows, finishes that.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::{ErrorCode, ServiceError};
use queue::QueueOwner;
use serde::{Deserialize, Serialize};

use crate::errors::{Result, conflict};
use crate::health::Health;
use crate::options::Adopt;
use crate::queue::client::QueueClient;
use crate::records::store::Store;

/// The document of a record store that says which queue it accepts, in revisions.
const QUEUE_DOCUMENT: &str = "queue.json";

/// How often the next step is decided, because another coordinator was quicker, before the caller has to come again.
const STEPS_MAX: u32 = 16;

/// The queue that a record store accepts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Accepted {
    /// Where it is, without login.
    address: String,
    /// Its name.
    queue: String,
    /// Counts the queues of the store, from 1. One that lost everything counts anew.
    generation: u64,
}

/// What is to be done about the queue of a record store.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// Each knows the other.
    Serve,
    /// The queue is bound; the store accepts it.
    Accept(Accepted),
    /// The queue is bound anew, in this generation.
    Bind(u64),
    /// Another queue than the store accepts.
    Refuse(Unaccepted),
}

/// Why a record store does not accept a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Unaccepted {
    /// The store's queue is at the `known` address.
    Elsewhere { known: String },
    /// It has the number `given`; the store went on with the `newest`.
    Older { given: u64, newest: u64 },
    /// It has the address and the number of the store's queue.
    AnotherName,
}

/// Decides the next step for a queue at this address, whose bond with this store was `found`, by what the store has
/// `accepted`. `ours` is the bond that the caller has given it just now.
fn step(
    address: &str,
    accepted: Option<&Accepted>,
    found: Option<&QueueOwner>,
    ours: Option<&QueueOwner>,
    adopts: bool,
) -> Step {
    let accept = |QueueOwner { queue, generation, .. }: &QueueOwner| {
        Step::Accept(Accepted { address: address.to_owned(), queue: queue.clone(), generation: *generation })
    };
    let Some(accepted) = accepted else {
        return found.map_or(Step::Bind(1), accept);
    };
    let is_accepted =
        |found: &QueueOwner| found.generation == accepted.generation && found.queue == accepted.queue;
    let next = found.map_or(0, |found| found.generation).max(accepted.generation) + 1;
    match found {
        Some(found) if is_accepted(found) && accepted.address == address => Step::Serve,
        Some(found) if ours == Some(found) && found.generation > accepted.generation => accept(found),
        _ if adopts => Step::Bind(next),
        _ if accepted.address != address => {
            Step::Refuse(Unaccepted::Elsewhere { known: accepted.address.clone() })
        }
        // It has lost everything.
        None => Step::Bind(next),
        Some(found) if found.generation > accepted.generation => accept(found),
        Some(found) if found.generation < accepted.generation => {
            Step::Refuse(Unaccepted::Older { given: found.generation, newest: accepted.generation })
        }
        Some(_) => Step::Refuse(Unaccepted::AnotherName),
    }
}

/// Whether queue and record store belong together.
pub(crate) struct Ownership {
    store: Arc<Store>,
    queue: Arc<QueueClient>,
    health: Arc<Health>,
    /// The identity of the record store, once the queue is known to belong to it.
    known: Mutex<Option<String>>,
}

impl Ownership {
    pub(crate) fn new(store: Arc<Store>, queue: Arc<QueueClient>, health: Arc<Health>) -> Self {
        Self { store, queue, health, known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, Option<String>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that queue and record store belong together. The first coordinator binds them; what an operator adopts is bound
    /// again, whatever was before.
    ///
    /// # Errors
    /// The queue belongs to another store, the store to another queue, or this store has lost its identity: nothing is served
    /// until that is corrected.
    pub(crate) async fn check(&self, adopt: Adopt) -> Result<()> {
        if !self.store.is_shared() {
            return Ok(());
        }
        let checked = self.settle(adopt).await;
        match &checked {
            Ok(here) => {
                *self.known() = Some(here.clone());
                self.health.set_unbound(None);
            }
            Err(error) if error.code == ErrorCode::Conflict => {
                self.health.set_unbound(Some(error.message.clone()));
            }
            // That they do not belong together is not known where one of them cannot be asked.
            Err(_) => {}
        }
        checked.map(|_| ())
    }

    /// The identity of the record store to which the queue belongs.
    async fn settle(&self, adopt: Adopt) -> Result<String> {
        let mut ours = None;
        for _ in 0..STEPS_MAX {
            // In this order: who binds a queue, or knows its store, has given the place its identity before.
            let known = self.known().clone();
            let found = self.health.note_queue(self.queue.raw().owner().await)?;
            let here = self.store.sink.identity().await?;
            // A queue that lost everything belongs where it did.
            let owner =
                if adopt.store { None } else { found.as_ref().map(|bond| bond.store.clone()).or(known) };
            let here = match (here, owner) {
                (Some(here), Some(owner)) if here == owner => here,
                (here, Some(owner)) => return Err(self.of_another_store(here, &owner)),
                (_, None) => self.store.sink.identify().await?,
            };
            let of_here = found.as_ref().filter(|bond| bond.store == here);
            let Some(address) = self.queue.raw().address() else {
                // Nobody else can reach it, and nobody can come back to it: the folder's lock keeps others away.
                if of_here.is_some() {
                    return Ok(here);
                }
                let bond = QueueOwner { store: here, queue: String::new(), generation: 0 };
                self.health.note_queue(self.queue.raw().bind(found.as_ref(), &bond).await)?;
                continue;
            };
            let known = self.store.newest::<Accepted>(QUEUE_DOCUMENT).await?;
            match step(address, known.content.as_ref(), of_here, ours.as_ref(), adopt.queue) {
                Step::Serve => return Ok(here),
                Step::Accept(accepted) => {
                    // Where another coordinator was quicker, what it wrote is read next.
                    self.store.revise(QUEUE_DOCUMENT, known.revision, &accepted).await?;
                }
                Step::Bind(generation) => {
                    let bond = QueueOwner { store: here, queue: results::sink::random_name(), generation };
                    let bound = self.health.note_queue(self.queue.raw().bind(found.as_ref(), &bond).await)?;
                    if bound == bond && generation > 1 {
                        tracing::warn!(address, generation, "the queue is bound to the records anew");
                    }
                    ours = (bound == bond).then_some(bond);
                }
                Step::Refuse(why) => {
                    // Who stood still in between compares what the queue was with what the store is.
                    if self.health.note_queue(self.queue.raw().owner().await)? == found {
                        return Err(self.unaccepted(&why, address));
                    }
                }
            }
        }
        let message = "other coordinators are binding the queue to the records at this moment";
        Err(ServiceError::new(ErrorCode::Unavailable, message))
    }

    fn of_another_store(&self, here: Option<String>, owner: &str) -> ServiceError {
        let here = here.map_or("has no identity, as if it were new".to_owned(), |here| format!("is {here}"));
        conflict(format!(
            "the queue belongs to the records of store {owner}, and {} {here}: mount the volume, or mend --data-dir or \
             --sink; to give the queue to this place on purpose, start once with --adopt-store",
            self.store.sink
        ))
    }

    fn unaccepted(&self, why: &Unaccepted, address: &str) -> ServiceError {
        let sink = &self.store.sink;
        let problem = match why {
            Unaccepted::Elsewhere { known } => {
                format!(
                    "the records in {sink} are served with the queue at {known}, not with that at {address}"
                )
            }
            Unaccepted::Older { given, newest } => format!(
                "the queue at {address} is number {given} of the records in {sink}, which went on with number {newest}: \
                 a server or a state of before has come back"
            ),
            Unaccepted::AnotherName => format!(
                "the queue at {address} is not the one with which the records in {sink} are served, which has this \
                 address, too"
            ),
        };
        conflict(format!(
            "{problem}. With two queues, every answer would be bought twice: give all coordinators the same --queue; to go \
             on with this queue on purpose, end the coordinators of the other, and start once with --adopt-queue"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: &str = "redis:6379/0";

    fn accepted(generation: u64) -> Accepted {
        Accepted { address: HERE.into(), queue: format!("q{generation}"), generation }
    }

    fn owner(queue: &str, generation: u64) -> QueueOwner {
        QueueOwner { store: "s".into(), queue: queue.into(), generation }
    }

    #[test]
    fn a_store_without_a_queue_accepts_the_one_that_it_is_given() {
        assert_eq!(step(HERE, None, None, None, false), Step::Bind(1));
        assert_eq!(
            step(HERE, None, Some(&owner("q7", 7)), None, false),
            Step::Accept(accepted(7)),
            "the store is a copy of before"
        );
    }

    #[test]
    fn the_queue_that_was_accepted_is_served_and_one_that_lost_everything_is_bound_anew() {
        let newer = accepted(4);
        let accepted = accepted(3);
        assert_eq!(step(HERE, Some(&accepted), Some(&owner("q3", 3)), None, false), Step::Serve);
        assert_eq!(step(HERE, Some(&accepted), Some(&owner("q3", 3)), None, true), Step::Serve);
        assert_eq!(step(HERE, Some(&accepted), None, None, false), Step::Bind(4));
        assert_eq!(step(HERE, Some(&accepted), Some(&owner("q4", 4)), None, false), Step::Accept(newer));
    }

    #[test]
    fn another_queue_is_refused_unless_it_is_adopted() {
        let accepted = accepted(3);
        let refused =
            |address, found: Option<&QueueOwner>| step(address, Some(&accepted), found, None, false);
        let there = "redis:6379/1";
        for found in [None, Some(&owner("q3", 3)), Some(&owner("q9", 9))] {
            assert_eq!(refused(there, found), Step::Refuse(Unaccepted::Elsewhere { known: HERE.into() }));
        }
        let older = |given| Step::Refuse(Unaccepted::Older { given, newest: 3 });
        assert_eq!(refused(HERE, Some(&owner("q2", 2))), older(2));
        assert_eq!(refused(HERE, Some(&owner("other", 3))), Step::Refuse(Unaccepted::AnotherName));

        assert_eq!(step(there, Some(&accepted), Some(&owner("q9", 9)), None, true), Step::Bind(10));
        assert_eq!(step(there, Some(&accepted), None, None, true), Step::Bind(4));
        let ours = owner("q4", 4);
        let moved = Accepted { address: there.into(), queue: "q4".into(), generation: 4 };
        assert_eq!(step(there, Some(&accepted), Some(&ours), Some(&ours), true), Step::Accept(moved));
        let newer = Accepted { generation: 4, ..accepted };
        let lost = step(there, Some(&newer), Some(&ours), Some(&ours), true);
        assert_eq!(lost, Step::Bind(5), "another was adopted at the same moment");
    }
}
