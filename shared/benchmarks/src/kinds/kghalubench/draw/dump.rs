//! A knowledge graph from an RDF document, held in memory as a whole. [`Endpoint`](super::Endpoint) is for graphs that are too
//! large for that.

use std::collections::{BTreeMap, BTreeSet};

use domain::seed::SplitMix64;
use rdf::{Graph, NamedOrBlankNode, RdfFormat};
use sha2::{Digest, Sha256};

use crate::kinds::kghalubench::draw::graph::{Candidate, Entity, GraphError, KnowledgeGraph, TypeCount};
use crate::kinds::kghalubench::draw::mapping::Mapping;
use crate::kinds::kghalubench::draw::statements::{Statements, iri};

/// A graph in memory; see [`KnowledgeGraph`].
#[derive(Debug)]
pub struct Dump {
    snapshot: String,
    statements: Statements,
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
        let snapshot = snapshot(bytes, &mapping);
        let mut statements = Statements::new(mapping);
        for triple in graph.iter() {
            // Blank nodes have no name to ask about.
            if let NamedOrBlankNode::NamedNode(subject) = &triple.subject {
                statements.add(subject.as_str(), triple.predicate.as_str(), triple.object.clone());
            }
        }
        let mut dump = Self { snapshot, statements, entities: Vec::new(), types: Vec::new() };
        dump.find_entities()?;
        Ok(dump)
    }

    /// Finds the entities. An entity with several valid types gets the rarest of them, because it is the most specific;
    /// equally rare ones are ordered by IRI.
    fn find_entities(&mut self) -> Result<(), GraphError> {
        let mut with_type: BTreeMap<&str, u64> = BTreeMap::new();
        let mut all_types: Vec<(&str, Vec<&str>)> = Vec::new();
        let mapping = &self.statements.mapping;
        for (subject, statements) in &self.statements.by_subject {
            let types = statements.iter().filter(|(property, _)| *property == mapping.type_property);
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
            let valid = rarest(&mut types.iter().copied().filter(|id| self.statements.is_valid_type(id)));
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
                if mapping.types.is_empty() { "types with a label" } else { "the types of the mapping" };
            return Err(GraphError::Empty(format!(
                "of {} entities with a <{}>, none has one of {wanted}",
                entities.len(),
                mapping.type_property
            )));
        }
        let types =
            counts.into_iter().map(|(id, entities)| TypeCount { id: id.to_owned(), entities }).collect();
        self.types = types;
        self.entities = entities;
        Ok(())
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
        let place = self.entities.binary_search_by(|candidate| candidate.id.as_str().cmp(id));
        let Ok(place) = place else { return Ok(None) };
        Ok(self.statements.entity(id, &self.entities[place].type_id))
    }
}

/// Hash of the document and of the mapping, because another mapping gives other questions.
fn snapshot(bytes: &[u8], mapping: &Mapping) -> String {
    let mut hasher = Sha256::new();
    hasher.update((bytes.len() as u64).to_le_bytes());
    hasher.update(bytes);
    // A mapping that was read from TOML can be written as TOML.
    hasher.update(toml::to_string(mapping).unwrap_or_default());
    domain::text::hex(hasher.finalize())
}
