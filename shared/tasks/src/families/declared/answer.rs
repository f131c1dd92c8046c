//! Finds the part of an answer that counts, and reads it by the rule of its task. What a model wrote is never an error of the
//! program: an answer that cannot be read becomes an [`UnreadableAnswer`], which scores 0 and says what to mend.

use rdf::shacl::ShaclShapes;
use rdf::{Dialect, Graph, PrefixTable, PreparedQuery, SyntaxError};
use serde_json::Value;

use domain::PromptKind;

use super::shapes_text::shapes_of;
use super::spec::{AnswerPart, AnswerReading, AnswerRule};
use super::words;
use crate::exercise::{Effort, EvaluationStage, Limit};
use crate::families::brackets::{bracket_depth, check_query};
use crate::text::fences::{FencedBlock, fenced_blocks};
use crate::text::python::strip;

/// An answer that can be read.
#[derive(Debug)]
pub(super) enum ReadAnswer {
    Text(String),
    Number(f64),
    List(Vec<String>),
    Json(Value),
    Query(PreparedQuery),
    Graph(Graph),
    Shapes(ShaclShapes),
}

/// Why an answer cannot be read.
#[derive(Debug, PartialEq)]
pub(super) struct UnreadableAnswer {
    /// `structure` if the part that counts is not there, `syntax` if it is not what it is to be read as.
    pub(super) kind: PromptKind,
    pub(super) message: String,
    /// The part that was found.
    pub(super) part: Option<String>,
}

/// The part of an answer that counts.
fn part<'a>(answer: &'a str, rule: &AnswerRule) -> Result<&'a str, String> {
    let answer = match &rule.after {
        None => answer,
        Some(marker) => match answer.rfind(marker.as_str()) {
            Some(at) => &answer[at + marker.len()..],
            None => return Err(format!("The answer has no `{marker}`.")),
        },
    };
    match rule.take {
        AnswerPart::Text => Ok(strip(answer)),
        AnswerPart::Line => answer
            .lines()
            .map(strip)
            .find(|line| !line.is_empty())
            .ok_or_else(|| "The answer is empty.".to_owned()),
        AnswerPart::Json => json_part(answer),
        AnswerPart::Block | AnswerPart::LastBlock => {
            let blocks = fenced_blocks(answer);
            let mut fitting: Vec<&FencedBlock<'_>> =
                blocks.iter().filter(|block| fits(block, rule)).collect();
            if rule.one && fitting.len() > 1 {
                return Err(format!("The answer has {} code blocks; one is expected.", fitting.len()));
            }
            if rule.take == AnswerPart::LastBlock {
                fitting.reverse();
            }
            let found = fitting.first().map(|block| strip(block.body));
            found.ok_or_else(|| match blocks.len() {
                0 => "The answer has no fenced code block.".to_owned(),
                _ => "No fenced code block of the answer is of the expected kind.".to_owned(),
            })
        }
    }
}

fn fits(block: &FencedBlock<'_>, rule: &AnswerRule) -> bool {
    let label = strip(block.label);
    let of_language = || rule.language.iter().any(|language| language.eq_ignore_ascii_case(label));
    let words = || block.body.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let has_word =
        || words().any(|word| rule.containing.iter().any(|wanted| wanted.eq_ignore_ascii_case(word)));
    (rule.language.is_empty() || of_language()) && (rule.containing.is_empty() || has_word())
}

/// The first fenced block that holds JSON, or else the text from the first bracket on.
fn json_part(answer: &str) -> Result<&str, String> {
    let blocks = fenced_blocks(answer);
    let of_block = blocks.iter().map(|block| strip(block.body)).find(|body| body.starts_with(['{', '[']));
    let text = of_block.or_else(|| answer.find(['{', '[']).map(|at| &answer[at..]));
    text.ok_or_else(|| "The answer has no JSON list or object.".to_owned())
}

/// What stands for the part that counts in the document around it.
const WRAPPED: &str = "{{answer}}";

/// What an answer is read with: the document of its case that stands around the part that counts, if there is one, and the
/// prefixes that it may use undeclared.
#[derive(Clone, Copy)]
pub(super) struct ReadingAids<'a> {
    pub(super) wrap: Option<&'a str>,
    pub(super) prefixes: &'a PrefixTable,
}

/// Reads an answer by the rule of its task. The infos get the part that counts.
pub(super) fn read(
    answer: &str,
    rule: &AnswerRule,
    aids: ReadingAids<'_>,
    effort: &Effort,
) -> Result<(ReadAnswer, String), UnreadableAnswer> {
    let refused = |kind, message: &str, part: Option<&str>| UnreadableAnswer {
        kind,
        message: message.to_owned(),
        part: part.map(str::to_owned),
    };
    if answer.len() > effort.limits.answer_bytes_max {
        return Err(refused(PromptKind::Syntax, Limit::Size.message(), None));
    }
    let part = part(answer, rule).map_err(|message| refused(PromptKind::Structure, &message, None))?;
    if let EvaluationStage::WithoutParsing(limit) = effort.stage {
        return Err(refused(PromptKind::Syntax, limit.message(), Some(part)));
    }
    let syntax = |message: String| refused(PromptKind::Syntax, &message, Some(part));
    let structure = |message: &str| refused(PromptKind::Structure, message, Some(part));
    let read = match rule.read_as {
        AnswerReading::Text if part.chars().any(char::is_alphanumeric) => ReadAnswer::Text(part.to_owned()),
        AnswerReading::Text => return Err(structure("The answer has no text.")),
        AnswerReading::Number => match words::numbers(part).as_slice() {
            [number] => ReadAnswer::Number(*number),
            [] => return Err(structure("The answer has no number.")),
            several => {
                return Err(structure(&format!(
                    "The answer has {} numbers; one is expected.",
                    several.len()
                )));
            }
        },
        AnswerReading::List => match list(part) {
            Some(items) => ReadAnswer::List(items),
            None => return Err(structure("The answer has no text.")),
        },
        AnswerReading::Json => {
            // What follows the value is prose.
            let mut values = serde_json::Deserializer::from_str(part).into_iter::<Value>();
            match values.next() {
                Some(Ok(value)) => ReadAnswer::Json(value),
                Some(Err(error)) => return Err(syntax(format!("The JSON cannot be read: {error}"))),
                None => return Err(structure("The answer has no JSON.")),
            }
        }
        AnswerReading::Sparql => {
            check_query(part, &effort.limits).map_err(|limit| syntax(limit.message().to_owned()))?;
            let query = rdf::prepare(part, aids.prefixes, Dialect::Standard).map_err(|error| {
                syntax(match &error.limit {
                    Some(finding) => Limit::from(finding).message().to_owned(),
                    None => error.message,
                })
            })?;
            ReadAnswer::Query(query)
        }
        AnswerReading::Shapes => {
            if bracket_depth(part) > effort.limits.nesting_max {
                return Err(syntax(Limit::Nesting.message().to_owned()));
            }
            ReadAnswer::Shapes(shapes_of(part, aids.prefixes).map_err(syntax)?)
        }
        AnswerReading::Turtle | AnswerReading::JsonLd | AnswerReading::Xml | AnswerReading::Nt => {
            ReadAnswer::Graph(graph(part, rule.read_as, aids, effort).map_err(syntax)?)
        }
    };
    Ok((read, part.to_owned()))
}

/// The graph of a part, within the document around it.
fn graph(
    part: &str,
    reading: AnswerReading,
    aids: ReadingAids<'_>,
    effort: &Effort,
) -> Result<Graph, String> {
    let wrapped = match aids.wrap {
        // A part that is JSON of its own cannot end what stands around it.
        Some(_) if reading == AnswerReading::JsonLd && !part.is_empty() => {
            let value: Value = serde_json::from_str(part).map_err(|error| error.to_string())?;
            Some(value.to_string())
        }
        Some(_) => Some(part.to_owned()),
        None => None,
    };
    let document = match (aids.wrap, &wrapped) {
        (Some(around), Some(inner)) => around.replacen(WRAPPED, inner, 1),
        _ => part.to_owned(),
    };
    if bracket_depth(&document) > effort.limits.nesting_max {
        return Err(Limit::Nesting.message().to_owned());
    }
    let told = |error: SyntaxError| match &error.limit {
        Some(finding) => Limit::from(finding).message().to_owned(),
        None => error.to_string(),
    };
    match reading.rdf_format() {
        None | Some(rdf::RdfFormat::Turtle) => {
            Graph::parse_turtle_with(&document, aids.prefixes).map_err(told)
        }
        Some(format) => Graph::parse(&document, format, None).map_err(told),
    }
}

/// The items of a list: a JSON list, or one a line. `none` alone is an empty list; `None` if there is no text at all.
fn list(text: &str) -> Option<Vec<String>> {
    if text.starts_with('[')
        && let Ok(Value::Array(items)) = serde_json::from_str(text)
    {
        return Some(items.iter().map(words::item_text).collect());
    }
    let lines = text.lines().map(words::unmarked);
    let items: Vec<String> =
        lines.filter(|line| line.chars().any(char::is_alphanumeric)).map(str::to_owned).collect();
    match items.as_slice() {
        [] => None,
        [only] if words::plain(only) == "none" => Some(Vec::new()),
        _ => Some(items),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exercise::EvaluationLimits;

    fn rule(take: AnswerPart, read_as: AnswerReading) -> AnswerRule {
        AnswerRule { take, read_as, ..AnswerRule::default() }
    }

    fn read_by(rule: &AnswerRule, answer: &str) -> Result<(ReadAnswer, String), UnreadableAnswer> {
        let aids = ReadingAids { wrap: None, prefixes: &PrefixTable::new() };
        read(answer, rule, aids, &Effort::full(EvaluationLimits::default()))
    }

    #[test]
    fn the_block_of_the_right_language_with_the_right_word_counts() {
        let answer = "```turtle\n<a> <b> <c> .\n```\n```sparql\nSELECT * {}\n```\n```\nASK {}\n```";
        let mut rule = AnswerRule {
            language: vec!["sparql".into(), String::new()],
            containing: vec!["select".into(), "ask".into()],
            ..rule(AnswerPart::Block, AnswerReading::Sparql)
        };
        assert_eq!(read_by(&rule, answer).unwrap().1, "SELECT * {}");
        rule.take = AnswerPart::LastBlock;
        assert_eq!(read_by(&rule, answer).unwrap().1, "ASK {}");
        rule.one = true;
        let several = read_by(&rule, answer).unwrap_err();
        assert_eq!((several.kind, several.message.contains('2')), (PromptKind::Structure, true));
        assert_eq!(read_by(&rule, "SELECT * {}").unwrap_err().kind, PromptKind::Structure);
        let broken = read_by(&rule, "```\nSELECT * {\n```").unwrap_err();
        assert_eq!((broken.kind, broken.part.as_deref()), (PromptKind::Syntax, Some("SELECT * {")));
    }

    #[test]
    fn only_what_follows_the_last_marker_counts() {
        let rule =
            AnswerRule { after: Some("ANSWER:".into()), ..rule(AnswerPart::Line, AnswerReading::Text) };
        assert_eq!(read_by(&rule, "ANSWER: no\nwait\nANSWER:\n\n yes \nbye").unwrap().1, "yes");
        assert_eq!(read_by(&rule, "yes").unwrap_err().kind, PromptKind::Structure);
    }

    #[test]
    fn lists_are_lines_or_json_and_none_is_empty() {
        assert_eq!(list("- a\n\n* `b`\n3. c,"), Some(vec!["a".into(), "b".into(), "c".into()]));
        assert_eq!(list("[\"a\", 2]"), Some(vec!["a".into(), "2".into()]));
        assert_eq!((list("None."), list("[]"), list("---")), (Some(vec![]), Some(vec![]), None));
    }

    #[test]
    fn hostile_texts_are_unreadable_and_name_their_limit() {
        let effort = |stage| Effort {
            limits: EvaluationLimits { answer_bytes_max: 100, ..EvaluationLimits::default() },
            stage,
        };
        let text = rule(AnswerPart::Text, AnswerReading::Text);
        let prefixes = PrefixTable::new();
        let aids = ReadingAids { wrap: None, prefixes: &prefixes };
        let long = read(&"x".repeat(101), &text, aids, &effort(EvaluationStage::Full));
        assert_eq!(long.unwrap_err().message, Limit::Size.message());
        let stage = EvaluationStage::WithoutParsing(Limit::Memory);
        let unparsed = read("x", &text, aids, &effort(stage));
        assert_eq!(unparsed.unwrap_err().message, Limit::Memory.message());
        let deep = "[".repeat(100_000);
        assert_eq!(
            read_by(&rule(AnswerPart::Json, AnswerReading::Json), &deep).unwrap_err().kind,
            PromptKind::Syntax
        );
        let deep = format!("SELECT * {}{}", "{".repeat(100_000), "}".repeat(100_000));
        let deep = read_by(&rule(AnswerPart::Text, AnswerReading::Sparql), &deep).unwrap_err();
        assert_eq!(deep.message, Limit::Nesting.message());
    }
}
