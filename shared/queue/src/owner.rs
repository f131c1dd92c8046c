//! Which record store a queue belongs to, and which of that store's queues it is. Coordinators compare this with their
//! record store, so that they never use the queue of another one.

/// The owner of a queue, as stored in the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueOwner {
    /// The identity of its record store.
    pub store: String,
    /// A random name, drawn when the queue got its owner; empty if the owner was written before queues had names.
    pub queue: String,
    /// Number of this queue among the store's queues, from 1; 0 if the owner was written before they were counted.
    pub generation: u64,
}

impl QueueOwner {
    /// The owner as the queue stores it.
    pub(crate) fn text(&self) -> String {
        let Self { store, queue, generation } = self;
        if *generation == 0 { store.clone() } else { format!("{store} {generation} {queue}") }
    }

    /// Reads what [`text`](Self::text) wrote. Any other text is taken as the name of a store.
    pub(crate) fn of(text: &str) -> Self {
        let parts: Vec<&str> = text.split(' ').collect();
        if let [store, generation, queue] = parts[..]
            && let Ok(generation) = generation.parse()
        {
            return Self { store: store.to_owned(), queue: queue.to_owned(), generation };
        }
        Self { store: text.to_owned(), queue: String::new(), generation: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_read_as_it_was_written_and_an_earlier_one_names_its_store_alone() {
        let owner = QueueOwner { store: "records".into(), queue: "waiting".into(), generation: 3 };
        assert_eq!(owner.text(), "records 3 waiting");
        assert_eq!(QueueOwner::of(&owner.text()), owner);
        for before in ["0123456789abcdef", "", "a b c"] {
            let owner = QueueOwner { store: before.into(), queue: String::new(), generation: 0 };
            assert_eq!((QueueOwner::of(before), owner.text()), (owner.clone(), before.to_owned()));
        }
    }
}
