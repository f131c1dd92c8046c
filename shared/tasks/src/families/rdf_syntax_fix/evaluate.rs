//! Judges one answer.

use domain::{Infos, PromptKind, Scores};
use rdf::{Graph, NormalForm, normal_lines};

use super::{RdfSyntaxFix, similarity};
use crate::compared::{ComparedPart, text_of};
use crate::exercise::{Effort, EvaluationStage, FollowUp, Limit, Verdict};
use crate::families::brackets::bracket_depth;
use crate::families::overlap::Overlap;
use crate::text::difflib::ratio;
use crate::text::fences::{FencedBlock, fenced_blocks};
use crate::text::python::{splitlines, strip};
use crate::text::unified_diff::unified_diff;
use crate::wording::Fields;

/// After a limit was hit, a document is compared as text only if it is at most this many times as long as the expected
/// one. A longer one has a similarity below one eighth, and the comparison itself may have hit the limit.
const COMPARED_FACTOR: usize = 16;

/// The parts of an answer.
struct ReadAnswer<'a> {
    /// Number of fenced blocks.
    blocks: usize,
    /// The first of them, with its fences.
    whole: &'a str,
    /// Its trimmed body; empty without a block.
    document: &'a str,
    /// The graph, or the parser's message; `None` without a block.
    parsed: Option<Result<Graph, String>>,
}

impl RdfSyntaxFix {
    pub(super) fn evaluate(&self, answer: &str, effort: &Effort) -> Verdict {
        let reading = self.read(answer, effort);
        let document = reading.document;
        let syntax_error = reading.parsed.as_ref().and_then(|parsed| parsed.as_ref().err());

        let compared = self.is_compared(document, effort);
        let (raw, str_similarity) =
            if reading.blocks > 0 && compared { self.similarity(document) } else { (0.0, 0.0) };
        let content =
            reading.parsed.as_ref().and_then(|parsed| parsed.as_ref().ok()).map(|graph| {
                Overlap::of(&normal_lines(graph, NormalForm::RdfSyntaxFix), &self.expected.content)
            });
        let content_f1 = content.map_or(0.0, |content| content.f1);
        let parsable = u8::from(content.is_some());
        let (block_len, answer_len) = (chars(reading.whole), chars(strip(answer)));

        let mut scores = Scores::new();
        scores.insert("brevity".into(), (block_len as f64 / answer_len.max(1) as f64).into());
        scores.insert("strSimilarity".into(), str_similarity.into());
        scores.insert("parsableSyntax".into(), parsable.into());
        let combined = 0.1 * str_similarity + 0.2 * f64::from(parsable) + 0.7 * content_f1;
        scores.insert("combined".into(), combined.into());
        if let Some(content) = content {
            scores.insert("contentPrecision".into(), content.precision.into());
            scores.insert("contentRecall".into(), content.recall.into());
            scores.insert("contentF1".into(), content.f1.into());
        }

        let mut infos = Infos::new();
        infos.insert("taskUid".into(), self.uid.as_str().into());
        infos.insert("codeBlockCount".into(), reading.blocks.into());
        infos.insert("rdfString".into(), document.into());
        infos.insert("rdfStringLenDiff".into(), difference(chars(document), self.expected.chars).into());
        let line_difference = if compared { self.line_difference(document) } else { String::new() };
        infos.insert("rdfStringDiff".into(), line_difference.into());
        infos.insert("brevityLenDiff".into(), difference(answer_len, block_len).into());
        infos.insert("diffRatioQuestion".into(), self.expected.question_ratio.into());
        infos.insert("diffRatioRaw".into(), raw.into());
        infos.insert("syntaxError".into(), syntax_error.map(String::as_str).into());

        let follow_up = match syntax_error {
            // Name the limit that was hit, even if because of it the blocks were not counted.
            Some(message) if reading.blocks <= 1 => Some(syntax(message)),
            _ if reading.blocks != 1 => Some(plain(PromptKind::Structure)),
            _ if content_f1 < 1.0 => Some(plain(PromptKind::Content)),
            _ if str_similarity < 1.0 => Some(plain(PromptKind::Formatting)),
            _ => None,
        };
        Verdict { scores, infos, follow_up, unscored: None }
    }

    fn read<'a>(&self, answer: &'a str, effort: &Effort) -> ReadAnswer<'a> {
        if answer.len() > effort.limits.answer_bytes_max {
            let parsed = Some(Err(Limit::Size.message().to_owned()));
            return ReadAnswer { blocks: 0, whole: "", document: "", parsed };
        }
        let blocks = fenced_blocks(answer);
        match first_document(&blocks) {
            None => ReadAnswer { blocks: 0, whole: "", document: "", parsed: None },
            Some((whole, document)) => {
                let parsed = Some(self.parse(document, effort));
                ReadAnswer { blocks: blocks.len(), whole, document, parsed }
            }
        }
    }

    /// The expected document, and that of an answer.
    pub(super) fn compared_document(&self, answer: &str, effort: &Effort) -> ComparedPart {
        let too_long = answer.len() > effort.limits.answer_bytes_max;
        let blocks = if too_long { Vec::new() } else { fenced_blocks(answer) };
        let document = first_document(&blocks).and_then(|(_, document)| text_of(document));
        ComparedPart::new("document", Some(self.expected.text.clone()), document).by_line()
    }

    pub(super) fn parse(&self, document: &str, effort: &Effort) -> Result<Graph, String> {
        if let EvaluationStage::WithoutParsing(limit) = effort.stage {
            return Err(limit.message().to_owned());
        }
        if bracket_depth(document) > effort.limits.nesting_max {
            return Err(Limit::Nesting.message().to_owned());
        }
        let parsed = if self.as_rdflib {
            Graph::parse_as_rdflib(document, self.format)
        } else {
            Graph::parse(document, self.format, None)
        };
        parsed.map_err(|error| match error.limit {
            None => error.to_string(),
            Some(finding) => Limit::from(&finding).message().to_owned(),
        })
    }

    /// Whether the text is compared. The last stage must end whatever the document is.
    fn is_compared(&self, document: &str, effort: &Effort) -> bool {
        !matches!(effort.stage, EvaluationStage::WithoutParsing(_))
            || document.len() <= COMPARED_FACTOR * self.expected.text.len()
    }

    /// The similarity with the expected document, plain and on the scale of the case.
    fn similarity(&self, document: &str) -> (f64, f64) {
        let raw = ratio(document, &self.expected.text);
        (raw, similarity::rescaled(raw, self.expected.question_ratio))
    }

    /// The difference from the expected document, for people who read the record.
    fn line_difference(&self, document: &str) -> String {
        let expected: Vec<&str> = self.expected.lines.iter().map(String::as_str).collect();
        unified_diff(&expected, &splitlines(document))
    }
}

/// The first block with its fences, and its trimmed body.
fn first_document<'a>(blocks: &[FencedBlock<'a>]) -> Option<(&'a str, &'a str)> {
    blocks.first().map(|&FencedBlock { whole, body, .. }| (whole, strip(body)))
}

/// Lengths are counted in code points, as Python counts them.
fn chars(text: &str) -> usize {
    text.chars().count()
}

fn difference(length: usize, other: usize) -> i64 {
    length as i64 - other as i64
}

fn syntax(message: &str) -> FollowUp {
    FollowUp { kind: PromptKind::Syntax, fields: Fields::from([("message".to_owned(), message.to_owned())]) }
}

fn plain(kind: PromptKind) -> FollowUp {
    FollowUp { kind, fields: Fields::default() }
}
