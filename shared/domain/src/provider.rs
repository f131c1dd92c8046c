//! How models are reached, and what is known of each way before a model is asked: the table [`PROVIDERS`].
//!
//! A connector is added as a variant of [`Connector`] and a row of the table; the client itself goes to
//! `shared/models`.

named! {
    /// How a model is reached.
    pub enum Connector {
        /// Any server with OpenAI's API: vLLM first.
        OpenaiCompatible = "openai-compatible",
        /// Anthropic's messages API.
        Anthropic = "anthropic",
        /// Google's Gemini API.
        Gemini = "gemini",
        /// The built-in simulator.
        Simulated = "simulated",
        /// Answers of a recorded run.
        Replay = "replay",
    }
}

named! {
    /// A kind of question to a model.
    pub enum Ask {
        /// A conversation to continue; the answer is a text.
        Chat = "chat",
        /// Texts to embed: texts of similar meaning get similar vectors.
        Embed = "embed",
        /// Pairs of texts to classify, for example whether the first entails the second.
        Classify = "classify",
    }
}

/// What is known of a connector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Provider {
    pub connector: Connector,
    pub home: ModelHome,
    /// Where the key is when a configuration names none.
    pub usual_key: Option<UsualKey>,
    /// The kinds of questions that the connector supports. Whether a given model supports them, only its server knows.
    pub offers: &'static [Ask],
    /// How many dialogues a server takes at once, where a configuration does not say so.
    pub in_flight: InFlightBounds,
}

/// Where the models of a connector answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelHome {
    /// At servers that configurations name, or that stand beside workers.
    Servers,
    /// At the address of the provider, unless a configuration names another one.
    Provider(&'static str),
    /// In this process.
    Process,
}

/// The environment variable in which a key usually is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsualKey {
    pub variable: &'static str,
    /// The only address whose key it is; otherwise it is the key of every server of the connector.
    pub only_at: Option<&'static str>,
}

/// Bounds of the dialogues in flight at a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlightBounds {
    /// The number to start with; it then adapts.
    pub start: u32,
    pub min: u32,
    /// The most at a server that says it is full only by refusing calls.
    pub max: u32,
    /// The most at a server that tells how many requests wait there.
    pub measured_max: u32,
}

impl InFlightBounds {
    /// A server of our own, such as vLLM: published sweeps put the best throughput of an 8B model on one H100 at 192
    /// requests in flight, and vLLM itself runs 256 or 1 024 at once if nobody says otherwise.
    pub const OWN_SERVER: Self = Self { start: 32, min: 1, max: 256, measured_max: 2048 };

    /// A hosted provider with rate limits.
    pub const RATE_LIMITED: Self = Self { start: 4, min: 1, max: 64, measured_max: 64 };

    /// A number that does not adapt.
    pub const fn fixed(dialogues: u32) -> Self {
        Self { start: dialogues, min: dialogues, max: dialogues, measured_max: dialogues }
    }

    /// Whether it does not adapt.
    pub const fn is_fixed(self) -> bool {
        self.min == self.measured_max
    }
}

/// Every connector, in the order of [`Connector::ALL`].
pub static PROVIDERS: [Provider; Connector::ALL.len()] = [
    Provider {
        connector: Connector::OpenaiCompatible,
        home: ModelHome::Servers,
        // OpenAI's own address; models there use its key.
        usual_key: Some(UsualKey { variable: "OPENAI_API_KEY", only_at: Some("https://api.openai.com/") }),
        offers: &Ask::ALL,
        in_flight: InFlightBounds::OWN_SERVER,
    },
    Provider {
        connector: Connector::Anthropic,
        home: ModelHome::Provider("https://api.anthropic.com"),
        usual_key: Some(UsualKey { variable: "ANTHROPIC_API_KEY", only_at: None }),
        offers: &[Ask::Chat],
        in_flight: InFlightBounds::RATE_LIMITED,
    },
    Provider {
        connector: Connector::Gemini,
        home: ModelHome::Provider("https://generativelanguage.googleapis.com"),
        usual_key: Some(UsualKey { variable: "GEMINI_API_KEY", only_at: None }),
        offers: &[Ask::Chat],
        in_flight: InFlightBounds::RATE_LIMITED,
    },
    Provider {
        connector: Connector::Simulated,
        home: ModelHome::Process,
        usual_key: None,
        offers: &Ask::ALL,
        in_flight: InFlightBounds::fixed(64),
    },
    Provider {
        connector: Connector::Replay,
        home: ModelHome::Process,
        usual_key: None,
        offers: &[Ask::Chat],
        in_flight: InFlightBounds::fixed(64),
    },
];

impl Connector {
    /// Its row in [`PROVIDERS`].
    pub fn provider(self) -> &'static Provider {
        // A test compares the orders.
        &PROVIDERS[self as usize]
    }

    /// The provider's address, if there is one provider.
    pub fn own_endpoint(self) -> Option<&'static str> {
        match self.provider().home {
            ModelHome::Provider(address) => Some(address),
            ModelHome::Servers | ModelHome::Process => None,
        }
    }

    /// Whether somebody may bill its answers. Nobody bills simulated and recorded ones, whatever their models are called.
    pub fn is_billed(self) -> bool {
        self.provider().home != ModelHome::Process
    }

    /// The kinds of questions that the connector supports.
    pub fn offers(self) -> &'static [Ask] {
        self.provider().offers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_files() {
        for connector in Connector::ALL {
            assert_eq!(connector.provider().connector, connector);
            assert_eq!(serde_json::to_value(connector).unwrap(), connector.as_str());
            assert!(connector.offers().contains(&Ask::Chat), "{connector}");
        }
        for ask in Ask::ALL {
            assert_eq!(serde_json::to_value(ask).unwrap(), ask.as_str());
        }
    }
}
