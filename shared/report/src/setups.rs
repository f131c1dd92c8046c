//! How a model was asked and who answered, as far as its records say.

use domain::{ModelProvenance, ModelUsage, Sampling};

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
}
