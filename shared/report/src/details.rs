//! The texts of dialogues, compressed while they are read, so that a report holds tens of thousands of them.
//!
//! A block is JSON: its texts, each once, and its dialogues, which name them by number: prompts, what is expected, and infos repeat
//! each other. It is compressed by zlib, which a browser's `DecompressionStream` reads, and stands on the page as base64. A browser
//! opens a block when somebody selects a dialogue in it.

use std::collections::HashMap;
use std::io::{self, Write};
use std::mem::take;

use domain::redaction::{redact_text, redact_value};
use domain::{Infos, Outcome, Record, Scores};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use results::llmkgbench::{ResultRecord, Speaker};
use serde::Serialize;
use serde_json::{Value, json};
use tasks::compared::{LineDifference, LineSide};
use tasks::{ComparedAnswer, ComparedPart};

/// Bytes of JSON after which a block is closed. A longer dialogue has a block of its own.
const BLOCK_BYTES: usize = 256 << 10;

/// Bytes from which on a text stands once in a block.
const SHARED_BYTES: usize = 16;

/// Stands before the number of such a text. A text that begins so is always one of them.
const SHARED: char = '~';

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
    /// What was expected and extracted, or why that is not known; `None` if nobody looked.
    #[serde(skip_serializing_if = "Option::is_none")]
    compared: Option<Value>,
}

/// Why texts are lengths.
const PROTECTED: &str = "the exercises are protected; kgfleet report --plaintext shows them";

/// What was expected and extracted, or why that is not known, as the script of a report shows it. Each part says whether both are
/// the same and, as a unified difference does, which lines differ.
fn shown(compared: Result<ComparedAnswer, String>) -> Value {
    let ComparedAnswer { place, parts, reference } = match compared {
        Ok(compared) => compared,
        Err(why) => return why.into(),
    };
    let part = |part: ComparedPart| {
        let mut shown = json!({
            "what": part.what, "expected": part.expected, "extracted": part.extracted, "met": part.is_met(),
        });
        if let Some(difference) = part.difference() {
            shown["difference"] = unified(&difference).into();
        }
        shown
    };
    let mut shown = json!({ "place": place, "parts": parts.into_iter().map(part).collect::<Vec<_>>() });
    if let Some(reference) = reference {
        shown["reference"] = reference.into();
    }
    shown
}

fn unified(difference: &LineDifference<'_>) -> String {
    let sign = |side| match side {
        LineSide::Both => ' ',
        LineSide::Expected => '-',
        LineSide::Extracted => '+',
    };
    let mut text: String =
        difference.lines.iter().map(|(side, line)| format!("{}{line}\n", sign(*side))).collect();
    if difference.left_out > 0 {
        text.push_str(&format!("  and {} lines more\n", difference.left_out));
    }
    text
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct DetailRound {
    pub(crate) kind: String,
    pub(crate) prompt: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reasoning: Option<String>,
    pub(crate) answer: String,
}

impl DetailRound {
    fn texts(&mut self) -> impl Iterator<Item = &mut String> {
        [Some(&mut self.prompt), self.reasoning.as_mut(), Some(&mut self.answer)].into_iter().flatten()
    }
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
            compared: None,
        }
    }

    /// The same with what was expected and extracted, or why that is not known.
    #[must_use]
    pub fn compared(self, compared: Result<ComparedAnswer, String>) -> Self {
        Self { compared: Some(shown(compared)), ..self }
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
        Self { system: None, rounds, scores, infos, message: None, compared: None }
    }

    /// What was asked and said, and why there is no score.
    fn texts(&mut self) -> impl Iterator<Item = &mut String> {
        let rounds = self.rounds.iter_mut().flat_map(DetailRound::texts);
        self.system.iter_mut().chain(rounds).chain(&mut self.message)
    }

    /// Replaces every text by its length.
    pub fn redact(&mut self) {
        self.texts().for_each(redact_text);
        self.infos.values_mut().for_each(redact_value);
        self.compared = Some(PROTECTED.into());
    }
}

/// The texts of all dialogues, in the order in which they were read.
#[derive(Debug, Default)]
pub struct Details {
    /// Whether texts of protected exercises are kept.
    plaintext: bool,
    /// Compressed.
    blocks: Vec<Vec<u8>>,
    /// Number of dialogues in each block.
    counts: Vec<u32>,
    open: OpenBlock,
}

/// The block that dialogues are added to.
#[derive(Debug, Default)]
struct OpenBlock {
    /// The numbers of its texts.
    known: HashMap<String, usize>,
    /// The texts and the dialogues as items of JSON lists.
    texts: Vec<u8>,
    dialogues: Vec<u8>,
    count: u32,
}

impl OpenBlock {
    fn push(&mut self, mut detail: DialogueDetail) -> io::Result<()> {
        detail.texts().try_for_each(|text| self.share(text))?;
        let DialogueDetail { scores, infos, compared, .. } = &mut detail;
        let values = scores.values_mut().chain(infos.values_mut()).chain(compared);
        values.into_iter().try_for_each(|value| self.share_all(value))?;
        if self.count > 0 {
            self.dialogues.push(b',');
        }
        serde_json::to_writer(&mut self.dialogues, &detail)?;
        self.count += 1;
        Ok(())
    }

    /// Replaces a text by its number, if it is long.
    fn share(&mut self, text: &mut String) -> io::Result<()> {
        if text.len() < SHARED_BYTES && !text.starts_with(SHARED) {
            return Ok(());
        }
        let number = match self.known.get(text.as_str()) {
            Some(number) => *number,
            None => {
                let next = self.known.len();
                if next > 0 {
                    self.texts.push(b',');
                }
                serde_json::to_writer(&mut self.texts, text)?;
                self.known.insert(take(text), next);
                next
            }
        };
        *text = format!("{SHARED}{number}");
        Ok(())
    }

    fn share_all(&mut self, value: &mut Value) -> io::Result<()> {
        match value {
            Value::String(text) => self.share(text),
            Value::Array(items) => items.iter_mut().try_for_each(|item| self.share_all(item)),
            Value::Object(fields) => fields.values_mut().try_for_each(|field| self.share_all(field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        }
    }

    fn bytes(&self) -> usize {
        self.texts.len() + self.dialogues.len()
    }

    fn json(self) -> Vec<u8> {
        let parts: [&[u8]; 5] = [b"{\"texts\":[", &self.texts, b"],\"dialogues\":[", &self.dialogues, b"]}"];
        parts.concat()
    }
}

impl Details {
    pub fn new(plaintext: bool) -> Self {
        Self { plaintext, ..Self::default() }
    }

    /// Whether texts are kept as they are, of exercises that are `protected` or not.
    pub fn is_clear(&self, protected: bool) -> bool {
        !protected || self.plaintext
    }

    /// Adds the next dialogue.
    pub fn push(&mut self, mut detail: DialogueDetail, protected: bool) -> io::Result<()> {
        if !self.is_clear(protected) {
            detail.redact();
        }
        self.open.push(detail)?;
        if self.open.bytes() >= BLOCK_BYTES {
            self.close()?;
        }
        Ok(())
    }

    fn close(&mut self) -> io::Result<()> {
        let open = take(&mut self.open);
        if open.count > 0 {
            self.counts.push(open.count);
            self.blocks.push(compressed(|out| out.write_all(&open.json()))?);
        }
        Ok(())
    }

    /// The blocks, compressed, and the number of dialogues in each.
    pub fn finish(mut self) -> io::Result<(Vec<Vec<u8>>, Vec<u32>)> {
        self.close()?;
        Ok((self.blocks, self.counts))
    }
}

/// What `write` writes as the script of a page unpacks it.
pub(crate) fn compressed(
    write: impl FnOnce(&mut ZlibEncoder<Vec<u8>>) -> io::Result<()>,
) -> io::Result<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    write(&mut encoder)?;
    let mut bytes = encoder.finish()?;
    bytes.shrink_to_fit();
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::ZlibDecoder;
    use serde_json::json;

    use super::*;

    fn detail(answer: &str) -> DialogueDetail {
        DialogueDetail::of_texts("Who?", answer, json!({ "quoted": [answer] }).as_object().cloned().unwrap())
    }

    fn opened(block: &[u8]) -> Value {
        let mut text = String::new();
        ZlibDecoder::new(block).read_to_string(&mut text).unwrap();
        let block: Value = serde_json::from_str(&text).unwrap();
        restored(&block["dialogues"], &block["texts"])
    }

    /// As the script of the page does it.
    fn restored(value: &Value, texts: &Value) -> Value {
        match value {
            Value::String(text) => match text.strip_prefix(SHARED) {
                Some(number) => texts[number.parse::<usize>().unwrap()].clone(),
                None => value.clone(),
            },
            Value::Array(items) => items.iter().map(|item| restored(item, texts)).collect(),
            Value::Object(fields) => {
                fields.iter().map(|(key, field)| (key.clone(), restored(field, texts))).collect()
            }
            other => other.clone(),
        }
    }

    #[test]
    fn a_text_stands_once_in_a_block_and_none_is_taken_for_the_number_of_another() {
        let mut details = Details::new(false);
        let answer = "an answer that is somewhat longer";
        for text in [answer, "~0", answer, "~", "short"] {
            details.push(detail(text), false).unwrap();
        }
        assert_eq!(String::from_utf8_lossy(&details.open.texts).matches(answer).count(), 1);
        let (blocks, _) = details.finish().unwrap();
        let found = opened(&blocks[0]);
        let answers = [0, 1, 2, 3, 4].map(|at| found[at]["rounds"][0]["answer"].as_str().unwrap());
        assert_eq!(answers, [answer, "~0", answer, "~", "short"]);
        assert_eq!(found[1]["infos"]["quoted"][0], "~0");
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
            let compared = ComparedAnswer {
                place: String::new(),
                parts: Vec::new(),
                reference: Some("secret".to_owned()),
            };
            details.push(detail("secret").compared(Ok(compared)), true).unwrap();
            let (blocks, _) = details.finish().unwrap();
            let found = opened(&blocks[0]);
            assert_eq!(found[0]["rounds"][0]["answer"], expected);
            assert_eq!(found[0]["compared"].to_string().contains("secret"), plaintext);
            assert_eq!(found[0]["infos"]["quoted"][0], expected);
        }
    }
}
