//! The texts of dialogues, compressed while they are read, so that a report holds tens of thousands of them.
//!
//! A block is a JSON list of dialogues, compressed by zlib and written as base64, which a browser's
//! `DecompressionStream` reads. A browser opens a block when somebody selects a dialogue in it.

use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use domain::{Infos, Outcome, Record, Scores};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use results::export::jsonl::{redact_text, redact_value};
use results::llmkgbench::{ResultRecord, Speaker};
use serde::Serialize;

/// Bytes of JSON after which a block is closed. A longer dialogue has a block of its own.
const BLOCK_BYTES: usize = 256 << 10;

/// The texts of a dialogue that a report shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DialogueDetail {
    /// Instructions above the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) system: Option<String>,
    pub(crate) rounds: Vec<DetailRound>,
    pub(crate) scores: Scores,
    pub(crate) infos: Infos,
    /// Why there are no scores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct DetailRound {
    pub(crate) kind: String,
    pub(crate) prompt: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reasoning: Option<String>,
    pub(crate) answer: String,
}

impl DialogueDetail {
    /// A dialogue of one round, for tests.
    #[cfg(test)]
    pub(crate) fn of_texts(prompt: &str, answer: &str, infos: Infos) -> Self {
        let round = DetailRound {
            kind: "first".into(),
            prompt: prompt.into(),
            reasoning: None,
            answer: answer.into(),
        };
        Self { rounds: vec![round], infos, ..Self::default() }
    }

    /// The texts of a record of a run.
    pub fn of_record(record: Record) -> Self {
        let round = |round: domain::Round| DetailRound {
            kind: round.prompt.kind.to_string(),
            prompt: round.prompt.text,
            reasoning: round.answer.reasoning,
            answer: round.answer.text,
        };
        let (scores, infos, message) = match record.outcome {
            Outcome::Scored { scores, infos } => (scores, infos, None),
            Outcome::Unscored { infos, message, .. } => (Scores::new(), infos, Some(message)),
            Outcome::Failed { message, .. } => (Scores::new(), Infos::new(), Some(message)),
        };
        Self {
            system: record.system,
            rounds: record.rounds.into_iter().map(round).collect(),
            scores,
            infos,
            message,
        }
    }

    /// The texts of a record of a result file.
    pub fn of_result(record: &ResultRecord) -> Self {
        let mut rounds: Vec<DetailRound> = Vec::new();
        for part in record.interactions() {
            match (part.speaker, rounds.last_mut()) {
                (Speaker::Response, Some(round)) if round.answer.is_empty() => {
                    part.text.clone_into(&mut round.answer);
                }
                (Speaker::Response, _) => {
                    rounds.push(DetailRound { answer: part.text.to_owned(), ..DetailRound::default() });
                }
                (Speaker::Prompt, _) => {
                    rounds.push(DetailRound { prompt: part.text.to_owned(), ..DetailRound::default() });
                }
            }
        }
        let (scores, infos) = (record.scores().clone(), record.infos().clone());
        Self { system: None, rounds, scores, infos, message: None }
    }

    /// Replaces every text by its length.
    pub fn redact(&mut self) {
        self.system.iter_mut().for_each(redact_text);
        for round in &mut self.rounds {
            redact_text(&mut round.prompt);
            redact_text(&mut round.answer);
            round.reasoning.iter_mut().for_each(redact_text);
        }
        self.infos.values_mut().for_each(redact_value);
        self.message.iter_mut().for_each(redact_text);
    }
}

/// The texts of all dialogues, in the order in which they were read.
#[derive(Debug, Default)]
pub struct Details {
    /// Whether texts of protected exercises are kept.
    plaintext: bool,
    blocks: Vec<String>,
    /// Number of dialogues in each block.
    counts: Vec<u32>,
    open: Vec<u8>,
    open_count: u32,
}

impl Details {
    pub fn new(plaintext: bool) -> Self {
        Self { plaintext, ..Self::default() }
    }

    /// Adds the next dialogue.
    pub fn push(&mut self, mut detail: DialogueDetail, protected: bool) -> io::Result<()> {
        if protected && !self.plaintext {
            detail.redact();
        }
        self.open.push(if self.open_count == 0 { b'[' } else { b',' });
        serde_json::to_writer(&mut self.open, &detail)?;
        self.open_count += 1;
        if self.open.len() >= BLOCK_BYTES {
            self.close()?;
        }
        Ok(())
    }

    fn close(&mut self) -> io::Result<()> {
        if self.open_count == 0 {
            return Ok(());
        }
        self.open.push(b']');
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&self.open)?;
        self.blocks.push(STANDARD.encode(encoder.finish()?));
        self.counts.push(self.open_count);
        self.open.clear();
        self.open_count = 0;
        Ok(())
    }

    /// The blocks, and the number of dialogues in each.
    pub fn finish(mut self) -> io::Result<(Vec<String>, Vec<u32>)> {
        self.close()?;
        Ok((self.blocks, self.counts))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::ZlibDecoder;
    use serde_json::{Value, json};

    use super::*;

    fn detail(answer: &str) -> DialogueDetail {
        DialogueDetail::of_texts("Who?", answer, json!({ "quoted": [answer] }).as_object().cloned().unwrap())
    }

    fn opened(block: &str) -> Value {
        let mut text = String::new();
        let bytes = STANDARD.decode(block).unwrap();
        ZlibDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn dialogues_come_back_from_their_blocks_in_order() {
        let mut details = Details::new(false);
        let long = "x".repeat(BLOCK_BYTES / 3);
        for number in 0..7 {
            details.push(detail(&format!("{number} {long}")), false).unwrap();
        }
        let (blocks, counts) = details.finish().unwrap();
        assert_eq!(counts.iter().sum::<u32>(), 7);
        assert!(blocks.len() > 1);
        let all: Vec<Value> =
            blocks.iter().flat_map(|block| opened(block).as_array().cloned().unwrap()).collect();
        assert!(all[4]["rounds"][0]["answer"].as_str().unwrap().starts_with("4 "));
        assert_eq!(Details::default().finish().unwrap(), (vec![], vec![]));
    }

    #[test]
    fn protected_texts_are_lengths_unless_asked_for() {
        for (plaintext, expected) in [(false, "[6 characters]"), (true, "secret")] {
            let mut details = Details::new(plaintext);
            details.push(detail("secret"), true).unwrap();
            let (blocks, _) = details.finish().unwrap();
            let found = opened(&blocks[0]);
            assert_eq!(found[0]["rounds"][0]["answer"], expected);
            assert_eq!(found[0]["infos"]["quoted"][0], expected);
        }
    }
}
