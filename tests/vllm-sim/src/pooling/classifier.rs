//! Decides by words whether a hypothesis follows from a premise.
//!
//! The rule: a hypothesis whose words all occur in the premise is entailed; if only one of the two is negated (`not`,
//! `never` and the like), it is contradicted. If at least half of its words occur there, it is about the same thing and
//! says something else: contradicted. Anything else is neutral. Function words and short words do not count.

use super::{tokens, words};
use crate::identity::{Draw, SimIdentity};

/// The classes in the order and the spelling of RoBERTa-large-MNLI.
const CLASSES: [&str; 3] = ["CONTRADICTION", "NEUTRAL", "ENTAILMENT"];

/// Share of a hypothesis's words from which on it is about the same thing as its premise.
const SAME_MATTER: f64 = 0.5;

/// A simulated classifier; see the module.
#[derive(Clone, Debug)]
pub struct Classifier {
    model: String,
    /// Share of the pairs of each class that are said to be of the other two, in equal parts.
    mistaken: f64,
}

/// The answer of a classifier.
#[derive(Clone, Debug, PartialEq)]
pub struct Classes {
    /// The word for the likeliest class.
    pub label: &'static str,
    /// Probabilities in the order of the classes.
    pub probs: Vec<f64>,
}

impl Classifier {
    /// The classifier of that name.
    pub fn new(model: &str, mistaken: f64) -> Self {
        Self { model: model.to_owned(), mistaken }
    }

    /// The class of a pair as token ids. A single text is a premise without a hypothesis.
    ///
    /// # Errors
    /// The first invalid token.
    pub fn classify(&self, ids: &[u32]) -> Result<Classes, u32> {
        let texts = tokens::decode(ids)?;
        let text = |at: usize| texts.get(at).map_or("", String::as_str);
        let pair = [domain::Message::user(text(0)), domain::Message::user(text(1))];
        let mut draw = Draw::new(&[0, SimIdentity::of(&self.model, 0, &pair).request]);
        let label = self.said(relation(text(0), text(1)), draw.unit());
        // Sure enough that the order of the classes never decides.
        let most = 0.7 + 0.29 * draw.unit();
        let rest = (1.0 - most) * draw.unit();
        let mut others = [rest, 1.0 - most - rest].into_iter();
        let probs = CLASSES.map(|class| {
            // Single precision, as models have it.
            let prob = if class == label { most } else { others.next().unwrap_or(0.0) };
            f64::from(prob as f32)
        });
        Ok(Classes { label, probs: probs.to_vec() })
    }

    /// What the model says of a pair of this class, by chance another one, in the order of the alphabet.
    fn said(&self, class: &'static str, unit: f64) -> &'static str {
        let mut others = CLASSES;
        others.sort_unstable();
        let mut bound = 0.0;
        let other = others.into_iter().filter(|other| *other != class).find(|_| {
            bound += self.mistaken / 2.0;
            unit < bound
        });
        other.unwrap_or(class)
    }
}

/// The class of a pair by the rule of the module.
fn relation(premise: &str, hypothesis: &str) -> &'static str {
    let [contradiction, neutral, entailment] = CLASSES;
    let (given, claimed) = (words::content(premise), words::content(hypothesis));
    if claimed.is_empty() {
        return neutral;
    }
    let found = claimed.iter().filter(|word| given.contains(word)).count();
    let same_side = words::is_negated(premise) == words::is_negated(hypothesis);
    if found == claimed.len() && same_side {
        entailment
    } else if found as f64 >= SAME_MATTER * claimed.len() as f64 {
        contradiction
    } else {
        neutral
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const PREMISE: &str = "Marie Curie was born in Warsaw in 1867 and studied in Paris.";

    fn pair(premise: &str, hypothesis: &str) -> Vec<u32> {
        [tokens::framed(premise), vec![tokens::SEPARATOR], tokens::framed(hypothesis)].concat()
    }

    fn say(mistaken: f64, premise: &str, hypothesis: &str) -> Classes {
        Classifier::new("nli", mistaken).classify(&pair(premise, hypothesis)).unwrap()
    }

    #[test]
    fn classes_go_by_the_words() {
        for (hypothesis, label) in [
            ("Marie Curie studied in Paris.", "ENTAILMENT"),
            ("Marie Curie studied in London.", "CONTRADICTION"),
            ("Marie Curie never studied in Paris.", "CONTRADICTION"),
            ("Ada Lovelace wrote programs.", "NEUTRAL"),
            ("", "NEUTRAL"),
        ] {
            let classes = say(0.0, PREMISE, hypothesis);
            assert_eq!(classes.label, label, "{hypothesis}");
            assert!((classes.probs.iter().sum::<f64>() - 1.0).abs() < 1e-6);
            let most = classes.probs.iter().copied().fold(0.0, f64::max);
            assert_eq!(classes.probs[CLASSES.iter().position(|known| *known == label).unwrap()], most);
        }
        assert_eq!(Classifier::new("nli", 0.0).classify(&[0, 3_000_000, 2]), Err(3_000_000));
    }

    #[test]
    fn the_dial_sets_the_shares() {
        let mut counts = BTreeMap::<&str, usize>::new();
        for number in 0..2000 {
            let said = say(0.3, &format!("{PREMISE} {number}"), &format!("Marie Curie {number}"));
            *counts.entry(said.label).or_default() += 1;
        }
        for (label, share) in [("ENTAILMENT", 0.7), ("NEUTRAL", 0.15), ("CONTRADICTION", 0.15)] {
            let got = counts[label] as f64 / 2000.0;
            assert!((got - share).abs() < 0.03, "{label}: {got} instead of {share}");
        }
    }
}
