//! A knowledge graph behind a SPARQL endpoint. This module makes the queries and parses the answers; the caller
//! provides the HTTP client with its cache and retries.

use std::collections::{BTreeMap, BTreeSet};

use domain::seed::SplitMix64;
use rdf::{Literal, NamedNode, Term};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::kinds::kghalubench::draw::graph::{Candidate, Entity, GraphError, KnowledgeGraph, TypeCount};
use crate::kinds::kghalubench::draw::mapping::Mapping;
use crate::kinds::kghalubench::draw::statements::{Statements, iri};

/// Sends a SELECT query; returns the answer in the SPARQL 1.1 Query Results JSON Format.
pub trait Select {
    /// Asks the endpoint.
    ///
    /// # Errors
    /// There is no answer, after all retries.
    fn select(&mut self, query: &str) -> Result<String, GraphError>;
}

/// Maximum number of IRIs in one query, so that endpoints accept its length.
const IRIS_MAX: usize = 200;

/// Numbers drawn for each wanted entity, because some numbers have no entity.
const NUMBERS_PER_ENTITY: usize = 8;

/// An endpoint as a source of entities; see [`KnowledgeGraph`].
pub struct Endpoint<S> {
    client: S,
    mapping: Mapping,
    types: Option<Vec<TypeCount>>,
    /// Entities of the last draw, with their types.
    drawn: Vec<Candidate>,
    /// Statements about the entities of the last draw, once read.
    read: Option<Statements>,
    /// Hash of all answers so far.
    answers: Sha256,
}

impl<S: Select> Endpoint<S> {
    /// No request is sent yet.
    pub fn new(client: S, mapping: Mapping) -> Self {
        Self { client, mapping, types: None, drawn: Vec::new(), read: None, answers: Sha256::new() }
    }

    fn ask(&mut self, query: &str) -> Result<Vec<Row>, GraphError> {
        let text = self.client.select(query)?;
        let answer: Answer = serde_json::from_str(&text).map_err(|error| {
            GraphError::Endpoint(format!("its answer is no SPARQL result in JSON: {error}"))
        })?;
        let mut rows = answer.results.bindings;
        // Endpoints give rows in any order.
        rows.sort();
        self.answers.update(format!("{rows:?}"));
        Ok(rows)
    }

    fn counted_types(&mut self) -> Result<Vec<TypeCount>, GraphError> {
        let property = angled(&self.mapping.type_property)?;
        let valid = match self.mapping.types.as_slice() {
            [] => format!("FILTER EXISTS {{ ?type {} ?label }}", angled(&self.mapping.label)?),
            types => values("type", types)?,
        };
        let rows = self.ask(&format!(
            "SELECT ?type (COUNT(?entity) AS ?entities) WHERE {{ {valid} ?entity {property} ?type }} GROUP BY ?type"
        ))?;
        let count = |row: &Row| {
            let (id, entities) =
                (row.get("type")?.iri()?.to_owned(), row.get("entities")?.value.parse().ok()?);
            Some(TypeCount { id, entities }).filter(|count| count.entities > 0)
        };
        let types: Vec<TypeCount> = rows.iter().filter_map(count).collect();
        if types.is_empty() {
            return Err(GraphError::Empty(
                "the endpoint counts no entities of the mapping's types".to_owned(),
            ));
        }
        Ok(types)
    }

    /// Draws entities by their position in the order of IRIs.
    fn draw_sorted(&mut self, seed: u64, size: usize) -> Result<Vec<Candidate>, GraphError> {
        let types = self.types()?;
        let total: u64 = types.iter().map(|count| count.entities).sum();
        let ids: Vec<String> = types.into_iter().map(|count| count.id).collect();
        let (property, valid) = (angled(&self.mapping.type_property)?, values("type", &ids)?);
        let mut random = SplitMix64::new(seed);
        let mut place = || {
            let place = random.next_u64() % total.max(1);
            let sorted =
                format!("{valid} ?entity {property} ?type }} ORDER BY ?entity ?type LIMIT 1 OFFSET {place}");
            format!("{{ SELECT ?entity ?type WHERE {{ {sorted} }}")
        };
        let places: Vec<String> = (0..size).map(|_| place()).collect();
        let rows = self.ask(&format!("SELECT ?entity ?type WHERE {{ {} }}", places.join(" UNION ")))?;
        Ok(rows.iter().filter_map(Row::candidate).collect())
    }

    /// Draws entities by their number.
    fn draw_numbered(
        &mut self,
        prefix: &str,
        largest: u64,
        seed: u64,
        size: usize,
    ) -> Result<Vec<Candidate>, GraphError> {
        let mut random = SplitMix64::new(seed);
        let mut number = || format!("{prefix}{}", 1 + random.next_u64() % largest.max(1));
        let ids: Vec<String> = (0..size * NUMBERS_PER_ENTITY).map(|_| number()).collect();
        let property = angled(&self.mapping.type_property)?;
        let rows = self.ask(&format!(
            "SELECT ?entity ?type WHERE {{ {} ?entity {property} ?type }}",
            values("entity", &ids)?
        ))?;
        let types = self.types()?;
        let frequency: BTreeMap<&str, u64> =
            types.iter().map(|count| (count.id.as_str(), count.entities)).collect();
        let mut candidates: Vec<Candidate> = rows.iter().filter_map(Row::candidate).collect();
        // Of several types the rarest valid one counts; those that are not valid come last.
        candidates
            .sort_by_key(|candidate| frequency.get(candidate.type_id.as_str()).copied().unwrap_or(u64::MAX));
        let mut seen = BTreeSet::new();
        candidates.retain(|candidate| seen.insert(candidate.id.clone()));
        // In the order of the draw, which is random.
        candidates.sort_by_key(|candidate| ids.iter().position(|id| *id == candidate.id));
        candidates.truncate(size);
        Ok(candidates)
    }

    /// Reads the statements about all entities of the last draw, in as few queries as possible.
    fn read_drawn(&mut self) -> Result<(), GraphError> {
        let mut statements = Statements::new(self.mapping.clone());
        let ids: Vec<String> = self.drawn.iter().map(|candidate| candidate.id.clone()).collect();
        let rows = self.ask(&format!("SELECT ?s ?p ?o WHERE {{ {} ?s ?p ?o }}", values("s", &ids)?))?;
        let mut unnamed: BTreeSet<String> =
            self.drawn.iter().map(|candidate| candidate.type_id.clone()).collect();
        for row in &rows {
            let (Some(subject), Some(property), Some(object)) =
                (row.iri_of("s"), row.iri_of("p"), row.term_of("o"))
            else {
                continue;
            };
            unnamed.insert(self.mapping.labelled_relation(property));
            unnamed.extend(iri(&object).map(str::to_owned));
            statements.add(subject, property, object);
        }
        let label = angled(&self.mapping.label)?;
        let unnamed: Vec<String> = unnamed.into_iter().collect();
        for some in unnamed.chunks(IRIS_MAX) {
            let rows = self.ask(&format!("SELECT ?s ?o WHERE {{ {} ?s {label} ?o }}", values("s", some)?))?;
            for row in &rows {
                if let (Some(subject), Some(object)) = (row.iri_of("s"), row.term_of("o")) {
                    let known = statements.by_subject.get(subject).is_some_and(|known| {
                        known
                            .iter()
                            .any(|(property, term)| *property == self.mapping.label && *term == object)
                    });
                    if !known {
                        statements.add(subject, &self.mapping.label, object);
                    }
                }
            }
        }
        self.read = Some(statements);
        Ok(())
    }
}

impl<S: Select> KnowledgeGraph for Endpoint<S> {
    /// The hash of all answers so far.
    fn snapshot(&self) -> String {
        domain::text::hex(self.answers.clone().finalize())
    }

    fn types(&mut self) -> Result<Vec<TypeCount>, GraphError> {
        if let Some(types) = &self.types {
            return Ok(types.clone());
        }
        let types = self.counted_types()?;
        self.types = Some(types.clone());
        Ok(types)
    }

    fn draw(&mut self, seed: u64, size: usize) -> Result<Vec<Candidate>, GraphError> {
        self.read = None;
        self.drawn = match self.mapping.numbered.clone() {
            Some(numbered) => self.draw_numbered(&numbered.prefix, numbered.largest, seed, size)?,
            None => self.draw_sorted(seed, size)?,
        };
        Ok(self.drawn.clone())
    }

    /// The entity must be one of the last draw.
    fn entity(&mut self, id: &str) -> Result<Option<Entity>, GraphError> {
        let Some(candidate) = self.drawn.iter().find(|candidate| candidate.id == id).cloned() else {
            return Ok(None);
        };
        if self.read.is_none() {
            self.read_drawn()?;
        }
        Ok(self.read.as_ref().and_then(|read| read.entity(id, &candidate.type_id)))
    }
}

/// An IRI in angle brackets, for a query.
fn angled(iri: &str) -> Result<String, GraphError> {
    match NamedNode::new(iri) {
        Ok(node) => Ok(node.to_string()),
        Err(error) => Err(GraphError::Mapping(format!("`{iri}` is no IRI: {error}"))),
    }
}

/// A VALUES clause. Values that an endpoint calls IRIs and that are not are left out.
fn values(variable: &str, iris: &[String]) -> Result<String, GraphError> {
    let terms: Vec<String> = iris.iter().filter_map(|iri| angled(iri).ok()).collect();
    Ok(format!("VALUES ?{variable} {{ {} }}", terms.join(" ")))
}

#[derive(Deserialize)]
struct Answer {
    results: Results,
}

#[derive(Deserialize)]
struct Results {
    bindings: Vec<Row>,
}

/// One row of an answer: values by variable.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(transparent)]
struct Row(BTreeMap<String, Bound>);

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
struct Bound {
    #[serde(rename = "type")]
    kind: String,
    value: String,
    #[serde(rename = "xml:lang")]
    language: Option<String>,
    datatype: Option<String>,
}

impl Bound {
    fn iri(&self) -> Option<&str> {
        (self.kind == "uri").then_some(self.value.as_str())
    }

    /// The value as an RDF term; `None` for a blank node, and for anything else that is not a term.
    fn term(&self) -> Option<Term> {
        match (self.kind.as_str(), &self.language, &self.datatype) {
            ("uri", _, _) => Some(NamedNode::new(&self.value).ok()?.into()),
            ("literal" | "typed-literal", Some(language), _) => {
                Some(Literal::new_language_tagged_literal(&self.value, language).ok()?.into())
            }
            ("literal" | "typed-literal", None, Some(datatype)) => {
                Some(Literal::new_typed_literal(&self.value, NamedNode::new(datatype).ok()?).into())
            }
            ("literal" | "typed-literal", None, None) => {
                Some(Literal::new_simple_literal(&self.value).into())
            }
            _ => None,
        }
    }
}

impl Row {
    fn get(&self, variable: &str) -> Option<&Bound> {
        self.0.get(variable)
    }

    fn iri_of(&self, variable: &str) -> Option<&str> {
        self.get(variable)?.iri()
    }

    fn term_of(&self, variable: &str) -> Option<Term> {
        self.get(variable)?.term()
    }

    fn candidate(&self) -> Option<Candidate> {
        let (id, type_id) = (self.iri_of("entity")?.to_owned(), self.iri_of("type")?.to_owned());
        Some(Candidate { id, type_id })
    }
}
