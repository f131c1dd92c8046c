//! A column: a model from one origin on one set of exercises.

use domain::RunId;

/// Where dialogues come from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// A published result file of LLM-KG-Bench.
    Published,
    /// A result file that kgfleet wrote.
    Exported,
    /// A run of kgfleet.
    Run(RunId),
}

/// The exercises that dialogues are about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Exercises {
    /// The exercises of published result files, also if a run asked them again from an imported pack.
    Published,
    /// A pack of this project's format.
    Pack {
        name: String,
        /// Hash of its manifest.
        hash: String,
    },
    /// Unknown: a result file written by kgfleet does not name its pack.
    Unknown,
}

impl Exercises {
    /// A short name for headings.
    pub fn short(&self) -> &str {
        match self {
            Self::Published => "published exercises",
            Self::Pack { name, .. } => name,
            Self::Unknown => "exercises unknown",
        }
    }
}

impl std::fmt::Display for Exercises {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Published => f.write_str("the published exercises of LLM-KG-Bench"),
            Self::Pack { name, hash } => write!(f, "pack {name} {}", hash.get(..8).unwrap_or(hash)),
            Self::Unknown => f.write_str("exercises of a pack that the result file does not name"),
        }
    }
}

/// A model from one origin on one set of exercises.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The model as recorded: the label in a run, the requested name in a result file.
    pub model: String,
    /// Its name for people.
    pub name: String,
    /// Maker and line of the model, for filters and colours.
    pub family: String,
    /// Billions of parameters, if the name states them.
    pub size: Option<f64>,
    /// Billions of parameters that take part in each token, if the name states them beside all.
    pub active: Option<f64>,
    pub origin: Origin,
    pub exercises: Exercises,
}

impl Column {
    /// Whether the other column is of another model with the same name, from a source of the same kind. The name of a
    /// model in a run is chosen by whoever runs it, so a published model and one in a run with the same name are the
    /// same model.
    pub fn is_namesake_of(&self, other: &Self) -> bool {
        let of_run = |column: &Self| matches!(column.origin, Origin::Run(_));
        self.name == other.name && self.model != other.model && of_run(self) == of_run(other)
    }
}
