//! Simulated models that know well-known entities better than others. Demos and tests ask them instead of language
//! models; their answers are a function of a seed.

use domain::seed::SplitMix64;

use crate::kinds::kghalubench::draw::question::{FACTS, Question};

/// The knowledge of a simulated model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knowledge {
    /// Log-odds of knowing an entity of average fame, or a relation of average hardness of an entity it knows. From
    /// about -2 (weak) to 2 (strong).
    pub skill: f64,
    /// Share of unknown entities for which the model says that it does not know, instead of inventing something.
    pub candour: f64,
}

/// What a model knows about an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recall {
    /// It says that it does not know.
    Abstains,
    /// It writes about another entity.
    Invents,
    /// It knows the entity, and these of the three facts.
    Knows([bool; FACTS]),
}

impl Knowledge {
    /// What the model knows about the entity of a question; the same for the same seed.
    pub fn recall(&self, question: &Question, seed: u64) -> Recall {
        let mut random = SplitMix64::new(seed);
        let fame = fame(question);
        if random.unit() >= logistic(self.skill + 1.5 * fame + 0.5) {
            return if random.unit() < self.candour { Recall::Abstains } else { Recall::Invents };
        }
        let knows = |relation: &str| {
            random.unit() < logistic(self.skill + fame - hardness(&question.type_id, relation))
        };
        let mut knows = knows;
        let [first, second, third] = &question.facts;
        Recall::Knows(
            [&first.relation_id, &second.relation_id, &third.relation_id].map(|relation| knows(relation)),
        )
    }
}

/// The model's answer. An invented overview is about the entity of `another` question, and wrong facts are that
/// entity's.
pub fn answer(question: &Question, recall: Recall, another: &Question) -> String {
    match recall {
        Recall::Abstains => format!("I am sorry, but I do not know {} {}.", question.name, question.context),
        Recall::Invents => {
            format!("{} This is what is known of {}.", another.description, question.name)
        }
        Recall::Knows(known) => {
            let mut text = format!("{} is a {}.", question.name, question.type_name);
            for (number, (fact, known)) in question.facts.iter().zip(known).enumerate() {
                let wrong = another.facts.get(number).and_then(|fact| fact.objects.first());
                let object = if known { fact.objects.first() } else { wrong };
                if let Some(object) = object {
                    text.push_str(&format!(" Its {} is {object}.", fact.relation));
                }
            }
            // The other sentences of the description: what makes an overview alike.
            let told = |sentence: &&str| !question.facts.iter().any(|fact| sentence.contains(&fact.relation));
            for sentence in question.description.split_inclusive(". ").skip(1).filter(told) {
                text.push(' ');
                text.push_str(sentence.trim_end());
            }
            text
        }
    }
}

/// How well known an entity is; approximately standard normal for entities of the invented graph.
fn fame(question: &Question) -> f64 {
    let [page_views, site_links, ..] = question.statistics.logarithms();
    // What the graph does not have says nothing about fame.
    let above =
        |logarithm: Option<f64>, middle: f64, slope: f64| logarithm.map_or(0.0, |x| (x - middle) / slope);
    f64::midpoint(above(page_views, 9.0, 1.6), above(site_links, 3.5, 1.1))
}

/// How hard a relation is for every model, from -1.5 to 1.5.
fn hardness(type_id: &str, relation: &str) -> f64 {
    let seed = type_id
        .bytes()
        .chain(relation.bytes())
        .fold(0_u64, |sum, byte| SplitMix64::mix(sum ^ u64::from(byte)));
    SplitMix64::new(seed).unit() * 3.0 - 1.5
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::kghalubench::draw::assessment::{Recipe, draw};
    use crate::kinds::kghalubench::draw::testing::invented;
    use crate::kinds::kghalubench::numbers::token_set::token_set_ratio;

    #[test]
    fn answers_say_what_is_recalled() {
        let mut dump = invented(2);
        let recipe = Recipe { questions: 20, ..Recipe::default() };
        let questions = draw(&mut dump, recipe, 0).unwrap().questions;
        let (question, another) = (&questions[0], &questions[1]);
        let known = answer(question, Recall::Knows([true; 3]), another);
        for fact in &question.facts {
            assert!(known.contains(&fact.objects[0]), "{known}");
        }
        let made_up = answer(question, Recall::Invents, another);
        assert!(
            token_set_ratio(&question.description, &known) > token_set_ratio(&question.description, &made_up)
        );
        assert!(answer(question, Recall::Abstains, another).contains("do not know"));
        let model = Knowledge { skill: 0.0, candour: 0.3 };
        assert_eq!(model.recall(question, 5), model.recall(question, 5));
    }
}
