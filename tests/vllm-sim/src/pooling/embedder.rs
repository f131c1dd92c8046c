//! Embeddings in which texts about the same thing are similar.
//!
//! The rule: every word has a direction of its own, and a text points where its words do, the first one most, each
//! further one 0.7 times as much as the one before. A text says first what it is about, so two that begin by naming the
//! same thing are near, however they go on: two words shared at the beginning make a cosine of about 0.76, one of about
//! 0.51, four of about 0.94; texts that share no word are near 0, give or take 1 / sqrt(dimensions). Words of
//! grammar, short words and repetitions do not count.

use domain::Message;

use super::words;
use crate::identity::{Draw, SimIdentity};

/// Weight of each word of a text relative to the word before it.
const FURTHER_WORD: f64 = 0.7;

/// Numbers of a vector.
const DIMENSIONS: usize = 256;

/// Length of a random vector that is added to each text's own of length 1. It divides the cosine of two texts by about
/// 1 + noise x noise.
const NOISE: f64 = 0.1;

/// A simulated embedder; see the module.
#[derive(Clone, Debug)]
pub struct Embedder {
    model: String,
    /// Share of texts whose vector has nothing to do with their words.
    unrelated: f64,
}

impl Embedder {
    /// The embedder of that name.
    pub fn new(model: &str, unrelated: f64) -> Self {
        Self { model: model.to_owned(), unrelated }
    }

    /// The text's vector, of length 1.
    pub fn vector(&self, text: &str) -> Vec<f32> {
        let mut chance = self.draw("text", text);
        let words = words::content(text);
        let own = chance.next_u64();
        let mut sum = if chance.unit() < self.unrelated || words.is_empty() {
            direction(own)
        } else {
            let mut sum = vec![0.0; DIMENSIONS];
            let mut weight = 1.0;
            for word in &words {
                let direction = direction(self.draw("word", word).next_u64());
                sum.iter_mut().zip(direction).for_each(|(to, from)| *to += weight * from);
                weight *= FURTHER_WORD;
                // What is left weighs less than a digit of an f32.
                if weight < 1e-9 {
                    break;
                }
            }
            unit(sum)
        };
        let noise = direction(chance.next_u64());
        sum.iter_mut().zip(noise).for_each(|(to, from)| *to += NOISE * from);
        unit(sum).into_iter().map(|number| number as f32).collect()
    }

    fn draw(&self, kind: &str, text: &str) -> Draw {
        let texts = [Message::user(text), Message::user(kind)];
        Draw::new(&[0, SimIdentity::of(&self.model, 0, &texts).request])
    }
}

/// A direction of its own for every number.
fn direction(number: u64) -> Vec<f64> {
    let mut draw = Draw::new(&[number]);
    unit((0..DIMENSIONS).map(|_| draw.unit() * 2.0 - 1.0).collect())
}

/// The same direction with length 1.
fn unit(mut vector: Vec<f64>) -> Vec<f64> {
    let length = vector.iter().map(|number| number * number).sum::<f64>().sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|number| *number /= length);
    } else if let Some(first) = vector.first_mut() {
        *first = 1.0;
    }
    vector
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CURIE: &str = "Marie Curie was a Polish physicist and chemist who studied radioactivity.";
    const ABOUT_CURIE: &str =
        "Marie Curie, born in Warsaw in 1867, won two Nobel prizes and led a laboratory in Paris.";
    const LOVELACE: &str = "Ada Lovelace wrote programs for an engine that nobody built.";

    fn cosine(unrelated: f64, a: &str, b: &str) -> f64 {
        let embedder = Embedder::new("e", unrelated);
        let (a, b) = (embedder.vector(a), embedder.vector(b));
        a.iter().zip(&b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
    }

    #[test]
    fn texts_that_name_the_same_thing_first_are_near() {
        let close = |got: f64, expected: f64| assert!((got - expected).abs() < 0.16, "{got}, not {expected}");
        close(cosine(0.0, CURIE, CURIE), 1.0);
        close(cosine(0.0, CURIE, ABOUT_CURIE), 0.76);
        close(cosine(0.0, "Curie studied rocks for many years", "Curie won twice"), 0.51);
        close(cosine(0.0, CURIE, LOVELACE), 0.0);
    }

    #[test]
    fn the_dial_does_what_it_says() {
        let near = |unrelated| {
            let texts = (0..500).map(|at| (format!("Marie Curie {at}"), format!("Marie Curie {at} again")));
            texts.filter(|(a, b)| cosine(unrelated, a, b) > 0.5).count()
        };
        assert_eq!(near(0.0), 500);
        // Both of a pair have to be spared.
        let spared = near(0.2) as f64 / 500.0;
        assert!((spared - 0.64).abs() < 0.06, "{spared}");
    }

    /// Recorded runs must stay repeatable: these numbers may never change.
    #[test]
    fn vectors_are_frozen() {
        let vector = Embedder::new("e", 0.0).vector(CURIE);
        let rounded: Vec<i32> = vector[..3].iter().map(|number| (number * 1e4).round() as i32).collect();
        assert_eq!(rounded, [1142, -201, -229]);
    }

    proptest! {
        #[test]
        fn every_text_has_a_vector_of_length_one(text in "\\PC{0,60}") {
            let vector = Embedder::new("e", 0.0).vector(&text);
            prop_assert_eq!(vector.len(), DIMENSIONS);
            let length: f64 = vector.iter().map(|number| f64::from(*number).powi(2)).sum();
            prop_assert!((length - 1.0).abs() < 1e-3, "{length}");
        }
    }
}
