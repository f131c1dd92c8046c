//! What a calibration learns, as a file that people can read and change.

use std::collections::BTreeMap;

use domain::spelling;
use domain::text::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::kinds::kghalubench::draw::graph::Statistics;

/// Steepness of the sigmoid of difficulties. The paper calls it a parameter and gives no value.
pub const STEEPNESS: f64 = 5.0;

/// Share of the type's weight in an entity's popularity; the rest is its relevance. The paper combines the two without
/// saying how.
pub const TYPE_SHARE: f64 = 0.5;

/// Decimal places of a weight in files.
const PLACES: i32 = 4;

/// Weights that come with the program.
const SIMULATED: &str = include_str!("simulated.weights.toml");

/// The version of a file that has a scale, which the first version had not.
const WITH_SCALE: u32 = 2;

/// The scale that Wa stands on: by it numbers of one benchmark can stand beside those of another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DifficultyScale {
    /// The difficulty at which Wa equals accuracy: the mean of all assessments of all models that weights were learnt from.
    pub mean_difficulty: f64,
    /// The least and the greatest relevance of their entities.
    pub relevance: [f64; 2],
    /// The least and the greatest popularity of their entities, before it is normalised.
    pub popularity: [f64; 2],
}

/// The weights of difficulty. All values of `types` and `relations` are in [0, 1]: normalised mean scores, so a high
/// value means an easy type or relation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weights {
    /// Version of the file.
    #[serde(default = "first_version", skip_serializing_if = "is_first_version")]
    pub version: u32,
    /// The runs that they were learnt from, for people.
    pub source: String,
    /// Steepness of the sigmoid, above 0.
    #[serde(default = "steepness")]
    pub steepness: f64,
    /// Share of the type's weight in an entity's popularity, in [0, 1].
    #[serde(default = "type_share")]
    pub type_share: f64,
    /// The scale that difficulties stand on; `None` in a file of version 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<DifficultyScale>,
    /// Weights of the logarithms of the statistics, by name; not below 0.
    pub statistics: BTreeMap<String, f64>,
    /// Weights of types, by IRI.
    pub types: BTreeMap<String, f64>,
    /// Weights of relations, by IRI of the type, then by IRI of the relation.
    pub relations: BTreeMap<String, BTreeMap<String, f64>>,
}

fn first_version() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn is_first_version(version: &u32) -> bool {
    *version == first_version()
}

fn steepness() -> f64 {
    STEEPNESS
}

fn type_share() -> f64 {
    TYPE_SHARE
}

/// Why weights cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WeightsError {
    /// Not TOML of this shape.
    #[error("{0}")]
    Syntax(String),
    /// A value is out of bounds.
    #[error("`{name}` {problem}")]
    Value {
        /// The value, with its path.
        name: String,
        /// What is wrong.
        problem: String,
    },
}

impl Default for Weights {
    /// No weights: every type and relation counts as unknown.
    fn default() -> Self {
        Self {
            version: first_version(),
            source: String::new(),
            steepness: STEEPNESS,
            type_share: TYPE_SHARE,
            scale: None,
            statistics: BTreeMap::new(),
            types: BTreeMap::new(),
            relations: BTreeMap::new(),
        }
    }
}

impl DifficultyScale {
    fn check(&self) -> Result<(), WeightsError> {
        let wrong =
            |name: &str, problem: String| Err(WeightsError::Value { name: format!("scale.{name}"), problem });
        if !(self.mean_difficulty > 0.0 && self.mean_difficulty < 1.0) {
            return wrong(
                "mean_difficulty",
                format!("is {}; it must be between 0 and 1", self.mean_difficulty),
            );
        }
        for (name, [least, most]) in [("relevance", self.relevance), ("popularity", self.popularity)] {
            if !(least.is_finite() && most.is_finite() && least <= most) {
                return wrong(name, format!("is [{least}, {most}]; the first must not be above the second"));
            }
        }
        Ok(())
    }
}

impl Weights {
    /// The same with a scale.
    #[must_use]
    pub fn on(self, scale: DifficultyScale) -> Self {
        Self { version: WITH_SCALE, scale: Some(scale), ..self }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// It is no file of weights, or a weight is out of bounds.
    pub fn parse(text: &str) -> Result<Self, WeightsError> {
        let weights: Self = toml::from_str(text).map_err(|error| WeightsError::Syntax(error.to_string()))?;
        weights.check()?;
        Ok(weights)
    }

    /// The weights that come with the program, learnt from simulated models on an invented graph. They have no values
    /// for types and relations of other graphs.
    ///
    /// # Errors
    /// None: a test reads them.
    pub fn simulated() -> Result<Self, WeightsError> {
        Self::parse(SIMULATED)
    }

    fn check(&self) -> Result<(), WeightsError> {
        let wrong = |name: String, problem: String| Err(WeightsError::Value { name, problem });
        match (self.version, &self.scale) {
            (1, None) => {}
            (1, Some(_)) => {
                return wrong("version".to_owned(), format!("is 1; a file with a scale has {WITH_SCALE}"));
            }
            (WITH_SCALE, Some(scale)) => scale.check()?,
            (WITH_SCALE, None) => return wrong("scale".to_owned(), "is missing".to_owned()),
            (other, _) => {
                let problem = format!("is {other}; this program reads 1 and {WITH_SCALE}");
                return wrong("version".to_owned(), problem);
            }
        }
        if !(self.steepness.is_finite() && self.steepness > 0.0) {
            return wrong("steepness".to_owned(), format!("is {}; it must be above 0", self.steepness));
        }
        for (name, value) in &self.statistics {
            if !Statistics::NAMES.contains(&name.as_str()) {
                let offered = spelling::offer(name, Statistics::NAMES);
                return wrong(format!("statistics.{name}"), format!("is no statistic; {offered}"));
            }
            if !(value.is_finite() && *value >= 0.0) {
                return wrong(format!("statistics.{name}"), format!("is {value}; it must be 0 or more"));
            }
        }
        let types = self.types.iter().map(|(name, value)| (format!("types.{name}"), *value));
        let relations = self.relations.iter().flat_map(|(id, weights)| {
            weights.iter().map(move |(name, value)| (format!("relations.{id}.{name}"), *value))
        });
        let share = ("type_share".to_owned(), self.type_share);
        for (name, value) in types.chain(relations).chain([share]) {
            if !(0.0..=1.0).contains(&value) {
                return wrong(name, format!("is {value}; it must be between 0 and 1"));
            }
        }
        Ok(())
    }

    /// Rounded to the decimal places of files, so that writing and reading changes nothing.
    #[must_use]
    pub fn rounded(mut self) -> Self {
        let unit = 10_f64.powi(PLACES);
        let relations = self.relations.values_mut().flat_map(BTreeMap::values_mut);
        let scale = self.scale.iter_mut().flat_map(|scale| {
            let ranges = scale.relevance.iter_mut().chain(&mut scale.popularity);
            ranges.chain([&mut scale.mean_difficulty])
        });
        for value in scale.chain(self.statistics.values_mut()).chain(self.types.values_mut()).chain(relations)
        {
            *value = (*value * unit).round() / unit;
        }
        self
    }

    /// The text of a file with these weights.
    ///
    /// # Errors
    /// None for weights that were read or learnt: they can be written as TOML.
    pub fn to_toml(&self) -> Result<String, WeightsError> {
        toml::to_string_pretty(self).map_err(|error| WeightsError::Syntax(error.to_string()))
    }

    /// The beginning of a hash of the file: identifies the weights beside numbers that were computed with them.
    ///
    /// # Errors
    /// See [`Weights::to_toml`].
    pub fn fingerprint(&self) -> Result<String, WeightsError> {
        Ok(hex(&Sha256::digest(self.to_toml()?)[..6]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_survive_their_file() {
        let mut weights = Weights { source: "a \"test\"".to_owned(), ..Weights::default() };
        weights.statistics.insert("page_views".to_owned(), 0.123_456_7);
        weights.relations.insert("https://e.example/T".to_owned(), [("r".to_owned(), 1.0)].into());
        let weights = weights.rounded();
        assert_eq!(weights.statistics["page_views"], 0.1235);
        let read = Weights::parse(&weights.to_toml().unwrap()).unwrap();
        assert_eq!(read, weights);
        assert_eq!(read.fingerprint().unwrap(), weights.fingerprint().unwrap());
        assert_ne!(read.fingerprint().unwrap(), Weights::default().fingerprint().unwrap());
    }

    #[test]
    fn a_file_of_version_1_is_read_and_keeps_its_fingerprint() {
        let text = "source = \"a test\"\nsteepness = 5.0\ntype_share = 0.5\n\n[statistics]\n\n[types]\n\n[relations]\n";
        let weights = Weights::parse(text).unwrap();
        assert_eq!((weights.version, weights.scale), (1, None));
        assert_eq!(weights.to_toml().unwrap(), text);
    }

    #[test]
    fn a_scale_is_kept_in_its_file() {
        let scale =
            DifficultyScale { mean_difficulty: 0.412_34, relevance: [0.0, 31.5], popularity: [0.1, 0.9] };
        let weights = Weights::default().on(scale).rounded();
        let read = Weights::parse(&weights.to_toml().unwrap()).unwrap();
        assert_eq!(read.scale, Some(DifficultyScale { mean_difficulty: 0.4123, ..scale }));
        let text = weights.to_toml().unwrap();
        for (from, to, name) in [
            ("version = 2", "version = 3", "version"),
            ("version = 2", "version = 1", "version"),
            ("mean_difficulty = 0.4123", "mean_difficulty = 0.0", "scale.mean_difficulty"),
            ("0.9", "0.05", "scale.popularity"),
            ("31.5", "nan", "scale.relevance"),
        ] {
            let error = Weights::parse(&text.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
        let error = Weights::parse("version = 2\nsource = ''\n[statistics]\n[types]\n[relations]\n");
        assert!(error.unwrap_err().to_string().contains("`scale` is missing"));
    }

    #[test]
    fn what_cannot_be_a_weight_is_named() {
        let empty = "source = ''\n[statistics]\n[types]\n[relations]\n";
        Weights::parse(empty).unwrap();
        for (from, to, name) in [
            ("[statistics]", "[statistics]\npage_views = -1.0", "statistics.page_views"),
            ("[statistics]", "[statistics]\nviews = 1.0", "statistics.views"),
            ("[types]", "[types]\nt = 1.5", "types.t"),
            ("[types]", "[types]\nt = nan", "types.t"),
            ("[relations]", "[relations.t]\nr = -0.5", "relations.t.r"),
            ("source = ''", "source = ''\nsteepness = 0.0", "steepness"),
            ("source = ''", "source = ''\ntype_share = 2.0", "type_share"),
            ("[types]", "[kinds]", "kinds"),
        ] {
            let error = Weights::parse(&empty.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }

    #[test]
    fn the_weights_that_come_with_the_program_can_be_read() {
        let weights = Weights::simulated().unwrap();
        assert!(weights.source.contains("simulated") && weights.types.len() == 20);
    }
}
