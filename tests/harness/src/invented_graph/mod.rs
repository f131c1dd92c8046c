//! An invented knowledge graph of Wikidata's shape: entities of 20 types in three groups of frequency, with labels,
//! descriptions, relations and statistics that follow how well known an entity is, so that simulated models know the
//! better-known entities better. The questions of the bundled pack `halu-demo` are about the graph of seed 1: the example
//! `invented-graph` writes it, and `task-data/README.md` says how the pack is drawn from it and sealed.
//!
//! [`turtle`] is a pure function of its seed.

mod kinds;
mod names;

use std::fmt::{Display, Write};

use domain::seed::SplitMix64;
use kinds::{EntityType, GraphRelation, KINDS, Object};
use names::GivenNames;

/// Number of entities.
pub const ENTITIES: usize = 5_000;

/// Where the graph keeps what, for `kgfleet halu generate --mapping`.
pub const MAPPING: &str = include_str!("mapping.toml");

/// The graph of a seed, as a Turtle document of some 4 MB.
pub fn turtle(seed: u64) -> String {
    let mut random = SplitMix64::new(seed);
    let entities = cast(&mut random);
    let mut writer = Writer::new();
    for kind in KINDS {
        writer.kind(kind);
    }
    for (number, entity) in entities.iter().enumerate() {
        writer.entity(number, entity, &entities, &mut random);
    }
    writer.text
}

/// An entity before its facts are drawn.
struct Member {
    kind: &'static EntityType,
    name: String,
    /// How well known it is; approximately standard normal.
    fame: f64,
}

/// All entities, by kind in the order of [`KINDS`].
fn cast(random: &mut SplitMix64) -> Vec<Member> {
    let mut names = GivenNames::default();
    let mut members = Vec::with_capacity(ENTITIES);
    for kind in KINDS {
        for _ in 0..ENTITIES * kind.per_mille / 1_000 {
            let name = names.next(kind.naming, random);
            members.push(Member { kind, name, fame: normal(random) });
        }
    }
    members
}

/// An approximately standard normal number: the sum of twelve uniform numbers has variance 1.
fn normal(random: &mut SplitMix64) -> f64 {
    (0..12).map(|_| random.unit()).sum::<f64>() - 6.0
}

fn pick<'a, T>(items: &'a [T], random: &mut SplitMix64) -> &'a T {
    &items[(random.next_u64() % items.len() as u64) as usize]
}

/// Writes Turtle.
struct Writer {
    text: String,
}

impl Writer {
    fn new() -> Self {
        let mut text = String::with_capacity(5 << 20);
        text.push_str(
            "@prefix e: <https://world.example/entity/> .\n@prefix p: <https://world.example/property/> .\n",
        );
        text.push_str("@prefix s: <https://world.example/statistic/> .\n");
        text.push_str("@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n@prefix schema: <http://schema.org/> .\n");
        text.push_str("@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .\n");
        Self { text }
    }

    /// Writes a type with its relations. A relation of two types is written twice, which changes nothing.
    fn kind(&mut self, kind: &EntityType) {
        let _ = writeln!(self.text, "e:{} rdfs:label \"{}\"@en .", kind.id, kind.label);
        for relation in kind.relations {
            let _ = writeln!(self.text, "p:{} rdfs:label \"{}\"@en .", relation.id, relation.label);
        }
    }

    fn statement(&mut self, property: &str, object: impl Display) {
        let _ = write!(self.text, " ;\n    {property} {object}");
    }

    fn entity(&mut self, number: usize, entity: &Member, all: &[Member], random: &mut SplitMix64) {
        let kind = entity.kind;
        let _ = write!(self.text, "\ne:Q{number} p:type e:{}", kind.id);
        self.statement("rdfs:label", format_args!("\"{}\"@en", entity.name));
        let mut sentences = format!("{} is a {}.", entity.name, kind.label);
        let mut stated = 0_u32;
        for relation in kind.relations {
            // The better known an entity is, the fewer gaps its facts have.
            if random.unit() < 0.25 - 0.1 * entity.fame {
                continue;
            }
            let (term, name) = object(relation, all, random);
            self.statement(&format!("p:{}", relation.id), &term);
            let _ = write!(sentences, " Its {} is {name}.", relation.label);
            stated += 1;
        }
        if kind.id == "Human" {
            let born = 1500 + random.next_u64() % 500;
            self.statement("p:born", format_args!("\"{born}-01-01\"^^xsd:date"));
            if random.unit() < 0.7 {
                self.statement(
                    "p:died",
                    format_args!("\"{}-01-01\"^^xsd:date", born + 20 + random.next_u64() % 70),
                );
            }
        }
        // As in real graphs, one entity in thirty has no description, and one in thirty has incomplete statistics.
        if !random.next_u64().is_multiple_of(30) {
            let remark = pick(kinds::REMARKS, random);
            self.statement("schema:description", format_args!("\"{sentences} {remark}\"@en"));
        }
        self.statistics(entity.fame, stated, random);
        self.text.push_str(" .\n");
    }

    fn statistics(&mut self, fame: f64, stated: u32, random: &mut SplitMix64) {
        let scales = [
            ("page_views", 9.0, 1.6),
            ("site_links", 3.5, 1.1),
            ("external_ids", 2.0, 0.6),
            ("page_tokens", 6.5, 0.8),
            ("references", 2.5, 0.7),
        ];
        let incomplete = random.next_u64().is_multiple_of(30);
        for (name, middle, slope) in scales {
            let logarithm: f64 = middle + slope * fame + 0.5 * normal(random);
            if !(incomplete && name == "references") {
                self.statement(&format!("s:{name}"), logarithm.clamp(0.0, 20.0).exp() as u64);
            }
        }
        let per_fact = 1.0 + fame.max(-0.5);
        self.statement("s:statements", (f64::from(stated) * per_fact) as u64 + 2);
    }
}

/// An object of a relation: as a term and in words.
fn object(relation: &GraphRelation, all: &[Member], random: &mut SplitMix64) -> (String, String) {
    match relation.object {
        Object::Of(id) => {
            // Entities of a kind are consecutive.
            let first = all.iter().position(|member| member.kind.id == id).unwrap_or(0);
            let count = all[first..].iter().take_while(|member| member.kind.id == id).count() as u64;
            let chosen = first + (random.next_u64() % count.max(1)) as usize;
            (format!("e:Q{chosen}"), all[chosen].name.clone())
        }
        Object::Word(words) => {
            let words: Vec<&str> = words.split(", ").collect();
            let word = *pick(&words, random);
            (format!("\"{word}\"@en"), word.to_owned())
        }
        Object::Number(least, most) => {
            let number = least + random.next_u64() % (most - least + 1);
            (number.to_string(), number.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_one_graph() {
        assert_eq!(turtle(7), turtle(7));
        assert_ne!(turtle(7), turtle(8));
    }
}
