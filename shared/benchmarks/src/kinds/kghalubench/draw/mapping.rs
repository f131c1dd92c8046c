//! Which properties of an RDF graph hold which part of an entity. Graphs differ in this, so whoever draws questions from one
//! writes a mapping for it as TOML.

use std::collections::BTreeMap;

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
    /// For endpoints with too many entities to sort them: entities are drawn by number.
    pub numbered: Option<Numbered>,
    /// Property of each statistic, by name. `linked_entities` and `statements` are counted in the graph if they are not
    /// listed.
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

/// Statistics that can be counted in the graph itself.
const COUNTED: [&str; 2] = ["linked_entities", "statements"];

impl Mapping {
    /// Reads a mapping.
    ///
    /// # Errors
    /// The text is no mapping, or names statistics that do not exist or leaves some out.
    pub fn from_toml(text: &str) -> Result<Self, GraphError> {
        let mapping: Self = toml::from_str(text).map_err(|error| GraphError::Mapping(error.to_string()))?;
        mapping.check()?;
        Ok(mapping)
    }

    fn check(&self) -> Result<(), GraphError> {
        if let Some(unknown) = self.statistics.keys().find(|name| !Statistics::NAMES.contains(&name.as_str()))
        {
            let known = Statistics::NAMES.join(", ");
            return Err(GraphError::Mapping(format!(
                "there is no statistic \"{unknown}\"; there are {known}"
            )));
        }
        let missing = |name: &&&str| !COUNTED.contains(*name) && !self.statistics.contains_key(**name);
        let missing: Vec<&str> = Statistics::NAMES.iter().filter(missing).copied().collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(GraphError::Mapping(format!(
            "[statistics] does not say where these stand: {}",
            missing.join(", ")
        )))
    }

    /// Whether a property has a role in the mapping, such as label or type, and so states no fact.
    pub(crate) fn is_structural(&self, property: &str) -> bool {
        property == self.type_property
            || property == self.label
            || property == self.description
            || self.statistics.values().any(|named| named == property)
    }

    /// Whether questions about entities of a type may ask for a relation.
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
site_links = "http://e/links"
external_ids = "http://e/ids"
page_tokens = "http://e/tokens"
references = "http://e/references"
"#;

    #[test]
    fn statistics_are_complete_and_known() {
        assert_eq!(Mapping::from_toml(MINIMAL).unwrap().language, "en");
        let error = Mapping::from_toml(&MINIMAL.replace("page_views", "page_view")).unwrap_err().to_string();
        assert!(error.contains("\"page_view\"") && error.contains("page_views"), "{error}");
        let error = Mapping::from_toml(&MINIMAL.replace("references = \"http://e/references\"\n", ""));
        assert!(error.unwrap_err().to_string().contains("references"));
        let error = Mapping::from_toml(&format!("typ = 1\n{MINIMAL}")).unwrap_err().to_string();
        assert!(error.contains("typ"), "{error}");
    }
}
