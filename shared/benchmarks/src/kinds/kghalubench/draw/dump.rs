//! A knowledge graph from an RDF document, which is held in memory.

use std::sync::Arc;

use rdf::{Graph, QueryGraph, RdfFormat, Term};
use sha2::{Digest, Sha256};

use crate::kinds::kghalubench::draw::graph::{Candidate, Entity, GraphError, KnowledgeGraph, TypeCount};
use crate::kinds::kghalubench::draw::mapping::Mapping;
use crate::kinds::kghalubench::draw::roster::{Roster, RosterBuilder, drawn_numbers};
use crate::kinds::kghalubench::draw::statements::{Mentioned, Statements, iri, is_valid_type};

/// A document as a source of entities; see [`KnowledgeGraph`].
#[derive(Debug)]
pub struct Dump {
    snapshot: String,
    mapping: Arc<Mapping>,
    graph: QueryGraph,
    roster: Roster,
}

impl Dump {
    /// Reads a document that fits into memory as a whole.
    ///
    /// # Errors
    /// It is no RDF in that format, or has no entity of a valid type.
    pub fn parse(bytes: &[u8], format: RdfFormat, mapping: Mapping) -> Result<Self, GraphError> {
        let graph = QueryGraph::from_graph(&Graph::parse_bytes(bytes, format, None)?);
        let mut document = DocumentHash::new(bytes.len() as u64);
        document.update(bytes);
        Self::new(graph, document, mapping)
    }

    /// Takes a document that was read. Entities are ordered by IRI, so the order of the document does not matter.
    ///
    /// # Errors
    /// It has no entity of a valid type.
    pub fn new(graph: QueryGraph, document: DocumentHash, mapping: Mapping) -> Result<Self, GraphError> {
        let snapshot = document.with(&mapping);
        let name_of = |number: u32| iri(graph.term(number));
        let with = |property: &str| {
            let number = graph.number_of_iri(property);
            number.into_iter().flat_map(|number| graph.matching(None, Some(number), None))
        };
        let mapping = mapping
            .with_statistics(|property| Ok(with(property).any(|[subject, ..]| name_of(subject).is_some())))?;
        let typed = with(&mapping.type_property)
            .filter_map(|[subject, _, object]| Some((name_of(subject)?, name_of(object)?, subject)));
        let mut typed: Vec<(&str, &str, u32)> = typed.collect();
        typed.sort_unstable();
        let mut builder = RosterBuilder::default();
        for (entity, type_id, number) in typed {
            builder.add(number, entity, type_id);
        }
        let roster = builder.finish(|id| {
            let labels = statements_of(&graph, id, Some(&[&mapping.label]));
            Ok(is_valid_type(&mapping, id, labels.iter().map(|(_, label)| label)))
        })?;
        if roster.is_empty() {
            let wanted =
                if mapping.types.is_empty() { "types with a label" } else { "the types of the mapping" };
            return Err(GraphError::Empty(format!(
                "of {} entities with a <{}>, none has one of {wanted}",
                roster.all(),
                mapping.type_property
            )));
        }
        Ok(Self { snapshot, mapping: Arc::new(mapping), graph, roster })
    }

    /// The type of an entity that counts, of its statements.
    fn type_of(&self, statements: &[(String, Term)]) -> Option<String> {
        let types = statements.iter().filter(|(property, _)| *property == self.mapping.type_property);
        self.roster.valid.rarest(types.filter_map(|(_, object)| iri(object))).map(str::to_owned)
    }
}

impl KnowledgeGraph for Dump {
    fn snapshot(&self) -> String {
        self.snapshot.clone()
    }

    fn types(&mut self) -> Result<Vec<TypeCount>, GraphError> {
        Ok(match self.mapping.numbered {
            // As an endpoint counts them that cannot list its entities.
            Some(_) => self.roster.valid.counts(),
            None => self.roster.types(),
        })
    }

    fn draw(&mut self, seed: u64, size: usize) -> Result<Vec<Candidate>, GraphError> {
        let Some(numbered) = &self.mapping.numbered else {
            let drawn = self.roster.draw(seed, size).into_iter();
            let candidate = |(place, type_id): (u32, &str)| {
                let id = iri(self.graph.term(place)).unwrap_or_default();
                Candidate { id: id.to_owned(), type_id: type_id.to_owned() }
            };
            return Ok(drawn.map(candidate).collect());
        };
        let mut candidates = Vec::with_capacity(size);
        for id in drawn_numbers(numbered, seed, size) {
            let types = statements_of(&self.graph, &id, Some(&[&self.mapping.type_property]));
            if let Some(type_id) = self.type_of(&types) {
                candidates.push(Candidate { id, type_id });
            }
            if candidates.len() == size {
                break;
            }
        }
        Ok(candidates)
    }

    fn entity(&mut self, id: &str) -> Result<Option<Entity>, GraphError> {
        let own = statements_of(&self.graph, id, None);
        let Some(type_id) = self.type_of(&own) else { return Ok(None) };
        let mut statements = Statements::new(Arc::clone(&self.mapping));
        for (property, object) in own {
            statements.add(id, &property, object);
        }
        let Mentioned { named, relations } = statements.mentioned(id, &type_id);
        let kind = self.mapping.property_types.as_ref().map(|types| types.property.as_str());
        for mentioned in named.union(&relations).filter(|mentioned| *mentioned != id) {
            let kind = kind.filter(|_| relations.contains(mentioned));
            let only: Vec<&str> = kind.into_iter().chain([self.mapping.label.as_str()]).collect();
            for (property, object) in statements_of(&self.graph, mentioned, Some(&only)) {
                statements.add(mentioned, &property, object);
            }
        }
        Ok(statements.entity(id, &type_id))
    }
}

/// The statements about a subject, property and object: all, or those with one of these properties. They are sorted, so that equal
/// graphs say the same.
fn statements_of(graph: &QueryGraph, subject: &str, only: Option<&[&str]>) -> Vec<(String, Term)> {
    let Some(subject) = graph.number_of_iri(subject) else { return Vec::new() };
    let rows = graph.matching(Some(subject), None, None);
    let mut statements: Vec<(String, Term)> = rows
        .filter_map(|[_, property, object]| Some((iri(graph.term(property))?, graph.term(object))))
        .filter(|(property, _)| only.is_none_or(|only| only.contains(property)))
        .map(|(property, object)| (property.to_owned(), object.clone()))
        .collect();
    statements.sort_by_cached_key(|(property, object)| (property.clone(), object.to_string()));
    statements
}

/// Identifies a document by its length and its bytes.
#[derive(Clone)]
pub struct DocumentHash(Sha256);

impl DocumentHash {
    /// Of a document of so many bytes, which follow.
    pub fn new(length: u64) -> Self {
        Self(Sha256::new_with_prefix(length.to_le_bytes()))
    }

    /// Takes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// With the mapping, because another one gives other questions.
    fn with(mut self, mapping: &Mapping) -> String {
        // A mapping that was read from TOML can be written as TOML.
        self.0.update(toml::to_string(mapping).unwrap_or_default());
        domain::text::hex(self.0.finalize())
    }
}
