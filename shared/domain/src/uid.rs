//! The identity of a question to a judge.
//!
//! A judge is asked a question once, whoever needs the verdict and however often its questions are derived. Two questions
//! are the same if everything that decides the reply is equal: the texts to be judged, the wording, the judge and its
//! sampling parameters and other settings of its requests.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::model::ModelSpec;
use crate::request::RequestSettings;

/// The name of a question to a judge: the first 128 bits of a SHA-256, in hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CaseUid(String);

/// Version of the hash below. It is part of the hash, so that names made by different versions never agree by chance.
const RULE: &str = "kgfleet case 1";

/// Bytes of the hash that are kept.
const KEPT_BYTES: usize = 16;

impl CaseUid {
    /// `texts` are the texts to be judged, by name; their order does not matter. `prompt_version` changes whenever the
    /// wording does. Of the judge count connector, requested name, sampling and settings of its requests, but not its label or
    /// address.
    pub fn of<'a>(
        texts: impl IntoIterator<Item = (&'a str, &'a str)>,
        prompt_version: &str,
        judge: &ModelSpec,
    ) -> Self {
        let mut texts: Vec<(&str, &str)> = texts.into_iter().collect();
        texts.sort_unstable();
        // Fields of a struct are written in their order, so equal settings give equal text.
        let sampling = serde_json::to_string(&judge.sampling).unwrap_or_default();
        let mut hasher = Sha256::new();
        let mut add = |text: &str| {
            // Length first, so that ("ab", "c") and ("a", "bc") differ.
            hasher.update((text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        };
        for text in [RULE, prompt_version, judge.connector.as_str(), judge.requested(), &sampling] {
            add(text);
        }
        // Judges of which nothing is said keep the names that they had before there were such settings.
        if judge.request != RequestSettings::default() {
            add("request");
            add(&serde_json::to_string(&judge.request).unwrap_or_default());
        }
        for (name, text) in texts {
            add(name);
            add(text);
        }
        let digest = hasher.finalize();
        Self(digest.iter().take(KEPT_BYTES).map(|byte| format!("{byte:02x}")).collect())
    }

    /// Takes a name as packs and records store it, unchecked. A text that is no such name is equal to none that was
    /// computed.
    pub fn read(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CaseUid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(line: &str) -> ModelSpec {
        serde_json::from_str(&format!(r#"{{"label": "j", "connector": "simulated"{line}}}"#)).unwrap()
    }

    #[test]
    fn a_question_is_known_by_all_that_decides_the_reply_and_by_nothing_else() {
        let base = CaseUid::of([("answer", "x"), ("question", "y")], "1", &judge(""));
        assert_eq!(base.as_str().len(), 32);
        // Neither order nor the place of the server matters.
        let elsewhere = judge(r#", "model": "j", "endpoint": "http://elsewhere:1/v1", "concurrency": 3"#);
        assert_eq!(base, CaseUid::of([("question", "y"), ("answer", "x")], "1", &elsewhere));
        for other in [
            CaseUid::of([("answer", "xy"), ("question", "")], "1", &judge("")),
            CaseUid::of([("answer", "y"), ("question", "x")], "1", &judge("")),
            CaseUid::of([("answer", "x")], "1", &judge("")),
            CaseUid::of([("answer", "x"), ("question", "y")], "2", &judge("")),
            CaseUid::of([("answer", "x"), ("question", "y")], "1", &judge(r#", "model": "k""#)),
            CaseUid::of(
                [("answer", "x"), ("question", "y")],
                "1",
                &judge(r#", "sampling": {"temperature": 0.0}"#),
            ),
            CaseUid::of(
                [("answer", "x"), ("question", "y")],
                "1",
                &judge(r#", "request": {"dimensions": 256}"#),
            ),
        ] {
            assert_ne!(base, other);
        }
    }
}
