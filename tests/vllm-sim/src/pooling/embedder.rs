//! Embeddings in which texts about the same thing are similar.
//!
//! The rule: every word has a direction of its own, and a text points where its words do, the first one most, each
//! further one 0.7 times as much as the one before. A text says first what it is about, so two that begin by naming the
//! same thing are near, however they go on: two words shared at the beginning make a cosine of about 0.76, one of about
//! 0.51, four of about 0.94; texts that share no word are near 0, give or take 1 / sqrt(dimensions). Words of
//! grammar, short words and repetitions do not count.

use domain::Message;
use serde::{Deserialize, Serialize};

use super::words;
use crate::bounds::ConfigError;
use crate::identity::{Draw, SimIdentity};

/// Weight of each word of a text relative to the word before it.
const FURTHER_WORD: f64 = 0.7;

/// How good an embedder is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EmbedderDial {
    /// Numbers of a vector, 1 to 8192; 256 by default.
    pub dimensions: u32,
    /// Share of texts whose vector has nothing to do with their words, 0 to 1; 0 by default.
    pub unrelated: f64,
    /// Length of a random vector that is added to each text's own of length 1, 0 to 10; 0.1 by default. It divides the
    /// cosine of two texts by about 1 + noise x noise.
    pub noise: f64,
    /// Seed that selects the affected texts and the noise; 0 by default.
    pub seed: u64,
}

impl Default for EmbedderDial {
    fn default() -> Self {
        Self { dimensions: 256, unrelated: 0.0, noise: 0.1, seed: 0 }
    }
}

impl EmbedderDial {
    /// Longest vector.
    const DIMENSIONS_MAX: u32 = 8192;
    /// Most noise: vectors are nothing else then.
    const NOISE_MAX: f64 = 10.0;

    pub(crate) fn validate(&self, key: &str) -> Result<(), ConfigError> {
        ConfigError::in_range(format!("{key}.dimensions"), self.dimensions, 1, Self::DIMENSIONS_MAX)?;
        ConfigError::in_range(format!("{key}.unrelated"), self.unrelated, 0.0, 1.0)?;
        ConfigError::in_range(format!("{key}.noise"), self.noise, 0.0, Self::NOISE_MAX)
    }
}

/// A simulated embedder; see the module.
#[derive(Clone, Debug)]
pub struct Embedder {
    model: String,
    dial: EmbedderDial,
}

impl Embedder {
    /// The embedder of that name.
    pub fn new(model: &str, dial: EmbedderDial) -> Self {
        Self { model: model.to_owned(), dial }
    }

    /// The text's vector, of length 1.
    pub fn vector(&self, text: &str) -> Vec<f32> {
        let mut chance = self.draw("text", text);
        let words = words::content(text);
        let own = chance.next_u64();
        let mut sum = if chance.unit() < self.dial.unrelated || words.is_empty() {
            self.direction(own)
        } else {
            let mut sum = vec![0.0; self.dial.dimensions as usize];
            let mut weight = 1.0;
            for word in &words {
                let direction = self.direction(self.draw("word", word).next_u64());
                sum.iter_mut().zip(direction).for_each(|(to, from)| *to += weight * from);
                weight *= FURTHER_WORD;
                // What is left weighs less than a digit of an f32.
                if weight < 1e-9 {
                    break;
                }
            }
            unit(sum)
        };
        let noise = self.direction(chance.next_u64());
        sum.iter_mut().zip(noise).for_each(|(to, from)| *to += self.dial.noise * from);
        unit(sum).into_iter().map(|number| number as f32).collect()
    }

    fn draw(&self, kind: &str, text: &str) -> Draw {
        let texts = [Message::user(text), Message::user(kind)];
        Draw::new(&[self.dial.seed, SimIdentity::of(&self.model, 0, &texts).request])
    }

    /// A direction of its own for every number.
    fn direction(&self, number: u64) -> Vec<f64> {
        let mut draw = Draw::new(&[number]);
        unit((0..self.dial.dimensions).map(|_| draw.unit() * 2.0 - 1.0).collect())
    }
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

    fn cosine(dial: EmbedderDial, a: &str, b: &str) -> f64 {
        let embedder = Embedder::new("e", dial);
        let (a, b) = (embedder.vector(a), embedder.vector(b));
        a.iter().zip(&b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
    }

    fn exact() -> EmbedderDial {
        EmbedderDial { noise: 0.0, dimensions: 4096, ..EmbedderDial::default() }
    }

    #[test]
    fn texts_that_name_the_same_thing_first_are_near() {
        let close = |got: f64, expected: f64| assert!((got - expected).abs() < 0.05, "{got}, not {expected}");
        close(cosine(exact(), CURIE, CURIE), 1.0);
        close(cosine(exact(), CURIE, ABOUT_CURIE), 0.76);
        close(cosine(exact(), "Curie studied rocks for many years", "Curie won twice"), 0.51);
        close(cosine(exact(), CURIE, LOVELACE), 0.0);
        // The default's noise and length leave the difference.
        let usual = EmbedderDial::default();
        assert!(cosine(usual, CURIE, ABOUT_CURIE) > 0.6 && cosine(usual, CURIE, LOVELACE) < 0.3);
    }

    #[test]
    fn the_dials_do_what_they_say() {
        let near = |dial| {
            let texts = (0..1000).map(|at| (format!("Marie Curie {at}"), format!("Marie Curie {at} again")));
            texts.filter(|(a, b)| cosine(dial, a, b) > 0.5).count()
        };
        let dial = EmbedderDial { dimensions: 128, ..EmbedderDial::default() };
        assert_eq!(near(dial), 1000);
        // Both of a pair have to be spared.
        let spared = near(EmbedderDial { unrelated: 0.2, ..dial }) as f64 / 1000.0;
        assert!((spared - 0.64).abs() < 0.06, "{spared}");
        let halved = cosine(EmbedderDial { noise: 1.0, ..exact() }, "Marie Curie one", "Marie Curie two");
        let whole = cosine(exact(), "Marie Curie one", "Marie Curie two");
        assert!((halved * 2.0 - whole).abs() < 0.1, "{halved} of {whole}");
    }

    /// Recorded runs must stay repeatable: these numbers may never change.
    #[test]
    fn vectors_are_frozen() {
        let vector =
            Embedder::new("e", EmbedderDial { dimensions: 3, ..EmbedderDial::default() }).vector(CURIE);
        let rounded: Vec<i32> = vector.iter().map(|number| (number * 1e4).round() as i32).collect();
        assert_eq!(rounded, [9412, -2357, -2423]);
    }

    proptest! {
        #[test]
        fn every_text_has_a_vector_of_length_one(text in "\\PC{0,60}", dimensions in 1_u32..40, noise in 0.0..10.0) {
            let dial = EmbedderDial { dimensions, noise, ..EmbedderDial::default() };
            let vector = Embedder::new("e", dial).vector(&text);
            prop_assert_eq!(vector.len(), dimensions as usize);
            let length: f64 = vector.iter().map(|number| f64::from(*number).powi(2)).sum();
            prop_assert!((length - 1.0).abs() < 1e-3, "{length}");
        }
    }
}
