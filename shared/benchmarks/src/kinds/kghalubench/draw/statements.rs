//! RDF statements read by a mapping: shared by dump and endpoint, which add the statements about an entity and the labels of
//! what these mention. Nothing here reads a
//! source, and statements that do not fit the mapping are ignored, not errors. A new part of an entity is read in
//! [`Statements::entity`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rdf::Term;

use crate::kinds::kghalubench::draw::graph::{Entity, Fact, Lifespan, Statistics};
use crate::kinds::kghalubench::draw::mapping::{Mapping, PropertyTypes};

/// Characters that an object may have. A longer one is a text: no overview repeats it, and a question that needs it cannot be
/// answered.
const OBJECT_CHARS_MAX: usize = 300;

/// Characters of a description. A longer one, such as a whole page, is cut behind a sentence: an answer has some 1 200, and judges
/// that compare the two read no more than a few thousand.
const DESCRIPTION_CHARS_MAX: usize = 6_000;

/// The IRIs that the data of an entity mention.
pub(crate) struct Mentioned {
    /// Its type, and the objects of its valid relations: their labels are needed.
    pub(crate) named: BTreeSet<String>,
    /// Those that have the labels of its relations: their labels are needed, and their kinds where a mapping has kinds.
    pub(crate) relations: BTreeSet<String>,
}

/// Statements by subject: property and object, in the order in which they were read.
#[derive(Debug)]
pub(crate) struct Statements {
    mapping: Arc<Mapping>,
    pub(crate) by_subject: BTreeMap<String, Vec<(String, Term)>>,
}

impl Statements {
    pub(crate) fn new(mapping: Arc<Mapping>) -> Self {
        Self { mapping, by_subject: BTreeMap::new() }
    }

    pub(crate) fn add(&mut self, subject: &str, property: &str, object: Term) {
        if let Some(known) = self.by_subject.get_mut(subject) {
            known.push((property.to_owned(), object));
        } else {
            self.by_subject.insert(subject.to_owned(), vec![(property.to_owned(), object)]);
        }
    }

    /// The data of an entity; `None` if it has no label.
    pub(crate) fn entity(&self, id: &str, type_id: &str) -> Option<Entity> {
        let statements = self.by_subject.get(id)?;
        let lifespan = self.lifespan(id, type_id);
        let mut facts = self.facts(statements, type_id);
        if lifespan.is_some() {
            // The years stand in the question: whoever is asked for them can read them there.
            let shown = [&self.mapping.born, &self.mapping.died];
            facts.retain(|fact| !shown.iter().any(|property| property.as_ref() == Some(&fact.relation_id)));
        }
        Some(Entity {
            id: id.to_owned(),
            name: self.text_of(id, &self.mapping.label)?,
            type_id: type_id.to_owned(),
            type_name: self.text_of(type_id, &self.mapping.label).unwrap_or_else(|| type_id.to_owned()),
            lifespan,
            facts,
            description: self.text_of(id, &self.mapping.description).map(|text| shortened(&text).to_owned()),
            statistics: self.statistics(id, statements),
        })
    }

    /// What the data of an entity mention.
    pub(crate) fn mentioned(&self, id: &str, type_id: &str) -> Mentioned {
        let mut mentioned =
            Mentioned { named: BTreeSet::from([type_id.to_owned()]), relations: BTreeSet::new() };
        for (relation, object) in self.by_subject.get(id).into_iter().flatten() {
            let is_valid = self.mapping.is_valid_relation(type_id, relation);
            if is_valid || (self.mapping.property_types.is_some() && !self.mapping.is_structural(relation)) {
                mentioned.relations.insert(self.mapping.labelled_relation(relation));
            }
            if is_valid {
                mentioned.named.extend(iri(object).map(str::to_owned));
            }
        }
        mentioned
    }

    /// Whether a relation is of one of these kinds.
    fn is_of_kind(&self, relation: &str, types: &PropertyTypes, kinds: &[String]) -> bool {
        let stated = self.by_subject.get(&self.mapping.labelled_relation(relation));
        stated.into_iter().flatten().any(|(property, kind)| {
            *property == types.property
                && iri(kind).is_some_and(|kind| kinds.iter().any(|known| known == kind))
        })
    }

    /// Whether questions about entities of a type ask for a relation.
    fn is_asked_for(&self, type_id: &str, relation: &str) -> bool {
        let types = self.mapping.property_types.as_ref();
        self.mapping.is_valid_relation(type_id, relation)
            && types.is_none_or(|types| self.is_of_kind(relation, types, &types.facts))
    }

    fn text_of(&self, subject: &str, property: &str) -> Option<String> {
        let statements = self.by_subject.get(subject)?.iter().filter(|(stated, _)| stated == property);
        text(&self.mapping, statements.map(|(_, object)| object))
    }

    fn number_of(&self, subject: &str, property: &str) -> Option<u64> {
        self.text_of(subject, property)?.parse().ok()
    }

    /// The valid relations that have a label, ordered by label, each with its objects that have a name.
    fn facts(&self, statements: &[(String, Term)], type_id: &str) -> Vec<Fact> {
        let mut objects: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for (relation, object) in statements {
            if self.is_asked_for(type_id, relation)
                && let Some(name) = self.name_of(object)
                && name.chars().nth(OBJECT_CHARS_MAX).is_none()
            {
                objects.entry(relation).or_default().insert(name);
            }
        }
        let named = objects.into_iter().filter_map(|(relation, objects)| {
            let label = self.text_of(&self.mapping.labelled_relation(relation), &self.mapping.label)?;
            let objects = objects.into_iter().collect();
            Some(Fact { relation_id: relation.to_owned(), relation: label, objects })
        });
        named.collect()
    }

    /// The name of an object as an answer would use it.
    fn name_of(&self, object: &Term) -> Option<String> {
        match object {
            Term::NamedNode(node) => self.text_of(node.as_str(), &self.mapping.label),
            Term::Literal(literal) if is_date(literal.datatype().as_str()) => {
                Some(as_precise_as_known(literal.value()))
            }
            Term::Literal(literal) if literal.datatype().as_str().ends_with("#decimal") => {
                // Wikidata writes the sign of every quantity.
                Some(literal.value().trim_start_matches('+').to_owned())
            }
            Term::Literal(literal) => is_own(&self.mapping, literal).then(|| literal.value().to_owned()),
            Term::BlankNode(_) => None,
        }
    }

    /// The statistics that the mapping has; the name of one that the entity lacks.
    fn statistics(&self, id: &str, statements: &[(String, Term)]) -> Result<Statistics, &'static str> {
        let facts = || statements.iter().filter(|(property, _)| !self.mapping.is_structural(property));
        let counted = |name: &str| match name {
            "linked_entities" => {
                facts().filter_map(|(_, object)| iri(object)).collect::<BTreeSet<_>>().len() as u64
            }
            "external_ids" => {
                let types = self.mapping.property_types.as_ref();
                let is_identifier = |relation: &str| {
                    types.is_some_and(|types| self.is_of_kind(relation, types, &types.identifiers))
                };
                facts().filter(|(relation, _)| is_identifier(relation)).count() as u64
            }
            _ => facts().count() as u64,
        };
        let mut counts = [None; Statistics::NAMES.len()];
        for (count, name) in counts.iter_mut().zip(Statistics::NAMES) {
            *count = match self.mapping.statistics.get(name) {
                Some(property) => Some(self.number_of(id, property).ok_or(name)?),
                None => self.mapping.is_counted(name).then(|| counted(name)),
            };
        }
        Ok(Statistics::of_counts(counts))
    }

    fn lifespan(&self, id: &str, type_id: &str) -> Option<Lifespan> {
        if !self.mapping.humans.iter().any(|human| human == type_id) {
            return None;
        }
        let year = |property: &Option<String>| year(&self.text_of(id, property.as_ref()?)?);
        Some(Lifespan { born: year(&self.mapping.born)?, died: year(&self.mapping.died) })
    }
}

/// Whether questions may be about entities of a type that has these labels.
pub(crate) fn is_valid_type<'a>(mapping: &Mapping, id: &str, labels: impl Iterator<Item = &'a Term>) -> bool {
    if mapping.types.is_empty() {
        text(mapping, labels).is_some()
    } else {
        mapping.types.iter().any(|valid| valid == id)
    }
}

/// A literal of these: in the language of the mapping, else without language. A question in two languages would ask for
/// what no answer in one of them says. Of several, the first alphabetically, so that the order of the source does not matter.
fn text<'a>(mapping: &Mapping, objects: impl Iterator<Item = &'a Term>) -> Option<String> {
    let literals = objects.filter_map(|object| match object {
        Term::Literal(literal) => Some(literal),
        _ => None,
    });
    literals
        .filter(|literal| is_own(mapping, literal))
        .min_by_key(|literal| (literal.language() != Some(&mapping.language), literal.value()))
        .map(|literal| literal.value().to_owned())
}

/// The language of texts that are the same in many languages, such as names, in Wikidata.
const MANY_LANGUAGES: &str = "mul";

/// Whether a text is in the language of the mapping or in none.
fn is_own(mapping: &Mapping, literal: &rdf::Literal) -> bool {
    literal.language().is_none_or(|language| language == mapping.language || language == MANY_LANGUAGES)
}

pub(crate) fn iri(term: &Term) -> Option<&str> {
    match term {
        Term::NamedNode(node) => Some(node.as_str()),
        _ => None,
    }
}

/// The datatypes of points in time.
const DATES: [&str; 4] = ["dateTime", "date", "gYearMonth", "gYear"];

fn is_date(datatype: &str) -> bool {
    let name = datatype.strip_prefix("http://www.w3.org/2001/XMLSchema#");
    name.is_some_and(|name| DATES.contains(&name))
}

/// A point in time as people name it, without time of day and zone, and no more precise than it is known: graphs of Wikidata's shape
/// write a year as the first moment of it, and a month likewise. Of a first day that is meant, the month or year is true as well.
fn as_precise_as_known(value: &str) -> String {
    let (date, time) = value.split_once('T').map_or((value, None), |(date, time)| (date, Some(time)));
    let date = without_zone(date);
    if !time.is_some_and(|time| time.starts_with("00:00:00")) {
        return date.to_owned();
    }
    let month = date.strip_suffix("-01").unwrap_or(date);
    if month.len() == date.len() {
        return date.to_owned();
    }
    month.strip_suffix("-01").unwrap_or(month).to_owned()
}

/// A date without its time zone, as in `1965Z` or `1965-03-04+01:00`.
fn without_zone(date: &str) -> &str {
    let date = date.strip_suffix('Z').unwrap_or(date);
    match date.char_indices().rev().nth(5) {
        Some((sign, '+' | '-')) if date[sign..].contains(':') => &date[..sign],
        _ => date,
    }
}

/// A text of at most [`DESCRIPTION_CHARS_MAX`] characters: its first sentences, or words if the first sentence is longer.
fn shortened(text: &str) -> &str {
    let Some((end, _)) = text.char_indices().nth(DESCRIPTION_CHARS_MAX) else { return text };
    let most = &text[..end];
    let last = most.rfind(". ").map(|at| at + 1).or_else(|| most.rfind(' '));
    last.map_or(most, |at| &most[..at])
}

/// The year of an XSD date, which may be before the common era.
fn year(date: &str) -> Option<i32> {
    let date = without_zone(date.split('T').next()?);
    let (sign, digits) = match date.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, date),
    };
    let digits = digits.split('-').next()?;
    digits.parse::<i32>().ok().map(|year| sign * year)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_in_time_is_named_as_precisely_as_it_is_known() {
        for (value, named) in [
            ("1965-03-04T00:00:00Z", "1965-03-04"),
            ("1965-03-01T00:00:00Z", "1965-03"),
            ("1965-01-01T00:00:00Z", "1965"),
            ("1965-01-01T12:30:00Z", "1965-01-01"),
            ("-0044-01-01T00:00:00Z", "-0044"),
            ("1965-03-04+01:00", "1965-03-04"),
            ("1965-03-04-05:00", "1965-03-04"),
            ("1965-03Z", "1965-03"),
            ("1965Z", "1965"),
            ("1965", "1965"),
            ("-0044", "-0044"),
            ("", ""),
        ] {
            assert_eq!(as_precise_as_known(value), named, "{value}");
        }
        for name in ["dateTime", "date", "gYear", "gYearMonth"] {
            assert!(is_date(&format!("http://www.w3.org/2001/XMLSchema#{name}")), "{name}");
        }
        assert!(!is_date("http://www.w3.org/2001/XMLSchema#gDay") && !is_date("https://x.example/date"));
    }

    #[test]
    fn years_are_read_of_every_kind_of_date() {
        for (date, expected) in [("1965Z", 1965), ("-0044-03-15T00:00:00Z", -44), ("1965-03+01:00", 1965)] {
            assert_eq!(year(date), Some(expected), "{date}");
        }
        assert_eq!(year("unknown"), None);
    }

    #[test]
    fn a_long_description_ends_behind_a_sentence() {
        assert_eq!(shortened("Short. "), "Short. ");
        let long = "A sentence of é. ".repeat(1_000);
        let short = shortened(&long);
        assert!(short.ends_with("of é.") && short.chars().count() <= DESCRIPTION_CHARS_MAX);
        assert!(short.chars().count() > DESCRIPTION_CHARS_MAX - 20);
        assert_eq!(shortened(&"word ".repeat(2_000)).len(), DESCRIPTION_CHARS_MAX - 1);
        assert_eq!(shortened(&"x".repeat(10_000)).len(), DESCRIPTION_CHARS_MAX);
    }
}
