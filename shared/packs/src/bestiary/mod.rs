//! The bestiary: a large graph of invented creatures, generated and not stored.
//!
//! [`generate`] is a pure function of its seed. Packs name the seed together with the number of triples and the hash
//! of the document, so a change of this code cannot change exercises unnoticed: raise the pack's version and its
//! reference answers with it.
//!
//! Shape: an ontology (classes, properties with domain, range and label), small vocabularies (alignments, languages,
//! sizes, habitats, regions, damage types, schools), 400 spells, 3 000 creatures, and as many sightings as it takes
//! to reach [`TRIPLES_MIN`].

mod rng;

use std::fmt::{Display, Write};

use rng::Rng;
use serde::Deserialize;

/// The ontology, as schema prompts show it.
pub const SCHEMA: &str = include_str!("schema.ttl");

/// Sightings are added until there are this many triples.
pub const TRIPLES_MIN: usize = 98_000;

/// A generated bestiary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bestiary {
    /// The graph as a Turtle document, schema included.
    pub turtle: String,
    /// Its number of distinct triples.
    pub triples: usize,
}

/// The vocabulary, which `words.toml` holds and explains.
#[derive(Default, Deserialize)]
struct Words {
    kinds: Vec<(String, Vec<String>)>,
    epithets: Vec<String>,
    alignments: Vec<(String, String)>,
    languages: Vec<String>,
    sizes: Vec<String>,
    habitats: Vec<String>,
    regions: Vec<String>,
    damage_types: Vec<String>,
    schools: Vec<String>,
    spell_forms: Vec<String>,
    spell_themes: Vec<String>,
    observers: Vec<String>,
}

/// The bestiary of a seed, about 5 MB in a few tens of milliseconds.
pub fn generate(seed: u64) -> Bestiary {
    let mut writer = Writer::new();
    let mut rng = Rng::new(seed);
    let words: Words = toml::from_str(include_str!("words.toml")).unwrap_or_default();
    vocabularies(&mut writer, &mut rng, &words);
    let spells = spells(&mut writer, &mut rng, &words);
    let creatures = creatures(&mut writer, &mut rng, &words, &spells);
    sightings(&mut writer, &mut rng, &words, &creatures);
    Bestiary { turtle: writer.text, triples: writer.triples }
}

/// Writes one subject after another, every statement of a subject in one Turtle sentence, and counts triples. The
/// generator never states a triple twice, so the count is that of the graph.
struct Writer {
    text: String,
    triples: usize,
}

impl Writer {
    fn new() -> Self {
        let mut text = String::with_capacity(6 << 20);
        text.push_str("@prefix bi: <https://bestiary.example/item/> .\n");
        text.push_str(SCHEMA);
        // Each sentence of the schema has as many triples as it has semicolons, and one more.
        let sentences = SCHEMA.lines().filter(|line| line.starts_with("bv:"));
        let triples = sentences.map(|line| line.matches(" ; ").count() + 1).sum();
        Self { text, triples }
    }

    fn subject(&mut self, local: impl Display, class: &str) {
        let _ = write!(self.text, "\nbi:{local} a bv:{class}");
        self.triples += 1;
    }

    /// `value` in Turtle's notation.
    fn fact(&mut self, property: &str, value: impl Display) {
        let _ = write!(self.text, " ;\n    bv:{property} {value}");
        self.triples += 1;
    }

    fn label(&mut self, label: impl Display) {
        let _ = write!(self.text, " ;\n    rdfs:label \"{label}\"");
        self.triples += 1;
    }

    fn end(&mut self) {
        self.text.push_str(" .\n");
    }
}

/// A reference to an item.
fn item(local: impl Display) -> String {
    format!("bi:{local}")
}

/// The small vocabularies. Local names repeat between them (`Mountain` would be a language and a habitat), so each
/// has a prefix of its own, except for the alignments.
fn vocabularies(writer: &mut Writer, rng: &mut Rng, words: &Words) {
    for (local, label) in &words.alignments {
        writer.subject(local, "Alignment");
        writer.label(label);
        writer.end();
    }
    let plain: [(&str, &str, &[String]); 6] = [
        ("language", "Language", &words.languages),
        ("size", "Size", &words.sizes),
        ("region", "Region", &words.regions),
        ("damage", "DamageType", &words.damage_types),
        ("school", "School", &words.schools),
        ("observer", "Observer", &words.observers),
    ];
    for (prefix, class, names) in plain {
        for name in names {
            writer.subject(format_args!("{prefix}{name}"), class);
            writer.label(name);
            writer.end();
        }
    }
    for name in &words.habitats {
        writer.subject(format_args!("habitat{name}"), "Habitat");
        writer.label(name);
        for region in rng.distinct(3, words.regions.len()) {
            writer.fact("liesIn", item(format_args!("region{}", words.regions[region])));
        }
        writer.end();
    }
}

/// 400 spells; gives their local names.
fn spells(writer: &mut Writer, rng: &mut Rng, words: &Words) -> Vec<String> {
    let mut locals = Vec::with_capacity(words.spell_forms.len() * words.spell_themes.len());
    for form in &words.spell_forms {
        for theme in &words.spell_themes {
            let local = format!("{form}Of{theme}");
            writer.subject(&local, "Spell");
            writer.label(format_args!("{form} of {theme}"));
            writer.fact(
                "inSchool",
                item(format_args!("school{}", words.schools[rng.below(words.schools.len())])),
            );
            writer.fact("spellLevel", 1 + rng.below(9));
            writer.end();
            locals.push(local);
        }
    }
    locals
}

/// 3 000 creatures; gives their local names.
fn creatures(writer: &mut Writer, rng: &mut Rng, words: &Words, spells: &[String]) -> Vec<String> {
    let species = words.kinds.iter().flat_map(|(class, nouns)| {
        nouns.iter().flat_map(move |noun| words.epithets.iter().map(move |epithet| (class, epithet, noun)))
    });
    let locals: Vec<String> = species.clone().map(|(_, epithet, noun)| format!("{epithet}{noun}")).collect();
    for ((class, epithet, noun), local) in species.zip(&locals) {
        let rating = rng.below(31);
        writer.subject(local, class);
        writer.label(format_args!("{epithet} {noun}"));
        writer.fact("hasAlignment", item(&words.alignments[rng.below(words.alignments.len())].0));
        writer.fact("hasSize", item(format_args!("size{}", words.sizes[rng.below(words.sizes.len())])));
        writer.fact("challengeRating", rating);
        writer.fact("hitPoints", 4 + rating * 11 + rng.below(20));
        writer.fact("armourClass", 8 + rng.below(15));
        several(writer, rng, "speaks", "language", (0, 3), &words.languages);
        several(writer, rng, "livesIn", "habitat", (1, 3), &words.habitats);
        several(writer, rng, "immuneTo", "damage", (0, 2), &words.damage_types);
        several(writer, rng, "vulnerableTo", "damage", (0, 1), &words.damage_types);
        several(writer, rng, "castsSpell", "", (0, 5), spells);
        several(writer, rng, "preysOn", "", (0, 2), &locals);
        // Only the mighty keep a lair.
        if rating >= 20 {
            several(writer, rng, "lairsIn", "habitat", (1, 1), &words.habitats);
        }
        writer.end();
    }
    locals
}

/// States `property` for between `least` and `most` distinct items out of `names`.
fn several(
    writer: &mut Writer,
    rng: &mut Rng,
    property: &str,
    prefix: &str,
    (least, most): (usize, usize),
    names: &[impl Display],
) {
    let count = least + rng.below(most - least + 1);
    for drawn in rng.distinct(count, names.len()) {
        writer.fact(property, item(format_args!("{prefix}{}", names[drawn])));
    }
}

/// Fills up with sightings of six triples each.
fn sightings(writer: &mut Writer, rng: &mut Rng, words: &Words, creatures: &[String]) {
    let mut number = 1;
    while writer.triples < TRIPLES_MIN {
        writer.subject(format_args!("sighting{number:05}"), "Sighting");
        writer.fact("observedCreature", item(&creatures[rng.below(creatures.len())]));
        writer.fact(
            "observedIn",
            item(format_args!("region{}", words.regions[rng.below(words.regions.len())])),
        );
        writer.fact(
            "reportedBy",
            item(format_args!("observer{}", words.observers[rng.below(words.observers.len())])),
        );
        let (year, month, day) = (1400 + rng.below(100), 1 + rng.below(12), 1 + rng.below(28));
        writer.fact("observedOn", format_args!("\"{year}-{month:02}-{day:02}\"^^xsd:date"));
        writer.fact("numberSeen", 1 + rng.below(40));
        writer.end();
        number += 1;
    }
}

#[cfg(test)]
mod tests {
    use rdf::{Graph, RdfFormat};

    use super::*;

    #[test]
    fn a_seed_always_gives_the_same_graph_and_its_count_is_right() {
        let first = generate(1);
        assert_eq!(first, generate(1));
        assert_ne!(first.turtle, generate(2).turtle);
        let graph = Graph::parse(&first.turtle, RdfFormat::Turtle, None).unwrap();
        assert_eq!(graph.len(), first.triples, "no triple is stated twice and none is forgotten");
        assert!((TRIPLES_MIN..TRIPLES_MIN + 6).contains(&first.triples));
    }

    #[test]
    fn every_property_used_is_declared_in_the_schema() {
        let graph = Graph::parse(&generate(1).turtle, RdfFormat::Turtle, None).unwrap();
        let vocabulary = "https://bestiary.example/vocabulary#";
        let declared: std::collections::BTreeSet<String> = graph
            .iter()
            .filter(|triple| triple.predicate.as_str().ends_with("#type"))
            .filter(|triple| triple.object.to_string().contains("owl#"))
            .map(|triple| triple.subject.to_string())
            .collect();
        for triple in graph.iter().filter(|triple| triple.predicate.as_str().starts_with(vocabulary)) {
            assert!(declared.contains(&triple.predicate.to_string()), "{}", triple.predicate);
        }
    }
}
