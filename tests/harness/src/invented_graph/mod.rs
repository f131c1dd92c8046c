//! An invented knowledge graph of Wikidata's shape: entities of 20 types in three groups of frequency, with labels,
//! descriptions, relations and statistics that follow how well known an entity is. It lets the whole benchmark run without a
//! network, and simulated models know the better-known entities better.
//!
//! [`generate`] is a pure function of its seed.

mod kinds;
mod names;

use std::fmt::{Display, Write};

use domain::seed::SplitMix64;
use kinds::{EntityType, KINDS, Object, WorldRelation};
use names::GivenNames;
use rdf::RdfFormat;

use crate::kinds::kghalubench::draw::dump::Dump;
use crate::kinds::kghalubench::draw::graph::GraphError;
use crate::kinds::kghalubench::draw::mapping::Mapping;

/// Number of entities in a world.
pub const ENTITIES: usize = 5_000;

/// An invented graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct World {
    /// The graph, as a Turtle document of some 4 MB.
    pub turtle: String,
}

/// The mapping that describes a world to readers of graphs.
pub const MAPPING: &str = include_str!("mapping.toml");

const ENTITY: &str = "https://world.example/entity/";

/// The world of a seed.
pub fn generate(seed: u64) -> World {
    let mut random = SplitMix64::new(seed);
    let entities = cast(&mut random);
    let mut writer = Writer::new();
    for kind in KINDS {
        writer.kind(kind);
    }
    for (number, entity) in entities.iter().enumerate() {
        writer.entity(number, entity, &entities, &mut random);
    }
    World { turtle: writer.text }
}

impl World {
    /// The world as a source of entities.
    ///
    /// # Errors
    /// None for a world that was generated.
    pub fn open(&self) -> Result<Dump, GraphError> {
        Dump::parse(self.turtle.as_bytes(), RdfFormat::Turtle, Mapping::from_toml(MAPPING)?)
    }
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
fn object(relation: &WorldRelation, all: &[Member], random: &mut SplitMix64) -> (String, String) {
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

/// IRI of an entity's number.
pub fn entity_iri(number: usize) -> String {
    format!("{ENTITY}Q{number}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::kinds::kghalubench::draw::assessment::{Recipe, draw};
    use crate::kinds::kghalubench::draw::frequency::{Frequency, Groups, group};
    use crate::kinds::kghalubench::draw::graph::KnowledgeGraph;

    #[test]
    fn a_seed_gives_one_world() {
        assert_eq!(generate(7), generate(7));
        assert_ne!(generate(7), generate(8));
    }

    #[test]
    fn a_world_has_twenty_types_in_three_groups() {
        let mut dump = generate(1).open().unwrap();
        let types = dump.types().unwrap();
        assert_eq!(types.len(), 20);
        assert_eq!(types.iter().map(|count| count.entities).sum::<u64>(), ENTITIES as u64);
        let mut sizes: BTreeMap<Frequency, usize> = BTreeMap::new();
        for frequency in group(&types, Groups::default()).into_values() {
            *sizes.entry(frequency).or_default() += 1;
        }
        assert_eq!(sizes.len(), 3, "{sizes:?}");
    }

    #[test]
    fn ten_assessments_fill_and_ask_for_all_groups() {
        let mut dump = generate(1).open().unwrap();
        let mut groups: BTreeMap<Frequency, usize> = BTreeMap::new();
        for number in 0..10 {
            let assessment = draw(&mut dump, Recipe::default(), number).unwrap();
            assert_eq!(assessment.questions.len(), 150);
            for question in assessment.questions {
                *groups.entry(question.frequency).or_default() += 1;
                assert!(question.description.contains(&question.name));
            }
        }
        assert!(groups.values().all(|count| *count > 50) && groups.len() == 3, "{groups:?}");
    }

    #[test]
    fn a_human_is_told_by_years_and_a_place_by_its_type() {
        let mut dump = generate(1).open().unwrap();
        let human = dump.entity(&entity_iri(0)).unwrap().unwrap();
        assert!(
            human.lifespan.is_some()
                && crate::kinds::kghalubench::draw::question::context(&human).starts_with("(1")
        );
        let last = dump.entity(&entity_iri(ENTITIES - 1)).unwrap().unwrap();
        assert_eq!(
            crate::kinds::kghalubench::draw::question::context(&last),
            format!("({})", last.type_name)
        );
        assert!(dump.entity("https://world.example/entity/Q999999").unwrap().is_none());
    }
}
