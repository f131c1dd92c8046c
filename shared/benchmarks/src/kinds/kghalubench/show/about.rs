//! Facts about models that no answer shows: the end of their training data, and their size. They are an input of the
//! report, as weights are, and have no effect on a run, so they can be added afterwards.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::kinds::kghalubench::draw::Date;

/// Facts about models, by label.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelFacts {
    /// By the label that the configuration has.
    #[serde(default)]
    models: BTreeMap<String, AboutModel>,
}

/// Facts about a model.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AboutModel {
    /// Billions of parameters, above 0. Default: what its name states.
    pub size: Option<f64>,
    /// The date at which its training data end.
    pub cut_off: Option<Date>,
    /// What it has in common with other models, such as that its weights are open: means are shown of each group.
    pub group: Option<String>,
}

/// Why a file is not usable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AboutError {
    /// Not TOML of this shape.
    #[error("{0}")]
    Syntax(#[from] toml::de::Error),
    /// An impossible size.
    #[error("`models.{model}.size` is {size}; it must be above 0")]
    Size {
        /// Label of the model.
        model: String,
        /// The size given.
        size: f64,
    },
}

impl ModelFacts {
    /// Reads a file.
    ///
    /// # Errors
    /// The file has another form, a size is out of bounds, or a cut-off is not a date.
    pub fn parse(text: &str) -> Result<Self, AboutError> {
        let about: Self = toml::from_str(text)?;
        for (model, known) in &about.models {
            if let Some(size) = known.size.filter(|size| !(size.is_finite() && *size > 0.0)) {
                return Err(AboutError::Size { model: model.clone(), size });
            }
        }
        Ok(about)
    }

    /// The facts about a model; empty for most.
    pub(super) fn of(&self, model: &str) -> AboutModel {
        let known = self.models.get(model).cloned().unwrap_or_default();
        AboutModel { size: known.size.or_else(|| domain::model::stated_size(model)), ..known }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_says_goes_before_what_names_say() {
        let text = "[models.\"Llama-3.1-8B\"]\ncut_off = \"2023-12\"\n[models.m]\nsize = 3\n[models.\"Q-7B\"]\nsize = 7.6\n";
        let about = ModelFacts::parse(text).unwrap();
        let llama = about.of("Llama-3.1-8B");
        assert_eq!((llama.size, llama.cut_off.map(String::from).as_deref()), (Some(8.0), Some("2023-12")));
        assert_eq!(
            (about.of("m").size, about.of("Q-7B").size, about.of("n").size),
            (Some(3.0), Some(7.6), None)
        );
        assert_eq!(about.of("n").cut_off, None);
    }

    #[test]
    fn what_cannot_be_is_named() {
        for (text, named) in [
            ("[models.m]\nsize = -1.0", "models.m.size"),
            ("[models.m]\nsize = nan", "models.m.size"),
            ("[models.m]\ncut_off = \"soon\"", "`soon` is no date"),
            ("[models.m]\ncutoff = \"2024\"", "cutoff"),
            ("[m]\nsize = 1.0", "unknown field `m`"),
        ] {
            let error = ModelFacts::parse(text).unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
    }
}
