//! RDF statements read by a mapping: shared by dump and endpoint, which add the statements. Nothing here reads a
//! source, and statements that do not fit the mapping are ignored, not errors. A new part of an entity is read in
//! [`Statements::entity`].

use std::collections::{BTreeMap, BTreeSet};

use rdf::Term;

use crate::kinds::kghalubench::draw::graph::{Entity, Fact, Lifespan, Statistics};
use crate::kinds::kghalubench::draw::mapping::Mapping;

/// Statements by subject: property and object, in the order in which they were read.
#[derive(Debug)]
pub(crate) struct Statements {
    pub(crate) mapping: Mapping,
    pub(crate) by_subject: BTreeMap<String, Vec<(String, Term)>>,
}

impl Statements {
    pub(crate) fn new(mapping: Mapping) -> Self {
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
            description: self.text_of(id, &self.mapping.description),
            statistics: self.statistics(id, statements),
        })
    }

    pub(crate) fn is_valid_type(&self, id: &str) -> bool {
        if self.mapping.types.is_empty() {
            self.text_of(id, &self.mapping.label).is_some()
        } else {
            self.mapping.types.iter().any(|valid| valid == id)
        }
    }

    /// A literal of a subject: in the language of the mapping, else without language. A question in two languages would ask for
    /// what no answer in one of them says. Of several, the first alphabetically, so that the order of the source does not matter.
    fn text_of(&self, subject: &str, property: &str) -> Option<String> {
        let statements = self.by_subject.get(subject)?.iter().filter(|(stated, _)| stated == property);
        let literals = statements.filter_map(|(_, object)| match object {
            Term::Literal(literal) => Some(literal),
            _ => None,
        });
        let own = |literal: &&rdf::Literal| {
            literal.language().is_none_or(|language| language == self.mapping.language)
        };
        literals
            .filter(own)
            .min_by_key(|literal| (literal.language().is_none(), literal.value()))
            .map(|literal| literal.value().to_owned())
    }

    fn number_of(&self, subject: &str, property: &str) -> Option<u64> {
        self.text_of(subject, property)?.parse().ok()
    }

    /// The valid relations that have a label, ordered by label, each with its objects that have a name.
    fn facts(&self, statements: &[(String, Term)], type_id: &str) -> Vec<Fact> {
        let mut objects: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for (relation, object) in statements {
            if self.mapping.is_valid_relation(type_id, relation)
                && let Some(name) = self.name_of(object)
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
            Term::Literal(literal) if literal.datatype().as_str().ends_with("#dateTime") => {
                // Of a point in time, people name the day.
                literal.value().split('T').next().map(str::to_owned)
            }
            Term::Literal(literal) => {
                let foreign = literal.language().is_some_and(|language| language != self.mapping.language);
                (!foreign).then(|| literal.value().to_owned())
            }
            Term::BlankNode(_) => None,
        }
    }

    fn statistics(&self, id: &str, statements: &[(String, Term)]) -> Option<Statistics> {
        let facts = || statements.iter().filter(|(property, _)| !self.mapping.is_structural(property));
        let of = |name: &str| match (self.mapping.statistics.get(name), name) {
            (Some(property), _) => self.number_of(id, property),
            (None, "statements") => Some(facts().count() as u64),
            (None, "linked_entities") => {
                Some(facts().filter_map(|(_, object)| iri(object)).collect::<BTreeSet<_>>().len() as u64)
            }
            (None, _) => None,
        };
        Some(Statistics {
            page_views: of("page_views")?,
            site_links: of("site_links")?,
            linked_entities: of("linked_entities")?,
            external_ids: of("external_ids")?,
            page_tokens: of("page_tokens")?,
            statements: of("statements")?,
            references: of("references")?,
        })
    }

    fn lifespan(&self, id: &str, type_id: &str) -> Option<Lifespan> {
        if !self.mapping.humans.iter().any(|human| human == type_id) {
            return None;
        }
        let year = |property: &Option<String>| year(&self.text_of(id, property.as_ref()?)?);
        Some(Lifespan { born: year(&self.mapping.born)?, died: year(&self.mapping.died) })
    }
}

pub(crate) fn iri(term: &Term) -> Option<&str> {
    match term {
        Term::NamedNode(node) => Some(node.as_str()),
        _ => None,
    }
}

/// The year of an XSD date, which may be before the common era.
fn year(date: &str) -> Option<i32> {
    let (sign, digits) = match date.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, date),
    };
    let digits = digits.split('-').next()?;
    digits.parse::<i32>().ok().map(|year| sign * year)
}
