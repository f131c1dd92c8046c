//! What Wikimedia's public interfaces answer about items of Wikidata, as triples that the mapping `wikidata` reads. Formats are those
//! of the documentation: <https://www.wikidata.org/w/api.php?action=help&modules=wbgetentities>,
//! <https://doc.wikimedia.org/Wikibase/master/php/docs_topics_json.html>, <https://www.mediawiki.org/wiki/Extension:TextExtracts>,
//! <https://doc.wikimedia.org/generated-data-platform/aqs/analytics-api/reference/page-views.html>.

use std::collections::{BTreeMap, BTreeSet};

use rdf::{Literal, NamedNode, Term, Triple};
use serde::Deserialize;
use serde_json::Value;

const ENTITY: &str = "http://www.wikidata.org/entity/";
const DIRECT: &str = "http://www.wikidata.org/prop/direct/";
const LABEL: &str = "http://www.w3.org/2000/01/rdf-schema#label";
const DESCRIPTION: &str = "http://schema.org/description";
const PROPERTY_TYPE: &str = "http://wikiba.se/ontology#propertyType";
const STATISTIC: &str = "urn:kgfleet:statistic:";
const DECIMAL: &str = "http://www.w3.org/2001/XMLSchema#decimal";
const INTEGER: &str = "http://www.w3.org/2001/XMLSchema#integer";

/// The kinds of properties: in answers, and in the graph.
const KINDS: [(&str, &str); 9] = [
    ("wikibase-item", "WikibaseItem"),
    ("time", "Time"),
    ("quantity", "Quantity"),
    ("external-id", "ExternalId"),
    ("string", "String"),
    ("url", "Url"),
    ("commonsMedia", "CommonsMedia"),
    ("monolingualtext", "Monolingualtext"),
    ("globe-coordinate", "GlobeCoordinate"),
];

/// An answer that is not what the documentation says.
#[derive(Debug, thiserror::Error)]
#[error("the answer is not as documented: {0}")]
pub struct FetchedError(String);

impl From<serde_json::Error> for FetchedError {
    fn from(error: serde_json::Error) -> Self {
        Self(error.to_string())
    }
}

/// An item with what is stated about it.
#[derive(Debug, Default)]
pub struct FetchedItem {
    /// Such as `Q42`.
    pub id: String,
    /// The title of its page in the wiki that was asked for.
    pub page: Option<String>,
    /// Items and properties whose labels are needed.
    pub mentioned: BTreeSet<String>,
    pub triples: Vec<Triple>,
}

#[derive(Deserialize)]
struct Answer {
    entities: BTreeMap<String, Described>,
}

#[derive(Deserialize)]
struct Described {
    #[serde(default)]
    id: String,
    /// Present, whatever it holds, if there is no such item.
    missing: Option<Value>,
    #[serde(default, deserialize_with = "map_or_empty_list")]
    labels: BTreeMap<String, Text>,
    #[serde(default, deserialize_with = "map_or_empty_list")]
    claims: BTreeMap<String, Vec<Claim>>,
    #[serde(default, deserialize_with = "map_or_empty_list")]
    sitelinks: BTreeMap<String, SiteLink>,
}

/// PHP writes an empty map as an empty list.
fn map_or_empty_list<'de, D, T>(input: D) -> Result<BTreeMap<String, T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: serde::de::DeserializeOwned,
{
    match Value::deserialize(input)? {
        Value::Array(list) if list.is_empty() => Ok(BTreeMap::new()),
        other => serde_json::from_value(other).map_err(serde::de::Error::custom),
    }
}

#[derive(Deserialize)]
struct Text {
    value: String,
}

#[derive(Deserialize)]
struct SiteLink {
    title: String,
}

#[derive(Deserialize)]
struct Claim {
    mainsnak: Snak,
    rank: String,
    #[serde(default)]
    references: Vec<Value>,
}

#[derive(Deserialize)]
struct Snak {
    #[serde(default)]
    datatype: String,
    datavalue: Option<DataValue>,
}

#[derive(Deserialize)]
struct DataValue {
    value: Value,
}

/// The items of an answer of `wbgetentities` with labels, claims and site links; those that do not exist are left out. `wiki` is the
/// site whose page is taken, such as `enwiki`.
///
/// # Errors
/// The answer is not as documented.
pub fn items(answer: &str, language: &str, wiki: &str) -> Result<Vec<FetchedItem>, FetchedError> {
    let answer: Answer = serde_json::from_str(answer)?;
    let described = answer.entities.into_values().filter(|described| described.missing.is_none());
    described.map(|described| item(described, language, wiki)).collect()
}

fn item(described: Described, language: &str, wiki: &str) -> Result<FetchedItem, FetchedError> {
    let mut item = FetchedItem { id: described.id.clone(), ..FetchedItem::default() };
    let subject = entity(&described.id)?;
    item.page = described.sitelinks.get(wiki).map(|link| link.title.clone());
    if let Some(label) = described.labels.get(language) {
        item.triples.push(Triple::new(subject.clone(), iri(LABEL), in_language(&label.value, language)?));
    }
    let (mut statements, mut references, mut identifiers) = (0, 0, 0);
    for (property, claims) in &described.claims {
        let named = entity(property)?;
        item.mentioned.insert(property.clone());
        statements += claims.len();
        references += claims.iter().map(|claim| claim.references.len()).sum::<usize>();
        let kind = claims.first().map_or("", |claim| claim.mainsnak.datatype.as_str());
        if let Some((_, kind)) = KINDS.iter().find(|(known, _)| *known == kind) {
            let kind = iri(&format!("http://wikiba.se/ontology#{kind}"));
            item.triples.push(Triple::new(named, iri(PROPERTY_TYPE), kind));
        }
        identifiers += if kind == "external-id" { claims.len() } else { 0 };
        for claim in truthy(claims) {
            if let Some(object) = object(&claim.mainsnak)? {
                if let Term::NamedNode(node) = &object {
                    item.mentioned.extend(node.as_str().strip_prefix(ENTITY).map(str::to_owned));
                }
                item.triples.push(Triple::new(subject.clone(), iri(&format!("{DIRECT}{property}")), object));
            }
        }
    }
    for (name, count) in [
        ("site_links", described.sitelinks.len()),
        ("external_ids", identifiers),
        ("statements", statements),
        ("references", references),
    ] {
        item.triples.push(statistic(&subject, name, count as u64));
    }
    Ok(item)
}

/// The preferred claims, else the normal ones: what the truthy dumps state.
fn truthy(claims: &[Claim]) -> impl Iterator<Item = &Claim> {
    let rank = if claims.iter().any(|claim| claim.rank == "preferred") { "preferred" } else { "normal" };
    claims.iter().filter(move |claim| claim.rank == rank)
}

/// The object of a statement; `None` if nobody knows it, or it is of a kind that no question asks for.
fn object(snak: &Snak) -> Result<Option<Term>, FetchedError> {
    let Some(DataValue { value }) = &snak.datavalue else { return Ok(None) };
    let text = |key: &str| {
        let text = value.get(key).and_then(Value::as_str);
        text.ok_or_else(|| FetchedError(format!("a value of kind {} has no `{key}`", snak.datatype)))
    };
    Ok(Some(match snak.datatype.as_str() {
        "wikibase-item" => entity(text("id")?)?.into(),
        "time" => {
            let precision = value.get("precision").and_then(Value::as_u64).unwrap_or(0);
            match date(text("time")?, precision) {
                Some(date) => Literal::new_simple_literal(date).into(),
                None => return Ok(None),
            }
        }
        "quantity" => Literal::new_typed_literal(text("amount")?, iri(DECIMAL)).into(),
        "monolingualtext" => in_language(text("text")?, text("language")?)?.into(),
        "string" | "external-id" => match value.as_str() {
            Some(text) => Literal::new_simple_literal(text).into(),
            None => return Err(FetchedError(format!("a value of kind {} is no text", snak.datatype))),
        },
        _ => return Ok(None),
    }))
}

/// A date as far as it is known: `+1952-03-11T00:00:00Z` to the day (precision 11), the month (10) or the year (9). Decades and
/// longer times have no date that an answer would name.
fn date(time: &str, precision: u64) -> Option<String> {
    let (sign, rest) = match time.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", time.strip_prefix('+').unwrap_or(time)),
    };
    let day = rest.split('T').next()?;
    let parts = match precision {
        9 => 1,
        10 => 2,
        11.. => 3,
        _ => return None,
    };
    let known: Vec<&str> = day.split('-').take(parts).collect();
    (known.len() == parts).then(|| format!("{sign}{}", known.join("-")))
}

/// The labels of an answer of `wbgetentities`.
///
/// # Errors
/// The answer is not as documented.
pub fn labels(answer: &str, language: &str) -> Result<Vec<Triple>, FetchedError> {
    let answer: Answer = serde_json::from_str(answer)?;
    let mut triples = Vec::new();
    for (id, described) in answer.entities {
        if let Some(label) = described.labels.get(language) {
            triples.push(Triple::new(entity(&id)?, iri(LABEL), in_language(&label.value, language)?));
        }
    }
    Ok(triples)
}

/// The text about an item and the words of its page, of an answer of `query` with `prop=extracts`; nothing if there is no page.
///
/// # Errors
/// The answer is not as documented.
pub fn page(answer: &str, id: &str, language: &str) -> Result<Vec<Triple>, FetchedError> {
    let answer: Value = serde_json::from_str(answer)?;
    let pages = answer.pointer("/query/pages").and_then(Value::as_array);
    let pages = pages.ok_or_else(|| FetchedError("it has no `query.pages`".to_owned()))?;
    let extract = pages.iter().find_map(|page| page.get("extract")?.as_str());
    let Some(extract) = extract.filter(|extract| !extract.trim().is_empty()) else { return Ok(Vec::new()) };
    // The first heading of the page ends what stands at its top.
    let top =
        extract.split("\n==").next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    let subject = entity(id)?;
    let mut triples = vec![statistic(&subject, "page_tokens", extract.split_whitespace().count() as u64)];
    if !top.is_empty() {
        triples.push(Triple::new(subject, iri(DESCRIPTION), in_language(&top, language)?));
    }
    Ok(triples)
}

/// The views of an item's page, of an answer of `metrics/pageviews/per-article`.
///
/// # Errors
/// The answer is not as documented.
pub fn page_views(answer: &str, id: &str) -> Result<Triple, FetchedError> {
    let answer: Value = serde_json::from_str(answer)?;
    let months = answer.get("items").and_then(Value::as_array);
    let months = months.ok_or_else(|| FetchedError("it has no `items`".to_owned()))?;
    let views = months.iter().filter_map(|month| month.get("views")?.as_u64()).sum();
    Ok(statistic(&entity(id)?, "page_views", views))
}

/// The views of an item's page of which none are counted.
///
/// # Errors
/// The id is none of an item.
pub fn no_page_views(id: &str) -> Result<Triple, FetchedError> {
    Ok(statistic(&entity(id)?, "page_views", 0))
}

fn statistic(subject: &NamedNode, name: &str, count: u64) -> Triple {
    let count = Literal::new_typed_literal(count.to_string(), iri(INTEGER));
    Triple::new(subject.clone(), iri(&format!("{STATISTIC}{name}")), count)
}

/// The IRI of an item or a property.
fn entity(id: &str) -> Result<NamedNode, FetchedError> {
    let is_id = id
        .strip_prefix(['Q', 'P'])
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()));
    if is_id { Ok(iri(&format!("{ENTITY}{id}"))) } else { Err(FetchedError(format!("`{id}` is no item"))) }
}

/// An IRI of this module's own making.
fn iri(iri: &str) -> NamedNode {
    NamedNode::new_unchecked(iri)
}

fn in_language(text: &str, language: &str) -> Result<Literal, FetchedError> {
    Literal::new_language_tagged_literal(text, language)
        .map_err(|error| FetchedError(format!("`{language}` is no language: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_say_what_is_known() {
        for (time, precision, date) in [
            ("+1952-03-11T00:00:00Z", 11, Some("1952-03-11")),
            ("+1952-03-00T00:00:00Z", 10, Some("1952-03")),
            ("+1952-00-00T00:00:00Z", 9, Some("1952")),
            ("-0044-03-15T00:00:00Z", 11, Some("-0044-03-15")),
            ("+1950-00-00T00:00:00Z", 8, None),
        ] {
            assert_eq!(super::date(time, precision).as_deref(), date, "{time}");
        }
    }

    #[test]
    fn what_is_not_as_documented_is_an_error() {
        assert!(items("[]", "en", "enwiki").is_err());
        assert!(items(r#"{"entities": {"Q1": {"id": "<x>"}}}"#, "en", "enwiki").is_err());
        assert!(
            items(r#"{"entities": {"Q1": {"id": "Q1", "missing": ""}}}"#, "en", "enwiki").unwrap().is_empty()
        );
        assert!(page("{}", "Q1", "en").is_err() && page_views("{}", "Q1").is_err());
        assert!(page(r#"{"query": {"pages": [{"missing": true}]}}"#, "Q1", "en").unwrap().is_empty());
    }
}
