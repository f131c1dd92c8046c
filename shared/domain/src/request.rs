//! What a server needs to be told in every request for a model, beside sampling.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What requests for a model carry beside texts and sampling. Part of the identity of a judge's questions: other settings, other
/// verdicts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestSettings {
    /// Requested length of an embedder's vectors, for models that can shorten theirs. Default: the model's own length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dimensions: Option<u32>,
    /// How a classifier's tokenizer joins a pair of texts. Default: `double-separator`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pair_layout: PairLayout,
    /// How a classifier is asked. Default: `vllm`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub classify_api: ClassifyApi,
    /// A classifier's classes, in the order of its `id2label`. Default: learnt from the server's answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Further fields of the request body, such as `chat_template_kwargs`, sent as they are.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra_body: Map<String, Value>,
}

/// What a model puts around its thoughts, if it writes them into its answers: `"off"`, or a table of two markers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "ReasoningMarksJson", into = "ReasoningMarksJson")]
pub enum ReasoningMarks {
    /// Answers are scored as they are.
    Off,
    Between {
        open: String,
        close: String,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum ReasoningMarksJson {
    Word(String),
    Marks(MarksJson),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MarksJson {
    open: String,
    close: String,
}

impl TryFrom<ReasoningMarksJson> for ReasoningMarks {
    type Error = &'static str;

    fn try_from(json: ReasoningMarksJson) -> Result<Self, Self::Error> {
        match json {
            ReasoningMarksJson::Word(word) if word == "off" => Ok(Self::Off),
            ReasoningMarksJson::Marks(MarksJson { open, close }) if !open.is_empty() && !close.is_empty() => {
                Ok(Self::Between { open, close })
            }
            ReasoningMarksJson::Word(_) | ReasoningMarksJson::Marks(_) => {
                Err("`reasoning` is \"off\" or { open = \"…\", close = \"…\" }")
            }
        }
    }
}

impl From<ReasoningMarks> for ReasoningMarksJson {
    fn from(marks: ReasoningMarks) -> Self {
        match marks {
            ReasoningMarks::Off => Self::Word("off".to_owned()),
            ReasoningMarks::Between { open, close } => Self::Marks(MarksJson { open, close }),
        }
    }
}

/// Whether a setting may be left out when it is written.
pub(crate) fn is_default<T: Default + PartialEq>(setting: &T) -> bool {
    *setting == T::default()
}

/// The interface at which a classifier is asked about pairs of texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClassifyApi {
    /// vLLM's `/classify` and `/tokenize`.
    #[default]
    Vllm,
    /// The `/predict` of Hugging Face's server, which joins pairs itself.
    TextEmbeddingsInference,
}

/// How a model's tokenizer joins a pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PairLayout {
    /// `<s> A </s> </s> B </s>`: RoBERTa, XLM-RoBERTa, BART.
    #[default]
    DoubleSeparator,
    /// `[CLS] A [SEP] B [SEP]`: ModernBERT, DeBERTa. BERT itself also needs segment ids, which the API cannot carry:
    /// its classes would be wrong.
    SingleSeparator,
}
