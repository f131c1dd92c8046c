//! A knowledge graph from an RDF document, held in memory.

use std::collections::{BTreeMap, BTreeSet};

use domain::seed::SplitMix64;
use rdf::{Graph, NamedOrBlankNode, RdfFormat, Term};
use sha2::{Digest, Sha256};

use crate::graph::{Candidate, Entity, Fact, GraphError, KnowledgeGraph, Lifespan, Statistics, TypeCount};
use crate::mapping::Mapping;

/// See [`KnowledgeGraph`].
#[derive(Debug)]
pub struct Dump {
    mapping: Mapping,
    snapshot: String,
    /// By subject: property and object, in document order.
    statements: BTreeMap<String, Vec<(String, Term)>>,
    /// The entities with their types, by IRI.
    entities: Vec<Candidate>,
    types: Vec<TypeCount>,
}

impl Dump {
    /// Reads a document.
    ///
    /// # Errors
    /// It is no RDF in that format, or has no entity of a valid type.
    pub fn parse(bytes: &[u8], format: RdfFormat, mapping: Mapping) -> Result<Self, GraphError> {
        let graph = Graph::parse_bytes(bytes, format, None)?;
        let mut statements: BTreeMap<String, Vec<(String, Term)>> = BTreeMap::new();
        for triple in graph.iter() {
            // Blank nodes have no name to ask about.
            if let NamedOrBlankNode::NamedNode(subject) = &triple.subject {
                let of_subject = statements.entry(subject.as_str().to_owned()).or_default();
                of_subject.push((triple.predicate.as_str().to_owned(), triple.object.clone()));
            }
        }
        let mut dump = Self {
            snapshot: snapshot(bytes, &mapping),
            mapping,
            statements,
            entities: Vec::new(),
            types: Vec::new(),
        };
        dump.find_entities()?;
        Ok(dump)
    }

    /// An entity with several valid types has the rarest of them: it says most. Equally rare ones are ordered by IRI.
    fn find_entities(&mut self) -> Result<(), GraphError> {
        let mut with_type: BTreeMap<&str, u64> = BTreeMap::new();
        let mut all_types: Vec<(&str, Vec<&str>)> = Vec::new();
        for (subject, statements) in &self.statements {
            let types = statements.iter().filter(|(property, _)| *property == self.mapping.type_property);
            let types: BTreeSet<&str> = types.filter_map(|(_, object)| iri(object)).collect();
            for id in &types {
                *with_type.entry(id).or_default() += 1;
            }
            if !types.is_empty() {
                all_types.push((subject, types.into_iter().collect()));
            }
        }
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        let mut entities = Vec::with_capacity(all_types.len());
        for (subject, types) in all_types {
            let rarest = |types: &mut dyn Iterator<Item = &str>| {
                types.min_by_key(|id| with_type.get(id).copied().unwrap_or(0)).map(str::to_owned)
            };
            let valid = rarest(&mut types.iter().copied().filter(|id| self.is_valid_type(id)));
            let Some(type_id) = valid.clone().or_else(|| rarest(&mut types.iter().copied())) else {
                continue;
            };
            if valid.is_some()
                && let Some((id, _)) = with_type.get_key_value(type_id.as_str())
            {
                *counts.entry(id).or_default() += 1;
            }
            entities.push(Candidate { id: subject.to_owned(), type_id });
        }
        if counts.is_empty() {
            let wanted =
                if self.mapping.types.is_empty() { "types with a label" } else { "the types of the mapping" };
            return Err(GraphError::Empty(format!(
                "of {} entities with a <{}>, none has one of {wanted}",
                entities.len(),
                self.mapping.type_property
            )));
        }
        let types =
            counts.into_iter().map(|(id, entities)| TypeCount { id: id.to_owned(), entities }).collect();
        self.types = types;
        self.entities = entities;
        Ok(())
    }

    fn is_valid_type(&self, id: &str) -> bool {
        if self.mapping.types.is_empty() {
            self.text_of(id, &self.mapping.label).is_some()
        } else {
            self.mapping.types.iter().any(|valid| valid == id)
        }
    }

    /// A literal of a subject: in the preferred language, else without one, else any; the first of equals.
    fn text_of(&self, subject: &str, property: &str) -> Option<String> {
        let statements = self.statements.get(subject)?.iter().filter(|(stated, _)| stated == property);
        let literals = statements.filter_map(|(_, object)| match object {
            Term::Literal(literal) => Some(literal),
            _ => None,
        });
        let preference = |literal: &&rdf::Literal| match literal.language() {
            Some(language) if language == self.mapping.language => 0,
            None => 1,
            Some(_) => 2,
        };
        literals.min_by_key(preference).map(|literal| literal.value().to_owned())
    }

    fn number_of(&self, subject: &str, property: &str) -> Option<u64> {
        self.text_of(subject, property)?.parse().ok()
    }

    /// Each valid relation with a label, by label, with the objects that can be named.
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

    /// What an answer would call an object.
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

impl KnowledgeGraph for Dump {
    fn snapshot(&self) -> String {
        self.snapshot.clone()
    }

    fn types(&mut self) -> Result<Vec<TypeCount>, GraphError> {
        Ok(self.types.clone())
    }

    fn draw(&mut self, seed: u64, size: usize) -> Result<Vec<Candidate>, GraphError> {
        let mut random = SplitMix64::new(seed);
        let entities = self.entities.len() as u64;
        Ok((0..size).map(|_| self.entities[(random.next_u64() % entities) as usize].clone()).collect())
    }

    fn entity(&mut self, id: &str) -> Result<Option<Entity>, GraphError> {
        let Some(statements) = self.statements.get(id) else { return Ok(None) };
        let place = self.entities.binary_search_by(|candidate| candidate.id.as_str().cmp(id));
        let Ok(place) = place else { return Ok(None) };
        let type_id = self.entities[place].type_id.clone();
        let Some(name) = self.text_of(id, &self.mapping.label) else { return Ok(None) };
        Ok(Some(Entity {
            id: id.to_owned(),
            name,
            type_name: self.text_of(&type_id, &self.mapping.label).unwrap_or_else(|| type_id.clone()),
            lifespan: self.lifespan(id, &type_id),
            facts: self.facts(statements, &type_id),
            description: self.text_of(id, &self.mapping.description),
            statistics: self.statistics(id, statements),
            type_id,
        }))
    }
}

fn iri(term: &Term) -> Option<&str> {
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

/// The document and what it was read by: another mapping makes other questions of it.
fn snapshot(bytes: &[u8], mapping: &Mapping) -> String {
    let mut hasher = Sha256::new();
    hasher.update((bytes.len() as u64).to_le_bytes());
    hasher.update(bytes);
    // A mapping that was read from TOML can be written as TOML.
    hasher.update(toml::to_string(mapping).unwrap_or_default());
    domain::text::hex(hasher.finalize())
}
