//! Which record store a queue belongs to, and which of that store's queues it is. Coordinators compare this with their
//! record store, so that they never use the queue of another one.

/// The owner of a queue, as stored in the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueOwner {
    /// The identity of its record store.
    pub store: String,
    /// A random name, drawn when the queue got its owner.
    pub queue: String,
    /// Number of this queue among the store's queues, from 1; 0 of a queue that one process keeps for itself.
    pub generation: u64,
}

impl QueueOwner {
    /// The owner as the queue stores it.
    pub(crate) fn text(&self) -> String {
        let Self { store, queue, generation } = self;
        format!("{store} {generation} {queue}")
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
    fn an_owner_is_read_as_it_was_written_and_any_other_text_is_a_store() {
        let owner = QueueOwner { store: "records".into(), queue: "waiting".into(), generation: 3 };
        assert_eq!(owner.text(), "records 3 waiting");
        assert_eq!(QueueOwner::of(&owner.text()), owner);
        for other in ["0123456789abcdef", "", "a b c"] {
            let owner = QueueOwner { store: other.into(), queue: String::new(), generation: 0 };
            assert_eq!(QueueOwner::of(other), owner);
        }
    }
}
