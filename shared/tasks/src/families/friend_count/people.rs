//! The persons and who knows whom.
//!
//! Persons form a circle, and each knows the next `knowsCount` of them, so everybody is known by equally many. A few
//! *special friends* also know the special person. They come in the circle after those whom the special person knows. In a
//! small circle some of them know the special person anyway; then nothing is added.

use crate::exercise::CaseError;

/// Maximum number of triples of a graph. No model takes prompts of that size; the limit is against mistyped numbers.
const TRIPLES_MAX: usize = 1_000_000;

/// Persons by index, from 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct People {
    count: usize,
    knows_count: usize,
    special: usize,
    special_friends: usize,
}

/// The IRI of a person.
pub(super) fn iri(person: usize) -> String {
    format!("http://example.org/people/{}", local_name(person))
}

/// The last part of a person's IRI: the person's number from 1, as 8 hexadecimal digits.
pub(super) fn local_name(person: usize) -> String {
    format!("person-{:08x}", person + 1)
}

impl People {
    /// `count` persons of whom each knows `knows_count`; `special_friends` persons know person `special` too.
    pub(super) fn new(
        count: usize,
        knows_count: usize,
        special: usize,
        special_friends: usize,
    ) -> Result<Self, CaseError> {
        if knows_count
            .checked_add(1)
            .and_then(|own| own.checked_mul(count))
            .is_none_or(|all| all > TRIPLES_MAX)
        {
            return Err(CaseError::Field { field: "n", expected: "graph of at most 1000000 triples" });
        }
        if special >= count {
            return Err(CaseError::Field { field: "specialIndex", expected: "index below `n`" });
        }
        // The first special friend must not know the special person already, or nobody would be special.
        if count < 2 * knows_count + 2 {
            return Err(CaseError::Field { field: "n", expected: "number of at least 2 `knowsCount` + 2" });
        }
        // The circle must not close, or the special person would be among the special friends.
        if special_friends >= count - knows_count {
            return Err(CaseError::Field {
                field: "specialAddKnowsCount",
                expected: "number below `n` - `knowsCount`",
            });
        }
        Ok(Self { count, knows_count, special, special_friends })
    }

    /// Number of persons.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The person known by most others.
    pub(super) fn special(&self) -> usize {
        self.special
    }

    /// Positions in the circle of the special friends. Positions continue beyond the last person: the person is the
    /// position modulo [`People::count`].
    pub(super) fn special_friends(&self) -> impl Iterator<Item = usize> + use<> {
        let first = self.special + self.knows_count + 1;
        first..first + self.special_friends
    }

    /// The persons whom a person knows: first the special person, if added, then the next in the circle.
    pub(super) fn known_by(&self, person: usize) -> Vec<usize> {
        let mut known = Vec::with_capacity(self.knows_count + 1);
        if self.special_friends().any(|friend| friend % self.count == person) {
            known.push(self.special);
        }
        for step in 1..=self.knows_count {
            let next = (person + step) % self.count;
            if !known.contains(&next) {
                known.push(next);
            }
        }
        known
    }

    /// The number of persons who know each person.
    pub(super) fn in_degrees(&self) -> Vec<usize> {
        let mut degrees = vec![0; self.count];
        for known in (0..self.count).flat_map(|person| self.known_by(person)) {
            degrees[known] += 1;
        }
        degrees
    }

    /// Number of triples: each person has a type and friends.
    pub(super) fn triple_count(&self) -> usize {
        (0..self.count).map(|person| 1 + self.known_by(person).len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_circle_of_six_looks_as_published() {
        for (added, friends) in [(1, vec![6]), (2, vec![6, 7])] {
            let people = People::new(6, 2, 3, added).unwrap();
            assert_eq!(people.special_friends().collect::<Vec<_>>(), friends);
            assert_eq!(people.in_degrees(), [2, 2, 2, 3, 2, 2]);
            assert_eq!(people.known_by(0), [3, 1, 2]);
            assert_eq!(people.known_by(1), if added == 1 { [2, 3] } else { [3, 2] });
            assert_eq!(people.known_by(4), [5, 0]);
        }
        assert_eq!(local_name(9), "person-0000000a");
    }

    proptest! {
        #[test]
        fn one_person_is_known_by_more_than_anybody_else(
            count in 1..60_usize, knows in 0..20_usize, special in 0..60_usize, added in 1..40_usize,
        ) {
            let Ok(people) = People::new(count, knows, special, added) else { return Ok(()) };
            let degrees = people.in_degrees();
            let most = degrees.iter().max().copied().unwrap_or(0);
            let best: Vec<usize> = (0..count).filter(|&person| degrees[person] == most).collect();
            prop_assert_eq!(best, [special]);
            prop_assert!((0..count).all(|person| !people.known_by(person).contains(&person)));
        }
    }
}
