//! Which properties of an RDF graph hold which part of an entity. Graphs differ in this, so whoever draws questions from one
//! writes a mapping for it as TOML. docs/kghalubench.md explains every key.

use std::collections::BTreeMap;

use domain::spelling;
use rdf::NamedNode;
use serde::{Deserialize, Serialize};

use crate::kinds::kghalubench::draw::graph::{GraphError, Statistics};

/// A mapping, usually read from a TOML file. All names of properties and types are full IRIs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mapping {
    /// Property from an entity to its type.
    #[serde(rename = "type")]
    pub type_property: String,
    /// Property from anything to its label.
    pub label: String,
    /// Preferred language of labels and descriptions, as a BCP 47 tag; texts without a language come next.
    #[serde(default = "english")]
    pub language: String,
    /// Property from an entity to the text about it.
    pub description: String,
    /// Property from a human to the date of birth.
    pub born: Option<String>,
    /// Property from a human to the date of death.
    pub died: Option<String>,
    /// Types whose entities have years of birth and death as context.
    #[serde(default)]
    pub humans: Vec<String>,
    /// Valid types. Empty: every type that has a label.
    #[serde(default)]
    pub types: Vec<String>,
    /// Valid relations of a type. A type that is not listed has all relations except the ignored ones.
    #[serde(default)]
    pub relations: BTreeMap<String, Vec<String>>,
    /// Relations that no question asks for, for example because their objects are not texts or say nothing.
    #[serde(default)]
    pub ignored: Vec<String>,
    /// Where labels of relations are, if not at the relation itself.
    pub relation_labels: Option<RelationLabels>,
    /// For graphs that say of each property what kind of objects it has.
    pub property_types: Option<PropertyTypes>,
    /// For endpoints with too many entities to list them: entities are drawn by number.
    pub numbered: Option<Numbered>,
    /// Property of each statistic, by name. Those that the graph does not have may be left out; some can be
    /// [counted](Mapping::is_counted).
    #[serde(default)]
    pub statistics: BTreeMap<String, String>,
}

/// Where labels of relations are. Wikidata states facts with one IRI of a property (`prop/direct/P19`) and labels
/// another one (`entity/P19`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelationLabels {
    /// Prefix of the IRIs in statements.
    pub stated: String,
    /// Prefix of the IRIs with labels.
    pub labelled: String,
}

/// What kinds of objects make a relation a fact to ask for. The kind is stated of the IRI that has the relation's label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PropertyTypes {
    /// Property from a relation to its kind.
    pub property: String,
    /// Kinds of relations that can be asked for. All others, and relations without a kind, are not.
    pub facts: Vec<String>,
    /// Kinds of relations that identify the entity elsewhere: they are counted as `external_ids`.
    #[serde(default)]
    pub identifiers: Vec<String>,
}

/// Entities whose IRIs end with a number, as Wikidata's do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Numbered {
    /// Prefix of the IRIs.
    pub prefix: String,
    /// The largest number. Numbers without an entity are skipped.
    pub largest: u64,
}

fn english() -> String {
    "en".to_owned()
}

/// The mapping of Wikidata's graph.
const WIKIDATA: &str = include_str!("wikidata.toml");

impl Mapping {
    /// Reads a mapping.
    ///
    /// # Errors
    /// The text is no mapping, or names statistics that do not exist, or properties that are no IRIs.
    pub fn from_toml(text: &str) -> Result<Self, GraphError> {
        let mapping: Self = toml::from_str(text).map_err(|error| GraphError::Mapping(error.to_string()))?;
        mapping.check()?;
        Ok(mapping)
    }

    /// The mapping that comes with the program under a name.
    pub fn named(name: &str) -> Option<&'static str> {
        (name == "wikidata").then_some(WIKIDATA)
    }

    fn check(&self) -> Result<(), GraphError> {
        if let Some(unknown) = self.statistics.keys().find(|name| !Statistics::NAMES.contains(&name.as_str()))
        {
            let offered = spelling::offer(unknown, Statistics::NAMES);
            return Err(GraphError::Mapping(format!("there is no statistic \"{unknown}\"; {offered}")));
        }
        let keys = [
            ("type", Some(&self.type_property)),
            ("label", Some(&self.label)),
            ("description", Some(&self.description)),
            ("born", self.born.as_ref()),
            ("died", self.died.as_ref()),
            ("property_types.property", self.property_types.as_ref().map(|types| &types.property)),
        ];
        let keys = keys.into_iter().filter_map(|(key, iri)| Some((key.to_owned(), iri?)));
        let statistics = self.statistics.iter().map(|(name, iri)| (format!("statistics.{name}"), iri));
        let types = self.types.iter().map(|iri| ("types".to_owned(), iri));
        for (key, iri) in keys.chain(statistics).chain(types) {
            if let Err(error) = NamedNode::new(iri) {
                return Err(GraphError::Mapping(format!(
                    "`{key}` must be a full IRI, and \"{iri}\" is none: {error}"
                )));
            }
        }
        Ok(())
    }

    /// The mapping without the statistics for which this does not hold: those of properties that the graph does not use.
    pub(crate) fn with_statistics(
        mut self,
        mut is_used: impl FnMut(&str) -> Result<bool, GraphError>,
    ) -> Result<Self, GraphError> {
        let mut used = BTreeMap::new();
        for (name, property) in self.statistics {
            if is_used(&property)? {
                used.insert(name, property);
            }
        }
        self.statistics = used;
        Ok(self)
    }

    /// Whether a statistic is counted in the graph itself, if the mapping names no property of it.
    pub(crate) fn is_counted(&self, statistic: &str) -> bool {
        match statistic {
            "linked_entities" | "statements" => true,
            "external_ids" => self.property_types.as_ref().is_some_and(|types| !types.identifiers.is_empty()),
            _ => false,
        }
    }

    /// Whether a property has a role in the mapping, such as label or type, and so states no fact.
    pub(crate) fn is_structural(&self, property: &str) -> bool {
        property == self.type_property
            || property == self.label
            || property == self.description
            || self.statistics.values().any(|named| named == property)
    }

    /// Whether questions about entities of a type may ask for a relation, as far as its name decides it.
    pub(crate) fn is_valid_relation(&self, type_id: &str, relation: &str) -> bool {
        if self.is_structural(relation) || self.ignored.iter().any(|ignored| ignored == relation) {
            return false;
        }
        self.relations.get(type_id).is_none_or(|valid| valid.iter().any(|valid| valid == relation))
    }

    /// The IRI that has the label of a relation.
    pub(crate) fn labelled_relation(&self, relation: &str) -> String {
        let moved = self.relation_labels.as_ref().and_then(|labels| {
            relation.strip_prefix(&labels.stated).map(|rest| format!("{}{rest}", labels.labelled))
        });
        moved.unwrap_or_else(|| relation.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINIMAL: &str = r#"
type = "http://e/type"
label = "http://e/label"
description = "http://e/description"
[statistics]
page_views = "http://e/views"
"#;

    #[test]
    fn what_cannot_be_used_is_named() {
        assert_eq!(Mapping::from_toml(MINIMAL).unwrap().language, "en");
        for (from, to, named) in [
            ("page_views", "page_view", "\"page_view\""),
            ("type =", "typ =", "typ"),
            ("label = \"http://e/label\"\n", "", "label"),
            ("\"http://e/views\"", "\"e:views with spaces\"", "statistics.page_views"),
            ("\"http://e/type\"", "\"type\"", "`type` must be a full IRI"),
        ] {
            let error = Mapping::from_toml(&MINIMAL.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
    }

    #[test]
    fn the_mapping_of_wikidata_can_be_read() {
        let mapping = Mapping::from_toml(Mapping::named("wikidata").unwrap()).unwrap();
        assert!(mapping.types.len() > 50 && mapping.is_counted("external_ids"));
        assert_eq!(
            mapping.labelled_relation("http://www.wikidata.org/prop/direct/P19"),
            "http://www.wikidata.org/entity/P19"
        );
        assert_eq!(Mapping::named("other"), None);
    }
}
