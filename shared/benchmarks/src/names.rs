//! Names of the runs of a pipeline: functions of what they are, so that everybody derives the same.

use std::fmt;

use domain::text::hex;
use domain::{ModelLabel, RunId};
use sha2::{Digest, Sha256};

/// The stage that asks the models under test.
pub const ASK: &str = "ask";

/// Whom runs are about that all models share.
pub const SHARED: &str = "all";

/// Longest slug of a model before its hash, in characters.
const SLUG_CHARS_MAX: usize = 40;

/// Longest name of a pipeline, in characters.
pub const PIPELINE_CHARS_MAX: usize = 60;

/// The parts of `PIPELINE.STAGE.MODEL.n`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunName {
    pub pipeline: String,
    pub stage: String,
    /// The [slug] of the model under test.
    pub model: String,
    /// Which run of the stage for this model it is, from 1.
    pub number: u32,
}

impl RunName {
    /// The name of the n-th run of a stage for a model.
    pub fn new(pipeline: &str, stage: &str, model: &ModelLabel, number: u32) -> Self {
        Self { pipeline: pipeline.to_owned(), stage: stage.to_owned(), model: slug(model), number }
    }

    /// Reads a name; `None` where a run is not one of a pipeline.
    pub fn read(run: &RunId) -> Option<Self> {
        let mut parts = run.as_str().split('.');
        let mut next = || parts.next().filter(|part| !part.is_empty()).map(str::to_owned);
        let (pipeline, stage, model, number) = (next()?, next()?, next()?, next()?);
        let number: u32 = number.parse().ok().filter(|number| *number > 0)?;
        parts.next().is_none().then_some(Self { pipeline, stage, model, number })
    }

    /// As a run.
    pub fn run(&self) -> RunId {
        RunId::new(self.to_string())
    }
}

impl fmt::Display for RunName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}.{}", self.pipeline, self.stage, self.model, self.number)
    }
}

/// The benchmark that a run belongs to: the one whose stage it is of, or the one that it is by itself.
pub fn benchmark_of(run: &RunId) -> RunId {
    RunName::read(run).map_or_else(|| run.clone(), |name| RunId::new(name.pipeline))
}

/// Whether a pipeline may have this name: it stands in the names of files and runs, between dots.
pub fn is_pipeline_name(name: &str) -> bool {
    is_plain(name, PIPELINE_CHARS_MAX)
}

fn is_plain(text: &str, chars_max: usize) -> bool {
    !text.is_empty() && text.len() <= chars_max && text.chars().all(is_plain_char) && !text.starts_with('-')
}

fn is_plain_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_')
}

/// A name for a pipeline, made of what people call it.
pub fn pipeline_slug(display: &str) -> String {
    shortened(display, PIPELINE_CHARS_MAX - 7)
}

/// A model's label as a part of file names. Labels that differ have slugs that differ: what cannot stand in one is replaced,
/// and a hash of the label is added.
pub fn slug(model: &ModelLabel) -> String {
    shortened(model.as_str(), SLUG_CHARS_MAX)
}

fn shortened(text: &str, chars_max: usize) -> String {
    if is_plain(text, chars_max) {
        return text.to_owned();
    }
    let kept: String = text.chars().map(|c| if is_plain_char(c) { c } else { '-' }).take(chars_max).collect();
    format!("{}-{}", kept.trim_matches('-'), hex(&Sha256::digest(text)[..3]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_and_labels_that_look_alike_have_names_of_their_own() {
        let labels =
            ["gpt-4o", "meta/Llama-3.1 8B", "meta-Llama-3-1-8B", "", "模型", "-x", &"long".repeat(40)];
        let mut seen = std::collections::BTreeSet::new();
        for label in labels {
            let name = RunName::new("p", ASK, &label.into(), 3);
            assert_eq!(RunName::read(&name.run()), Some(name.clone()), "{name}");
            assert!(seen.insert(name.to_string()), "{name}");
            assert!(name.to_string().len() < 130 && !name.model.contains('.'), "{name}");
        }
        assert_eq!(RunName::new("p", ASK, &"gpt-4o".into(), 1).to_string(), "p.ask.gpt-4o.1");
        for other in ["20261122-120000-fff12345", "p.ask.m", "p.ask.m.0", "p.ask.m.x", "p.ask.m.1.2", "..a.1"]
        {
            assert_eq!(RunName::read(&RunId::new(other)), None, "{other}");
        }
        assert!(is_pipeline_name(&pipeline_slug("my pipeline: über alles")));
    }
}
