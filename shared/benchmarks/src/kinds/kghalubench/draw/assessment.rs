//! Draws the questions of an assessment from a knowledge graph (paper, 3.1). The same state of the graph, recipe and number give
//! the same questions. Entities that cannot be asked about are skipped and counted, so that somebody whose graph is too small
//! learns what it lacks.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use domain::seed::SplitMix64;
use serde::{Deserialize, Serialize};

use crate::kinds::kghalubench::draw::Date;
use crate::kinds::kghalubench::draw::frequency::{self, Frequency, Groups};
use crate::kinds::kghalubench::draw::graph::{
    Candidate, Entity, Fact, GraphError, KnowledgeGraph, Statistics,
};
use crate::kinds::kghalubench::draw::question::{self, FACTS, Question};

/// How assessments are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipe {
    /// Questions of an assessment.
    pub questions: u32,
    /// Seed of every draw.
    pub seed: u64,
    /// Entities of a draw. The paper gives no number. A larger draw contains a rare type more often, and rare types are
    /// preferred.
    pub batch: u32,
    /// Draws for one question, after which the graph counts as too small.
    pub draws_max: u32,
    /// Whether no entity is asked about by two assessments.
    #[serde(default, skip_serializing_if = "is_false")]
    pub distinct: bool,
    /// The bounds by which types are common or rare.
    #[serde(default, skip_serializing_if = "is_default")]
    pub groups: Groups,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn is_false(value: &bool) -> bool {
    !value
}

fn is_default(groups: &Groups) -> bool {
    *groups == Groups::default()
}

impl Default for Recipe {
    fn default() -> Self {
        Self { questions: 150, seed: 1, batch: 5, draws_max: 200, distinct: false, groups: Groups::default() }
    }
}

/// A set of questions that every model is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assessment {
    /// Its number among those of its seed, from 0.
    pub number: u32,
    /// The parameters that it was drawn with.
    pub recipe: Recipe,
    /// State of the graph that it was drawn from.
    pub snapshot: String,
    /// Date of that state, if known.
    pub as_of: Option<Date>,
    /// The questions, in the order in which they were drawn.
    pub questions: Vec<Question>,
}

/// How many entities were skipped, by reason; each entity counts once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassedOver {
    /// This assessment asks about them already, or another one that must not share entities with it.
    pub repeated: u64,
    /// The source has no label of them, or no data about them any more.
    pub gone: u64,
    /// Fewer than three valid relations.
    pub few_facts: u64,
    pub no_description: u64,
    /// Each statistic that they lack and others have, in the order of [`Statistics::NAMES`].
    pub no_statistic: [u64; Statistics::NAMES.len()],
}

/// The entities that were skipped so far.
#[derive(Default)]
struct Passing {
    over: PassedOver,
    seen: BTreeSet<String>,
}

impl Passing {
    /// Counts an entity, unless it was counted before.
    fn note(&mut self, entity: &str, reason: impl FnOnce(&mut PassedOver) -> &mut u64) {
        if self.seen.insert(entity.to_owned()) {
            *reason(&mut self.over) += 1;
        }
    }
}

impl fmt::Display for PassedOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reasons = [
            (self.few_facts, "with fewer than three valid relations"),
            (self.no_description, "without a description"),
            (self.repeated, "asked about before"),
            (self.gone, "without a label"),
        ];
        let reasons = reasons.map(|(count, reason)| (count, reason.to_owned())).into_iter();
        let statistics = self.no_statistic.iter().zip(Statistics::NAMES);
        let statistics =
            statistics.map(|(count, name)| (*count, format!("without a number for the statistic {name}")));
        let all = reasons.chain(statistics).filter(|(count, _)| *count > 0);
        let all: Vec<String> = all.map(|(count, reason)| format!("{count} {reason}")).collect();
        f.write_str(if all.is_empty() { "no entity was drawn" } else { "" })?;
        f.write_str(&all.join(", "))
    }
}

/// Why there is no assessment.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unfillable {
    /// The source cannot be read.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The graph has too few usable entities.
    #[error(
        "the knowledge graph gives {filled} of {wanted} questions: {draws} draws in a row found no further entity \
         (passed over: {passed_over}). Ask for fewer questions, or add what is missing to the graph or its mapping: \
         docs/kghalubench.md says what each key of a mapping is for"
    )]
    TooPoor {
        /// Questions that were found.
        filled: usize,
        /// Questions asked for.
        wanted: u32,
        /// Draws for the question that was not found.
        draws: u32,
        /// Skipped entities of all draws.
        passed_over: PassedOver,
    },
}

/// Draws the first assessments of a recipe.
///
/// # Errors
/// The source cannot be read, or has too few usable entities.
pub fn draw_all(
    graph: &mut dyn KnowledgeGraph,
    recipe: Recipe,
    assessments: u32,
) -> Result<Vec<Assessment>, Unfillable> {
    let (mut drawn, mut asked) = (Vec::new(), BTreeSet::new());
    for number in 0..assessments {
        let assessment = draw_beside(graph, recipe, number, &asked)?;
        if recipe.distinct {
            asked.extend(assessment.questions.iter().map(|question| question.entity.clone()));
        }
        drawn.push(assessment);
    }
    Ok(drawn)
}

/// Draws the assessment of this number, without regard to others.
///
/// # Errors
/// The source cannot be read, or has too few usable entities.
pub fn draw(graph: &mut dyn KnowledgeGraph, recipe: Recipe, number: u32) -> Result<Assessment, Unfillable> {
    draw_beside(graph, recipe, number, &BTreeSet::new())
}

/// Draws an assessment that asks about none of these entities.
fn draw_beside(
    graph: &mut dyn KnowledgeGraph,
    recipe: Recipe,
    number: u32,
    others: &BTreeSet<String>,
) -> Result<Assessment, Unfillable> {
    let groups = frequency::group(&graph.types()?, recipe.groups);
    let mut random = SplitMix64::new(SplitMix64::mix(recipe.seed) ^ u64::from(number));
    let mut questions: Vec<Question> = Vec::with_capacity(recipe.questions as usize);
    let mut passing = Passing::default();
    let mut asked = others.clone();
    while questions.len() < recipe.questions as usize {
        let mut found = None;
        for _ in 0..recipe.draws_max {
            let batch = graph.draw(random.next_u64(), recipe.batch as usize)?;
            found = first_usable(graph, &groups, batch, &asked, &mut random, &mut passing)?;
            if found.is_some() {
                break;
            }
        }
        let Some(question) = found else {
            return Err(Unfillable::TooPoor {
                filled: questions.len(),
                wanted: recipe.questions,
                draws: recipe.draws_max,
                passed_over: passing.over,
            });
        };
        asked.insert(question.entity.clone());
        questions.push(question);
    }
    Ok(Assessment { number, recipe, snapshot: graph.snapshot(), as_of: None, questions })
}

/// A question about the first usable entity of a batch, rare types first.
fn first_usable(
    graph: &mut dyn KnowledgeGraph,
    groups: &BTreeMap<String, Frequency>,
    batch: Vec<Candidate>,
    asked: &BTreeSet<String>,
    random: &mut SplitMix64,
    passing: &mut Passing,
) -> Result<Option<Question>, GraphError> {
    let mut ordered: Vec<(Frequency, Candidate)> = batch
        .into_iter()
        .filter_map(|candidate| Some((*groups.get(&candidate.type_id)?, candidate)))
        .collect();
    // Stable: within a group the order of the draw remains.
    ordered.sort_by_key(|(frequency, _)| *frequency);
    for (frequency, candidate) in ordered {
        if asked.contains(&candidate.id) {
            passing.note(&candidate.id, |over| &mut over.repeated);
            continue;
        }
        let Some(entity) = graph.entity(&candidate.id)? else {
            passing.note(&candidate.id, |over| &mut over.gone);
            continue;
        };
        match ask(entity, frequency, random) {
            Ok(question) => return Ok(Some(question)),
            Err(lack) => passing.note(&candidate.id, |over| lack.counter(over)),
        }
    }
    Ok(None)
}

/// What an entity lacks.
enum Lack {
    Facts,
    Description,
    /// The statistic of this name.
    Statistic(&'static str),
}

impl Lack {
    /// The field that counts it.
    fn counter(self, over: &mut PassedOver) -> &mut u64 {
        match self {
            Self::Facts => &mut over.few_facts,
            Self::Description => &mut over.no_description,
            Self::Statistic(name) => {
                let place = Statistics::NAMES.iter().position(|known| *known == name);
                &mut over.no_statistic[place.unwrap_or_default()]
            }
        }
    }
}

fn ask(entity: Entity, frequency: Frequency, random: &mut SplitMix64) -> Result<Question, Lack> {
    let context = question::context(&entity);
    let facts = three(entity.facts, random).ok_or(Lack::Facts)?;
    let description = entity.description.filter(|text| !text.trim().is_empty());
    let description = description.ok_or(Lack::Description)?;
    let statistics = entity.statistics.map_err(Lack::Statistic)?;
    Ok(Question {
        entity: entity.id,
        name: entity.name,
        context,
        type_id: entity.type_id,
        type_name: entity.type_name,
        frequency,
        facts,
        description,
        statistics,
    })
}

/// Draws three facts, each with equal probability; `None` if there are fewer.
fn three(mut facts: Vec<Fact>, random: &mut SplitMix64) -> Option<[Fact; FACTS]> {
    if facts.len() < FACTS {
        return None;
    }
    // The first steps of a Fisher-Yates shuffle.
    for place in 0..FACTS {
        let left = (facts.len() - place) as u64;
        facts.swap(place, place + (random.next_u64() % left) as usize);
    }
    facts.truncate(FACTS);
    facts.try_into().ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::kinds::kghalubench::draw::graph::TypeCount;

    /// `entities` of one type, each made by a function of its number.
    struct Fixed {
        entities: u64,
        make: fn(u64, &mut Entity),
    }

    impl KnowledgeGraph for Fixed {
        fn snapshot(&self) -> String {
            "fixed".to_owned()
        }

        fn types(&mut self) -> Result<Vec<TypeCount>, GraphError> {
            Ok(vec![TypeCount { id: "t".to_owned(), entities: self.entities }])
        }

        fn draw(&mut self, seed: u64, size: usize) -> Result<Vec<Candidate>, GraphError> {
            let mut random = SplitMix64::new(seed);
            let mut candidate =
                || Candidate { id: (random.next_u64() % self.entities).to_string(), type_id: "t".to_owned() };
            Ok((0..size).map(|_| candidate()).collect())
        }

        fn entity(&mut self, id: &str) -> Result<Option<Entity>, GraphError> {
            let number = id.parse().unwrap();
            let fact = |name: &str| Fact {
                relation_id: name.to_owned(),
                relation: name.to_owned(),
                objects: vec![format!("{name} of {id}")],
            };
            let mut entity = Entity {
                id: id.to_owned(),
                name: format!("entity {id}"),
                type_id: "t".to_owned(),
                type_name: "thing".to_owned(),
                lifespan: None,
                facts: ["a", "b", "c", "d"].map(fact).to_vec(),
                description: Some("a thing".to_owned()),
                statistics: Ok(Statistics::default()),
            };
            (self.make)(number, &mut entity);
            Ok(Some(entity))
        }
    }

    fn too_poor(make: fn(u64, &mut Entity)) -> String {
        let mut graph = Fixed { entities: 40, make };
        let recipe = Recipe { questions: 30, draws_max: 20, ..Recipe::default() };
        draw(&mut graph, recipe, 0).unwrap_err().to_string()
    }

    #[test]
    fn an_assessment_asks_about_no_entity_twice_and_for_three_relations() {
        let mut graph = Fixed { entities: 60, make: |_, _| () };
        let recipe = Recipe { questions: 50, ..Recipe::default() };
        let assessment = draw(&mut graph, recipe, 3).unwrap();
        assert_eq!(assessment.questions.len(), 50);
        let entities: BTreeSet<_> = assessment.questions.iter().map(|question| &question.entity).collect();
        assert_eq!(entities.len(), 50);
        for question in &assessment.questions {
            let relations: BTreeSet<_> = question.facts.iter().map(|fact| &fact.relation).collect();
            assert_eq!(relations.len(), FACTS);
        }
    }

    #[test]
    fn seed_and_number_decide_everything() {
        let mut graph = Fixed { entities: 60, make: |_, _| () };
        let recipe = Recipe { questions: 10, ..Recipe::default() };
        let first = draw(&mut graph, recipe, 0).unwrap();
        assert_eq!(first, draw(&mut graph, recipe, 0).unwrap());
        assert_ne!(first.questions, draw(&mut graph, recipe, 1).unwrap().questions);
        let other = Recipe { seed: 2, ..recipe };
        assert_ne!(first.questions, draw(&mut graph, other, 0).unwrap().questions);
    }

    #[test]
    fn assessments_can_be_about_distinct_entities() {
        let mut graph = Fixed { entities: 60, make: |_, _| () };
        let recipe = Recipe { questions: 20, ..Recipe::default() };
        let entities = |assessments: &[Assessment]| {
            let questions = assessments.iter().flat_map(|assessment| &assessment.questions);
            questions.map(|question| question.entity.clone()).collect::<BTreeSet<_>>().len()
        };
        let shared = draw_all(&mut graph, recipe, 3).unwrap();
        assert!(entities(&shared) < 60);
        assert_eq!(shared[1], draw(&mut graph, recipe, 1).unwrap());
        let distinct = Recipe { distinct: true, ..recipe };
        let drawn = draw_all(&mut graph, distinct, 3).unwrap();
        assert_eq!(entities(&drawn), 60);
        // The first one has nothing to avoid.
        assert_eq!(drawn[0].questions, shared[0].questions);
        let message = draw_all(&mut graph, distinct, 4).unwrap_err().to_string();
        assert!(message.contains("0 of 20") && message.contains("60 asked about before"), "{message}");
    }

    #[test]
    fn a_poor_graph_is_told_what_it_lacks() {
        let message = too_poor(|_, entity| entity.description = None);
        assert!(
            // Each entity is counted once, however often it was drawn.
            message.contains("0 of 30 questions") && message.contains("over: 38 without a description"),
            "{message}"
        );
        let message = too_poor(|_, entity| entity.facts.truncate(2));
        assert!(message.contains("fewer than three valid relations"), "{message}");
        let message = too_poor(|_, entity| entity.statistics = Err("references"));
        assert!(message.contains("without a number for the statistic references"), "{message}");
        // Some are usable, but not enough.
        let message = too_poor(|number, entity| {
            if number >= 20 {
                entity.description = Some("  ".to_owned());
            }
        });
        assert!(
            message.contains("20 of 30 questions") && message.contains("asked about before"),
            "{message}"
        );
    }
}
