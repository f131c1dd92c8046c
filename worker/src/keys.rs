//! Which keys a worker looked for, and which it found: names only. Coordinators tell people by them who can ask what.

use std::collections::BTreeMap;

use domain::Connector;
use models::Secret;

/// Keys that are remembered: more than configurations name.
const KEYS_KEPT_MAX: usize = 64;

/// Names of keys, and whether they were there when they were last looked for.
#[derive(Debug, Default)]
pub(crate) struct Keys(BTreeMap<String, bool>);

impl Keys {
    /// Looks for the usual keys of these connectors.
    pub(crate) fn of_connectors(connectors: &[Connector]) -> Self {
        let mut keys = Self::default();
        for name in connectors.iter().filter_map(|connector| connector.usual_key()) {
            keys.looked(name.to_owned(), Secret::from_env(name).is_ok());
        }
        keys
    }

    /// A key was looked for.
    pub(crate) fn looked(&mut self, name: String, found: bool) {
        if self.0.len() < KEYS_KEPT_MAX || self.0.contains_key(&name) {
            self.0.insert(name, found);
        }
    }

    /// Names of those that were there.
    pub(crate) fn found(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(_, found)| **found).map(|(name, _)| name.as_str())
    }

    /// Names of those that were not.
    pub(crate) fn missing(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(_, found)| !**found).map(|(name, _)| name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_look_counts_and_the_number_is_bounded() {
        let mut keys = Keys::default();
        keys.looked("A".to_owned(), false);
        keys.looked("B".to_owned(), true);
        keys.looked("A".to_owned(), true);
        assert_eq!(keys.found().collect::<Vec<_>>(), ["A", "B"]);
        for number in 0..2 * KEYS_KEPT_MAX {
            keys.looked(number.to_string(), false);
        }
        assert_eq!(keys.missing().count() + 2, KEYS_KEPT_MAX);
    }
}
