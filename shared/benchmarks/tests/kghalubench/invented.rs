//! The invented graph as the benchmark reads it.

use std::collections::BTreeMap;

use benchmarks::kinds::kghalubench::draw::assessment::{Recipe, draw};
use benchmarks::kinds::kghalubench::draw::frequency::{Frequency, Groups, group};
use benchmarks::kinds::kghalubench::draw::graph::KnowledgeGraph;
use benchmarks::kinds::kghalubench::draw::{Dump, Mapping, question};
use harness::invented_graph::{ENTITIES, MAPPING, entity_iri, turtle};
use rdf::RdfFormat;

/// The graph of a seed.
pub fn invented(seed: u64) -> Dump {
    let mapping = Mapping::from_toml(MAPPING).unwrap();
    Dump::parse(turtle(seed).as_bytes(), RdfFormat::Turtle, mapping).unwrap()
}

#[test]
fn it_has_twenty_types_in_three_groups() {
    let mut dump = invented(1);
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
    let mut dump = invented(1);
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
    let mut dump = invented(1);
    let human = dump.entity(&entity_iri(0)).unwrap().unwrap();
    assert!(human.lifespan.is_some() && question::context(&human).starts_with("(1"));
    let last = dump.entity(&entity_iri(ENTITIES - 1)).unwrap().unwrap();
    assert_eq!(question::context(&last), format!("({})", last.type_name));
    assert!(dump.entity("https://world.example/entity/Q999999").unwrap().is_none());
}
