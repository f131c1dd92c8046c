//! Which record store a queue belongs to, and which of that store's queues it is.

/// What a queue says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueOwner {
    /// The identity of its record store.
    pub store: String,
    /// A random name, given to the queue with this bond; empty in bonds of before queues had names.
    pub queue: String,
    /// Counts the queues of the store, from 1; 0 in bonds of before they were counted.
    pub generation: u64,
}

impl QueueOwner {
    /// Its text in the queue.
    pub(crate) fn text(&self) -> String {
        let Self { store, queue, generation } = self;
        if *generation == 0 { store.clone() } else { format!("{store} {generation} {queue}") }
    }

    /// The bond of a text. A text of another form is the name of a store.
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
    fn a_bond_is_read_as_it_was_written_and_one_of_before_names_its_store_alone() {
        let bond = QueueOwner { store: "records".into(), queue: "waiting".into(), generation: 3 };
        assert_eq!(bond.text(), "records 3 waiting");
        assert_eq!(QueueOwner::of(&bond.text()), bond);
        for before in ["0123456789abcdef", "", "a b c"] {
            let bond = QueueOwner { store: before.into(), queue: String::new(), generation: 0 };
            assert_eq!((QueueOwner::of(before), bond.text()), (bond.clone(), before.to_owned()));
        }
    }
}
