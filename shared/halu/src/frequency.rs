//! Groups of entity types by how frequent they are in the graph (paper, 3.1.1).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::graph::TypeCount;

/// Types that make up the first half of all entities are very common. The paper names three groups without their bounds;
/// this share and the next are choices of this implementation.
pub const VERY_COMMON_SHARE: f64 = 0.5;

/// Types that make up the entities from there to nine tenths are common.
pub const COMMON_SHARE: f64 = 0.9;

/// How frequent a type is. Questions prefer less common types, so the order matters: rarest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Frequency {
    /// Beyond nine tenths of the entities.
    Uncommon,
    /// Up to nine tenths of the entities.
    Common,
    /// The first half of the entities.
    VeryCommon,
}

/// The group of every type: sorted by falling number of entities, a type belongs to the group in which its first entity
/// falls. Equal numbers are ordered by IRI.
pub fn group(types: &[TypeCount]) -> BTreeMap<String, Frequency> {
    let mut sorted: Vec<&TypeCount> = types.iter().collect();
    sorted.sort_by(|a, b| b.entities.cmp(&a.entities).then_with(|| a.id.cmp(&b.id)));
    let total: u64 = sorted.iter().map(|count| count.entities).sum();
    let mut before = 0_u64;
    let mut groups = BTreeMap::new();
    for count in sorted {
        let share = before as f64 / total.max(1) as f64;
        let frequency = if share < VERY_COMMON_SHARE {
            Frequency::VeryCommon
        } else if share < COMMON_SHARE {
            Frequency::Common
        } else {
            Frequency::Uncommon
        };
        groups.insert(count.id.clone(), frequency);
        before += count.entities;
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_belongs_to_the_group_of_its_first_entity() {
        let counts = [("city", 30), ("human", 40), ("river", 21), ("painting", 9)];
        let counts = counts.map(|(id, entities)| TypeCount { id: id.to_owned(), entities });
        let groups = group(&counts);
        assert_eq!(groups["human"], Frequency::VeryCommon);
        assert_eq!(groups["city"], Frequency::VeryCommon);
        assert_eq!(groups["river"], Frequency::Common);
        assert_eq!(groups["painting"], Frequency::Uncommon);
        assert!(Frequency::Uncommon < Frequency::Common && Frequency::Common < Frequency::VeryCommon);
    }

    #[test]
    fn no_types_give_no_groups() {
        assert!(group(&[]).is_empty());
    }
}
