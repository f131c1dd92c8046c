//! The entities of a graph that can be asked about. Every kind of source makes the same roster of the same graph and draws from it
//! here, so that a dump and an endpoint draw the same entities.

use std::collections::{BTreeMap, BTreeSet};

use domain::seed::SplitMix64;

use crate::kinds::kghalubench::draw::graph::{GraphError, TypeCount};
use crate::kinds::kghalubench::draw::mapping::Numbered;

/// Numbers drawn for each wanted entity, because some numbers have no entity of a valid type.
const NUMBERS_PER_ENTITY: usize = 8;

/// The valid types, with how many entities have each. An entity with several types counts for all of them here.
#[derive(Debug, Default)]
pub(crate) struct ValidTypes(BTreeMap<String, u64>);

impl ValidTypes {
    pub(crate) fn new(counts: impl IntoIterator<Item = TypeCount>) -> Self {
        Self(counts.into_iter().map(|count| (count.id, count.entities)).collect())
    }

    /// Of an entity's types the rarest valid one, because it is the most specific; equally rare ones are ordered by IRI.
    pub(crate) fn rarest<'a>(&self, types: impl Iterator<Item = &'a str>) -> Option<&'a str> {
        let known = types.filter_map(|id| Some((*self.0.get(id)?, id)));
        known.min().map(|(_, id)| id)
    }

    pub(crate) fn counts(&self) -> Vec<TypeCount> {
        let count = |(id, entities): (&String, &u64)| TypeCount { id: id.clone(), entities: *entities };
        self.0.iter().map(count).collect()
    }
}

/// Collects entities with their types.
#[derive(Debug, Default)]
pub(crate) struct RosterBuilder {
    numbers: BTreeMap<String, u32>,
    /// Where an entity is for its source, and where its types end in `types`.
    entities: Vec<(u32, usize)>,
    types: Vec<u32>,
    last: String,
}

impl RosterBuilder {
    /// Adds a type of an entity. Entities come in the order of their IRIs, all types of one behind each other.
    pub(crate) fn add(&mut self, place: u32, entity: &str, type_id: &str) {
        let number = match self.numbers.get(type_id) {
            Some(number) => *number,
            None => {
                let next = self.numbers.len() as u32;
                self.numbers.insert(type_id.to_owned(), next);
                next
            }
        };
        if self.entities.is_empty() || self.last != entity {
            self.entities.push((place, self.types.len()));
            entity.clone_into(&mut self.last);
        }
        let Some((_, end)) = self.entities.last_mut() else { return };
        self.types.push(number);
        *end = self.types.len();
    }

    /// The roster of the entities that have a valid type.
    pub(crate) fn finish(
        self,
        mut is_valid: impl FnMut(&str) -> Result<bool, GraphError>,
    ) -> Result<Roster, GraphError> {
        let mut ids: Vec<(String, u32)> = self.numbers.into_iter().collect();
        ids.sort_unstable_by_key(|(_, number)| *number);
        let mut with_type = vec![0_u64; ids.len()];
        let mut begin = 0;
        for (_, end) in &self.entities {
            let own: BTreeSet<u32> = self.types[begin..*end].iter().copied().collect();
            for number in own {
                with_type[number as usize] += 1;
            }
            begin = *end;
        }
        let mut valid = BTreeMap::new();
        let mut keys = Vec::with_capacity(ids.len());
        for ((id, _), entities) in ids.iter().zip(&with_type) {
            let is_valid = is_valid(id)?;
            // Orders types as `ValidTypes::rarest` does, by numbers instead of texts.
            keys.push(is_valid.then_some((*entities, id.as_str())));
            if is_valid {
                valid.insert(id.clone(), *entities);
            }
        }
        let mut counts = vec![0_u64; ids.len()];
        let mut entities = Vec::new();
        let mut begin = 0;
        let all = self.entities.len();
        for (place, end) in self.entities {
            let own = self.types[begin..end].iter();
            begin = end;
            let rarest = own.filter_map(|number| Some((keys[*number as usize]?, *number))).min();
            if let Some((_, number)) = rarest {
                counts[number as usize] += 1;
                entities.push((place, number));
            }
        }
        entities.shrink_to_fit();
        let ids = ids.into_iter().map(|(id, _)| id).collect();
        Ok(Roster { valid: ValidTypes(valid), ids, counts, entities, all })
    }
}

/// The entities of valid types, each with the one that counts.
#[derive(Debug)]
pub(crate) struct Roster {
    pub(crate) valid: ValidTypes,
    ids: Vec<String>,
    counts: Vec<u64>,
    /// Where an entity is for its source, and the number of its type.
    entities: Vec<(u32, u32)>,
    /// Entities of any type.
    all: usize,
}

impl Roster {
    /// The types with the number of entities for which each counts, in the order of their IRIs.
    pub(crate) fn types(&self) -> Vec<TypeCount> {
        let counted = self.ids.iter().zip(&self.counts).filter(|(_, entities)| **entities > 0);
        let mut types: Vec<TypeCount> =
            counted.map(|(id, entities)| TypeCount { id: id.clone(), entities: *entities }).collect();
        types.sort_by(|a, b| a.id.cmp(&b.id));
        types
    }

    /// Entities of any type that was seen.
    pub(crate) fn all(&self) -> usize {
        self.all
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entities.is_empty()
    }

    /// Draws entities: where each is, and its type. The same seed gives the same ones; one may come twice.
    pub(crate) fn draw(&self, seed: u64, size: usize) -> Vec<(u32, &str)> {
        let mut random = SplitMix64::new(seed);
        let mut draw = || {
            let place = random.next_u64() % self.entities.len().max(1) as u64;
            let (place, number) = self.entities.get(place as usize)?;
            Some((*place, self.ids[*number as usize].as_str()))
        };
        (0..size).filter_map(|_| draw()).collect()
    }
}

/// IRIs of drawn numbers, none twice: more than are wanted, because of some there is no entity.
pub(crate) fn drawn_numbers(numbered: &Numbered, seed: u64, size: usize) -> Vec<String> {
    let mut random = SplitMix64::new(seed);
    let mut seen = BTreeSet::new();
    let mut number = || format!("{}{}", numbered.prefix, 1 + random.next_u64() % numbered.largest.max(1));
    let drawn = (0..size * NUMBERS_PER_ENTITY).map(|_| number());
    drawn.filter(|id| seen.insert(id.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roster(valid: &[&str]) -> Roster {
        let mut builder = RosterBuilder::default();
        // Of the two types of b the first is the rarer, c has one twice, d none that is valid.
        for (place, entity, type_id) in [
            (7, "a", "common"),
            (8, "b", "common"),
            (8, "b", "rare"),
            (9, "c", "common"),
            (9, "c", "common"),
            (10, "d", "other"),
        ] {
            builder.add(place, entity, type_id);
        }
        builder.finish(|id| Ok(valid.contains(&id))).unwrap()
    }

    #[test]
    fn an_entity_counts_once_for_its_rarest_valid_type() {
        let roster = roster(&["common", "rare"]);
        let count = |id: &str, entities| TypeCount { id: id.to_owned(), entities };
        assert_eq!(roster.types(), [count("common", 2), count("rare", 1)]);
        assert_eq!(roster.all(), 4);
        let drawn: BTreeSet<_> = roster.draw(1, 100).into_iter().collect();
        assert_eq!(drawn, BTreeSet::from([(7, "common"), (8, "rare"), (9, "common")]));
        assert_eq!(roster.draw(5, 10), roster.draw(5, 10));
        assert_eq!(roster.valid.rarest(["common", "other", "rare"].into_iter()), Some("rare"));
    }

    #[test]
    fn without_a_valid_type_there_is_nothing_to_draw() {
        let roster = roster(&["unknown"]);
        assert!(roster.is_empty() && roster.draw(1, 5).is_empty() && roster.types().is_empty());
    }
}
