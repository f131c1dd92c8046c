//! A knowledge graph from an RDF document, whose statements lie in a sorted file.

use std::collections::BTreeSet;
use std::fs::File;
use std::sync::Arc;

use rdf::sorted::{SortedError, SortedTriples, SortedWriter};
use rdf::{Graph, NamedOrBlankNode, RdfFormat};
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
    store: SortedTriples,
    roster: Roster,
}

impl Dump {
    /// Sorts a small document into a file that nobody sees.
    ///
    /// # Errors
    /// It is no RDF in that format, or has no entity of a valid type, or there is no room for the file.
    pub fn parse(bytes: &[u8], format: RdfFormat, mapping: Mapping) -> Result<Self, GraphError> {
        let graph = Graph::parse_bytes(bytes, format, None)?;
        let folder = tempfile::tempdir().map_err(SortedError::Io)?;
        let path = folder.path().join("triples");
        let mut writer = SortedWriter::new(folder.path());
        for triple in &graph {
            if let NamedOrBlankNode::NamedNode(subject) = &triple.subject {
                let added = writer.add(subject.as_str(), triple.predicate.as_str(), &triple.object);
                added.map_err(SortedError::Io)?;
            }
        }
        let written = File::create(&path).and_then(|mut file| writer.finish(&mut file));
        written.map_err(SortedError::Io)?;
        let mut document = DocumentHash::new(bytes.len() as u64);
        document.update(bytes);
        Self::open(SortedTriples::open(&path)?, document, mapping)
    }

    /// Takes a document whose triples were sorted into a file.
    ///
    /// # Errors
    /// The file cannot be read, or the document has no entity of a valid type.
    pub fn open(
        mut store: SortedTriples,
        document: DocumentHash,
        mapping: Mapping,
    ) -> Result<Self, GraphError> {
        let snapshot = document.with(&mapping);
        let mut builder = RosterBuilder::default();
        let mut used = BTreeSet::new();
        store.visit(&mut |place, subject, property, object| {
            if property == mapping.type_property {
                let named = object.strip_prefix('<').and_then(|iri| iri.strip_suffix('>'));
                if let Some(type_id) = named {
                    builder.add(place, subject, type_id);
                }
            } else if let Some((_, named)) = mapping.statistics.iter().find(|(_, named)| *named == property) {
                used.insert(named.clone());
            }
        })?;
        let mapping = mapping.with_statistics(|property| Ok(used.contains(property)))?;
        let roster = builder.finish(|id| {
            let labels = store.of(id, Some(&[&mapping.label]))?;
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
        Ok(Self { snapshot, mapping: Arc::new(mapping), store, roster })
    }

    /// The type of an entity that counts, of its statements.
    fn type_of(&self, statements: &[(String, rdf::Term)]) -> Option<String> {
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
            let candidate = |(place, type_id): (u64, &str)| {
                Ok(Candidate { id: self.store.subject_at(place)?, type_id: type_id.to_owned() })
            };
            return drawn.map(candidate).collect();
        };
        let mut candidates = Vec::with_capacity(size);
        for id in drawn_numbers(numbered, seed, size) {
            let types = self.store.of(&id, Some(&[&self.mapping.type_property]))?;
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
        let own = self.store.of(id, None)?;
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
            for (property, object) in self.store.of(mentioned, Some(&only))? {
                statements.add(mentioned, &property, object);
            }
        }
        Ok(statements.entity(id, &type_id))
    }
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

    /// In hexadecimal digits.
    pub fn name(&self) -> String {
        domain::text::hex(self.0.clone().finalize())
    }

    /// With the mapping, because another one gives other questions.
    fn with(mut self, mapping: &Mapping) -> String {
        // A mapping that was read from TOML can be written as TOML.
        self.0.update(toml::to_string(mapping).unwrap_or_default());
        domain::text::hex(self.0.finalize())
    }
}
