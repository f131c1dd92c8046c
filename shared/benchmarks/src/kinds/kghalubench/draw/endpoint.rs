//! A knowledge graph behind a SPARQL endpoint. This module makes the queries and parses the answers; the caller
//! provides the HTTP client with its cache and retries.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rdf::{BlankNode, Literal, NamedNode, Term};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::kinds::kghalubench::draw::graph::{Candidate, Entity, GraphError, KnowledgeGraph, TypeCount};
use crate::kinds::kghalubench::draw::mapping::{Mapping, Numbered};
use crate::kinds::kghalubench::draw::roster::{Roster, RosterBuilder, ValidTypes, drawn_numbers};
use crate::kinds::kghalubench::draw::statements::{Statements, iri, is_valid_type};

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

/// Entities that are listed by one query. Their list has some 50 MB as JSON.
const LISTED_ENTITIES_MAX: u64 = 200_000;

/// An endpoint as a source of entities; see [`KnowledgeGraph`].
pub struct Endpoint<S> {
    client: S,
    mapping: Arc<Mapping>,
    /// The valid types with the number of entities that have each, once counted.
    counted: Option<Arc<ValidTypes>>,
    /// All entities, once listed.
    listed: Option<EntityList>,
    /// Entities of the last draw, with their types.
    drawn: Vec<Candidate>,
    /// Statements about the entities of the last draw, once read.
    read: Option<Statements>,
    /// Hash of all answers so far.
    answers: Sha256,
}

/// All entities of valid types, sorted.
struct EntityList {
    ids: Vec<String>,
    roster: Roster,
}

impl<S: Select> Endpoint<S> {
    /// No request is sent yet.
    pub fn new(client: S, mapping: Mapping) -> Self {
        Self {
            client,
            mapping: Arc::new(mapping),
            counted: None,
            listed: None,
            drawn: Vec::new(),
            read: None,
            answers: Sha256::new(),
        }
    }

    /// The rows of an answer, in an order of their own, none twice.
    fn ask(&mut self, query: &str) -> Result<Vec<Row>, GraphError> {
        let text = self.client.select(query)?;
        let answer: Answer = serde_json::from_str(&text).map_err(|error| {
            GraphError::Endpoint(format!("its answer is no SPARQL result in JSON: {error}"))
        })?;
        let mut rows = answer.results.bindings;
        // Endpoints give rows in any order.
        rows.sort();
        rows.dedup();
        for row in &rows {
            self.answers.update(format!("{row:?}"));
        }
        Ok(rows)
    }

    /// The objects of a property of these subjects.
    fn objects_of(&mut self, ids: &[String], property: &str) -> Result<Vec<(String, Term)>, GraphError> {
        let property = angled(property)?;
        let mut found = Vec::new();
        for some in ids.chunks(IRIS_MAX) {
            let rows =
                self.ask(&format!("SELECT ?s ?o WHERE {{ {} ?s {property} ?o }}", values("s", some)?))?;
            found
                .extend(rows.iter().filter_map(|row| Some((row.iri_of("s")?.to_owned(), row.term_of("o")?))));
        }
        Ok(found)
    }

    /// Looks once at which types and which statistics the graph has.
    fn valid_types(&mut self) -> Result<Arc<ValidTypes>, GraphError> {
        if let Some(counted) = &self.counted {
            return Ok(Arc::clone(counted));
        }
        // First, because without an entity nothing else matters.
        let counted = Arc::new(ValidTypes::new(self.counted_types()?));
        let mapping = Mapping::clone(&self.mapping);
        self.mapping = Arc::new(mapping.with_statistics(|property| {
            let query = format!("SELECT ?s WHERE {{ ?s {} ?o }} LIMIT 1", angled(property)?);
            Ok(!self.ask(&query)?.is_empty())
        })?);
        self.counted = Some(Arc::clone(&counted));
        Ok(counted)
    }

    fn counted_types(&mut self) -> Result<Vec<TypeCount>, GraphError> {
        let mapping = Arc::clone(&self.mapping);
        let property = angled(&mapping.type_property)?;
        let valid = match mapping.types.as_slice() {
            [] => String::new(),
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
        let mut types: Vec<TypeCount> = rows.iter().filter_map(count).collect();
        if mapping.types.is_empty() {
            let ids: Vec<String> = types.iter().map(|count| count.id.clone()).collect();
            let mut labels: BTreeMap<String, Vec<Term>> = BTreeMap::new();
            for (id, label) in self.objects_of(&ids, &mapping.label)? {
                labels.entry(id).or_default().push(label);
            }
            types.retain(|count| {
                is_valid_type(&mapping, &count.id, labels.get(&count.id).into_iter().flatten())
            });
        }
        if types.is_empty() {
            return Err(GraphError::Empty(
                "the endpoint counts no entities of the mapping's types".to_owned(),
            ));
        }
        Ok(types)
    }

    /// All entities, listed once.
    fn entities(&mut self) -> Result<&EntityList, GraphError> {
        let list = match self.listed.take() {
            Some(list) => list,
            None => self.list()?,
        };
        Ok(self.listed.insert(list))
    }

    fn list(&mut self) -> Result<EntityList, GraphError> {
        let counts = self.valid_types()?.counts();
        let mut pairs = Vec::new();
        for some in together(counts) {
            let ids: Vec<String> = some.iter().map(|count| count.id.clone()).collect();
            let expected: u64 = some.iter().map(|count| count.entities).sum();
            self.list_some(&values("type", &ids)?, expected, &mut pairs)?;
        }
        pairs.sort();
        let (mut ids, mut builder) = (Vec::<String>::new(), RosterBuilder::default());
        for (entity, type_id) in pairs {
            if ids.last() != Some(&entity) {
                ids.push(entity);
            }
            if let Some(last) = ids.last() {
                builder.add(ids.len() as u32 - 1, last, &type_id);
            }
        }
        // No others were listed.
        let roster = builder.finish(|_| Ok(true))?;
        if roster.is_empty() {
            return Err(GraphError::Empty("the endpoint counts entities and lists none".to_owned()));
        }
        Ok(EntityList { ids, roster })
    }

    /// Lists the entities of some types: by one query, or in parts where they are too many or the endpoint cuts its answers.
    fn list_some(
        &mut self,
        types: &str,
        expected: u64,
        pairs: &mut Vec<(String, String)>,
    ) -> Result<(), GraphError> {
        let property = angled(&self.mapping.type_property)?;
        let pattern = format!("{types} ?entity {property} ?type");
        if expected <= LISTED_ENTITIES_MAX {
            let rows = self.ask(&format!("SELECT ?entity ?type WHERE {{ {pattern} }}"))?;
            if rows.len() as u64 >= expected {
                pairs.extend(rows.iter().filter_map(Row::pair));
                return Ok(());
            }
        }
        let mut seen: BTreeSet<(String, String)> = BTreeSet::new();
        loop {
            // The last entity comes again, because a part may end between two of its types.
            let from = seen.last().map_or("", |(last, _)| last.as_str());
            let filter = format!("FILTER(ISIRI(?entity) && STR(?entity) >= \"{from}\")");
            let rows = self.ask(&format!(
                "SELECT ?entity ?type WHERE {{ {pattern} {filter} }} \
                 ORDER BY STR(?entity) STR(?type) LIMIT {LISTED_ENTITIES_MAX}"
            ))?;
            let before = seen.len();
            seen.extend(rows.iter().filter_map(Row::pair));
            if seen.len() == before {
                pairs.extend(seen);
                return Ok(());
            }
        }
    }

    /// Draws entities by their number.
    fn draw_numbered(
        &mut self,
        numbered: &Numbered,
        seed: u64,
        size: usize,
    ) -> Result<Vec<Candidate>, GraphError> {
        let ids = drawn_numbers(numbered, seed, size);
        let property = self.mapping.type_property.clone();
        let mut types: BTreeMap<String, Vec<Term>> = BTreeMap::new();
        for (id, type_id) in self.objects_of(&ids, &property)? {
            types.entry(id).or_default().push(type_id);
        }
        let valid = self.valid_types()?;
        let candidate = |id: String| {
            let own = types.get(&id)?.iter().filter_map(iri);
            Some(Candidate { type_id: valid.rarest(own)?.to_owned(), id })
        };
        Ok(ids.into_iter().filter_map(candidate).take(size).collect())
    }

    /// Reads the statements about all entities of the last draw, in as few queries as possible.
    fn read_drawn(&mut self) -> Result<(), GraphError> {
        let mut statements = Statements::new(Arc::clone(&self.mapping));
        let ids: BTreeSet<String> = self.drawn.iter().map(|candidate| candidate.id.clone()).collect();
        let asked: Vec<String> = ids.iter().cloned().collect();
        for some in asked.chunks(IRIS_MAX) {
            let rows = self.ask(&format!("SELECT ?s ?p ?o WHERE {{ {} ?s ?p ?o }}", values("s", some)?))?;
            for row in &rows {
                if let (Some(subject), Some(property), Some(object)) =
                    (row.iri_of("s"), row.iri_of("p"), row.term_of("o"))
                {
                    statements.add(subject, property, object);
                }
            }
        }
        let (mut named, mut relations) = (BTreeSet::new(), BTreeSet::new());
        for candidate in &self.drawn {
            let mentioned = statements.mentioned(&candidate.id, &candidate.type_id);
            named.extend(mentioned.named);
            relations.extend(mentioned.relations);
        }
        let mapping = Arc::clone(&self.mapping);
        let kind = mapping.property_types.as_ref().map(|types| (&types.property, relations.clone()));
        named.append(&mut relations);
        // Of the entities themselves everything is known.
        for (property, of) in [(&mapping.label, named)].into_iter().chain(kind) {
            let unknown: Vec<String> = of.difference(&ids).cloned().collect();
            for (subject, object) in self.objects_of(&unknown, property)? {
                statements.add(&subject, property, object);
            }
        }
        self.read = Some(statements);
        Ok(())
    }
}

/// Types in groups that are listed by one query each.
fn together(counts: Vec<TypeCount>) -> Vec<Vec<TypeCount>> {
    let mut groups: Vec<Vec<TypeCount>> = Vec::new();
    let mut entities = 0;
    for count in counts {
        entities += count.entities;
        match groups.last_mut() {
            Some(group) if entities <= LISTED_ENTITIES_MAX && group.len() < IRIS_MAX => group.push(count),
            _ => {
                entities = count.entities;
                groups.push(vec![count]);
            }
        }
    }
    groups
}

impl<S: Select> KnowledgeGraph for Endpoint<S> {
    /// The hash of all answers so far.
    fn snapshot(&self) -> String {
        domain::text::hex(self.answers.clone().finalize())
    }

    fn types(&mut self) -> Result<Vec<TypeCount>, GraphError> {
        match self.mapping.numbered {
            Some(_) => Ok(self.valid_types()?.counts()),
            None => Ok(self.entities()?.roster.types()),
        }
    }

    fn draw(&mut self, seed: u64, size: usize) -> Result<Vec<Candidate>, GraphError> {
        self.read = None;
        self.drawn = match self.mapping.numbered.clone() {
            Some(numbered) => self.draw_numbered(&numbered, seed, size)?,
            None => {
                let list = self.entities()?;
                let candidate = |(place, type_id): (u32, &str)| {
                    let id = list.ids.get(place as usize)?.clone();
                    Some(Candidate { id, type_id: type_id.to_owned() })
                };
                list.roster.draw(seed, size).into_iter().filter_map(candidate).collect()
            }
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

    /// The value as an RDF term; `None` for anything that is not one.
    fn term(&self) -> Option<Term> {
        match (self.kind.as_str(), &self.language, &self.datatype) {
            // What it is called says nothing, and endpoints call blank nodes as they like.
            ("bnode", _, _) => Some(BlankNode::new(&self.value).unwrap_or_default().into()),
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

    /// An entity and its type.
    fn pair(&self) -> Option<(String, String)> {
        Some((self.iri_of("entity")?.to_owned(), self.iri_of("type")?.to_owned()))
    }
}
