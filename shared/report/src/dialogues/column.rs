//! A column: a model from one origin on one set of exercises, its names for people, how it was asked and who answered, as far as
//! its records say.

use domain::model::{stated_active, stated_size};
use domain::{ModelProvenance, ModelUsage, RunId, Sampling};

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
    /// A model with this name; the rest is read from the name.
    pub fn of(model: &str, name: String, origin: Origin, exercises: Exercises) -> Self {
        Self {
            model: model.to_owned(),
            family: family(&name),
            size: stated_size(&name),
            active: stated_active(&name),
            name,
            origin,
            exercises,
        }
    }

    /// Whether the other column is of another model with the same name, from a source of the same kind. The name of a
    /// model in a run is chosen by whoever runs it, so a published model and one in a run with the same name are the
    /// same model.
    pub fn is_namesake_of(&self, other: &Self) -> bool {
        let of_run = |column: &Self| matches!(column.origin, Origin::Run(_));
        self.name == other.name && self.model != other.model && of_run(self) == of_run(other)
    }
}

/// Maximum number of values of a [`SetupFact`] that are kept; a fleet may have an address for every pod.
const VALUES_MAX: usize = 3;

/// Something that is known of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetupFact {
    /// The name asked for.
    Requested,
    /// The name in the server's answer.
    Reported,
    Connector,
    Endpoint,
    /// The server's fingerprint of its build and configuration.
    Server,
    Sampling,
    /// The version of kgfleet that asked.
    Asker,
}

impl SetupFact {
    /// In the order in which tables show them.
    pub const ALL: [Self; 7] = [
        Self::Requested,
        Self::Reported,
        Self::Connector,
        Self::Endpoint,
        Self::Server,
        Self::Sampling,
        Self::Asker,
    ];

    /// For headings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Requested => "asked for",
            Self::Reported => "answered as",
            Self::Connector => "connector",
            Self::Endpoint => "address",
            Self::Server => "server",
            Self::Sampling => "sampling",
            Self::Asker => "kgfleet",
        }
    }
}

/// What is known of a model: different values of each fact, in the order in which they were met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelSetup {
    /// How a provider may [bill](domain::ModelSpec::billed_as) it, as the configuration says; `None` if it is not known, and of
    /// models that nobody bills. Records cannot say it: simulated models are asked like others.
    pub billed_as: Option<String>,
    /// Tokens of answers that were thrown away: they were paid, too.
    pub thrown_away: ModelUsage,
    values: [Vec<String>; SetupFact::ALL.len()],
    /// How many values of each were left out.
    more: [u32; SetupFact::ALL.len()],
}

impl ModelSetup {
    /// Notes a value; empty ones say nothing.
    pub fn note(&mut self, fact: SetupFact, value: &str) {
        let known = &mut self.values[fact as usize];
        if value.is_empty() || known.iter().any(|known| known == value) {
            return;
        }
        if known.len() < VALUES_MAX {
            known.push(value.to_owned());
        } else {
            self.more[fact as usize] += 1;
        }
    }

    /// Notes what a record of a run says.
    pub fn note_record(&mut self, model: &ModelProvenance, sampling: &Sampling, kgfleet: &str) {
        self.note(SetupFact::Requested, &model.requested);
        self.note(SetupFact::Reported, model.reported.as_deref().unwrap_or_default());
        self.note(SetupFact::Connector, &model.connector);
        self.note(SetupFact::Endpoint, model.endpoint.as_deref().unwrap_or_default());
        self.note(SetupFact::Server, model.system_fingerprint.as_deref().unwrap_or_default());
        self.note(SetupFact::Sampling, &sampling.to_string());
        self.note(SetupFact::Asker, kgfleet);
    }

    /// The values of a fact for people; `None` if nothing is known.
    pub fn told(&self, fact: SetupFact) -> Option<String> {
        let known = &self.values[fact as usize];
        let mut told = known.join("; ");
        if self.more[fact as usize] > 0 {
            told.push_str("; and others");
        }
        (!known.is_empty()).then_some(told)
    }
}

/// Names of published models as in the published tables.
const PUBLISHED: [(&str, &str); 10] = [
    ("claude-3-5-haiku-20241022", "Claude 3.5 Haiku"),
    ("claude-3-5-sonnet-20241022", "Claude 3.5 Sonnet"),
    ("gemini-1.5-flash-002", "Gemini 1.5 Flash"),
    ("gemini-1.5-pro-002", "Gemini 1.5 Pro"),
    ("gemini-2.0-flash-exp", "Gemini 2.0 Flash Exp"),
    ("gpt-3.5-turbo-0125", "GPT3.5 2024/01"),
    ("gpt-4o-2024-11-20", "GPT4o 2024/11"),
    ("gpt-4o-mini-2024-07-18", "GPT4o-mini 2024/07"),
    ("o1-mini-2024-09-12", "GPTo1-mini 2024/09"),
    ("o1-preview-2024-09-12", "GPTo1-pre 2024/09"),
];

/// The name of a published model as in the published tables; of any other model, its name without folders.
pub fn published_name(requested: &str) -> String {
    let bare = requested.rsplit('/').next().unwrap_or(requested);
    let known = PUBLISHED.iter().find(|(id, _)| *id == bare);
    known.map_or_else(|| bare.to_owned(), |(_, name)| (*name).to_owned())
}

/// The family of a model: the letters at the beginning of its name, without folders and `Meta-`.
pub fn family(name: &str) -> String {
    // A slash may also stand in a date.
    let bare = name.rsplit('/').find(|part| part.starts_with(char::is_alphabetic)).unwrap_or(name);
    let bare = bare.strip_prefix("Meta-").or_else(|| bare.strip_prefix("meta-")).unwrap_or(bare);
    let letters: String = bare.chars().take_while(|c| c.is_alphabetic()).collect();
    match letters.as_str() {
        "" => bare.to_owned(),
        // The published tables write both.
        "GPTo" | "o" | "gpt" => "GPT".to_owned(),
        "claude" => "Claude".to_owned(),
        "gemini" => "Gemini".to_owned(),
        _ => letters,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_values_are_kept_and_many_are_cut() {
        let mut setup = ModelSetup::default();
        assert_eq!(setup.told(SetupFact::Server), None);
        for value in ["a", "", "b", "a"] {
            setup.note(SetupFact::Server, value);
        }
        assert_eq!(setup.told(SetupFact::Server).unwrap(), "a; b");
        ["c", "d"].into_iter().for_each(|value| setup.note(SetupFact::Server, value));
        assert_eq!(setup.told(SetupFact::Server).unwrap(), "a; b; c; and others");
        assert_eq!(setup.told(SetupFact::Connector), None);
    }

    #[test]
    fn names_say_families() {
        let families = [
            ("Meta-Llama-3-8B", "Llama"),
            ("Qwen2.5-Coder-32B", "Qwen"),
            ("GPT4o 2024/11", "GPT"),
            ("GPTo1-mini 2024/09", "GPT"),
            ("Claude 3.5 Haiku", "Claude"),
            ("7b", "7b"),
        ];
        for (name, expected) in families {
            assert_eq!(family(name), expected, "{name}");
        }
        assert_eq!(published_name("models/gemini-1.5-flash-002"), "Gemini 1.5 Flash");
        assert_eq!(published_name("org/Model-8B"), "Model-8B");
    }
}
