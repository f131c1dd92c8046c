//! Groups of entity types by how frequent they are in the graph (paper, 3.1.1).

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::kinds::kghalubench::draw::graph::TypeCount;

/// The bounds of the groups, in percent of all entities. The paper names three groups without their bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Groups {
    /// Percent of all entities up to which the most frequent types are very common.
    pub very_common: u8,
    /// Percent of all entities up to which the next types are common; the rest is uncommon.
    pub common: u8,
}

impl Default for Groups {
    fn default() -> Self {
        Self { very_common: 50, common: 90 }
    }
}

/// How frequent a type is. Questions prefer less common types, so the variants are ordered rarest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Frequency {
    /// Beyond [`Groups::common`].
    Uncommon,
    /// Up to [`Groups::common`].
    Common,
    /// Up to [`Groups::very_common`].
    VeryCommon,
}

/// The group of every type: sorted by falling number of entities, a type belongs to the group in which its first entity
/// falls. Types of equal number are equally frequent, so they belong to one group: that of the first entity of them all.
pub fn group(types: &[TypeCount], groups: Groups) -> BTreeMap<String, Frequency> {
    let mut sorted: Vec<&TypeCount> = types.iter().collect();
    sorted.sort_by_key(|count| Reverse(count.entities));
    let total: u64 = sorted.iter().map(|count| count.entities).sum();
    let mut before = 0_u64;
    let mut grouped = BTreeMap::new();
    for equal in sorted.chunk_by(|a, b| a.entities == b.entities) {
        let share = 100.0 * before as f64 / total.max(1) as f64;
        let frequency = if share < f64::from(groups.very_common) {
            Frequency::VeryCommon
        } else if share < f64::from(groups.common) {
            Frequency::Common
        } else {
            Frequency::Uncommon
        };
        for count in equal {
            grouped.insert(count.id.clone(), frequency);
            before += count.entities;
        }
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_belongs_to_the_group_of_its_first_entity() {
        let counts = [("city", 30), ("human", 40), ("river", 21), ("painting", 9)];
        let counts = counts.map(|(id, entities)| TypeCount { id: id.to_owned(), entities });
        let groups = group(&counts, Groups::default());
        assert_eq!(groups["human"], Frequency::VeryCommon);
        assert_eq!(groups["city"], Frequency::VeryCommon);
        assert_eq!(groups["river"], Frequency::Common);
        assert_eq!(groups["painting"], Frequency::Uncommon);
        let narrow = group(&counts, Groups { very_common: 10, common: 50 });
        assert_eq!((narrow["human"], narrow["city"]), (Frequency::VeryCommon, Frequency::Common));
        assert_eq!(narrow["river"], Frequency::Uncommon);
        assert!(Frequency::Uncommon < Frequency::Common && Frequency::Common < Frequency::VeryCommon);
    }

    #[test]
    fn types_of_equal_number_belong_to_one_group() {
        let counts = ["city", "human", "painting", "river"];
        let counts = counts.map(|id| TypeCount { id: id.to_owned(), entities: 25 });
        let groups = group(&counts, Groups::default());
        assert!(groups.values().all(|group| *group == Frequency::VeryCommon), "{groups:?}");
    }

    #[test]
    fn no_types_give_no_groups() {
        assert!(group(&[], Groups::default()).is_empty());
    }
}
