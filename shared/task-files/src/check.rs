//! Reads the checks of a task: what they compare, and where what they expect comes from. No answer is judged here;
//! `families::declared` of the crate `tasks` does that.

use std::ops::Range;

use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error as WordError, StrDeserializer};
use serde_json::Value;
use tasks::families::declared::pattern;
use tasks::families::declared::spec::{AnswerRule, CheckRule, CheckSpec};

use crate::context::FileContext;
use crate::keys;
use crate::mistake::MistakeList;
use crate::table::{FileSection, Placed};

/// A check with what the file says it expects.
pub(crate) struct DeclaredCheck<'a> {
    pub(crate) spec: CheckSpec,
    pub(crate) source: Option<ExpectedSource<'a>>,
    pub(crate) place: Range<usize>,
}

/// Where the expected value of a check comes from.
pub(crate) enum ExpectedSource<'a> {
    Field(&'a str),
    Text(String),
    Query(&'a str),
    QueryField(&'a str),
}

impl ExpectedSource<'_> {
    /// The field of a case that holds it.
    pub(crate) fn field(&self) -> Option<&str> {
        match self {
            Self::Field(field) | Self::QueryField(field) => Some(field),
            Self::Text(_) | Self::Query(_) => None,
        }
    }
}

/// One of the words of a key as the value that it stands for.
pub(crate) fn word<'de, T: Deserialize<'de>>(text: &'de str) -> Option<T> {
    let text: StrDeserializer<'de, WordError> = text.into_deserializer();
    T::deserialize(text).ok()
}

/// The checks of a task; what is wrong with them goes to the list.
pub(crate) fn of_task<'a>(
    task: &FileSection<'a>,
    answer: &AnswerRule,
    context: &FileContext<'_>,
) -> Vec<DeclaredCheck<'a>> {
    let mistakes = context.mistakes;
    let sections = task.sections("check");
    if sections.is_empty() {
        mistakes.at(&task.place, "the task has no check: write `[[task.check]]`, or name a preset in `like`");
    }
    let mut found: Vec<DeclaredCheck<'a>> = Vec::new();
    for section in &sections {
        let Some(check) = check(section, answer, context) else { continue };
        if let Some(problem) = bad_name(&check.spec.name, &found) {
            mistakes.at(&section.place_of("name"), problem);
        }
        found.push(check);
    }
    let weights: f64 = found.iter().map(|check| check.spec.weight).sum();
    if let (true, Some(first)) = (weights <= 0.0, sections.first()) {
        mistakes.at(&first.place, "the weights of the checks add up to 0");
    }
    found
}

/// What is wrong with the name of a check. Names of scores must not meet: a check `a_recall` would be taken for a part of `a`.
fn bad_name(name: &str, earlier: &[DeclaredCheck<'_>]) -> Option<String> {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if name.is_empty() || name.len() > 60 || !name.chars().all(good) {
        return Some(format!("the name `{name}` of a check may have 1 to 60 letters, digits and `-_`"));
    }
    let own = ["score", "readable", "mean", "max", "last"].contains(&name)
        || name.chars().all(|c| c.is_ascii_digit());
    let part = |whole: &str, name: &str| name.strip_prefix(whole).is_some_and(|rest| rest.starts_with('_'));
    let taken = earlier
        .iter()
        .any(|check| check.spec.name == name || part(&check.spec.name, name) || part(name, &check.spec.name));
    (own || taken).then(|| format!("the name `{name}` of a check is taken; give it another `name`"))
}

fn check<'a>(
    section: &FileSection<'a>,
    answer: &AnswerRule,
    context: &FileContext<'_>,
) -> Option<DeclaredCheck<'a>> {
    let mistakes = context.mistakes;
    let Some(kind) = section.text("kind") else {
        mistakes.at(&section.place, format!("the check has no `kind`: {}", keys::KINDS.join(", ")));
        return None;
    };
    let own = keys::of_kind(kind.value);
    for key in keys::CHECK.iter().filter(|key| section.has(key.name)) {
        if !own.contains(&key.name) && !keys::CHECK_OF_ALL.contains(&key.name) {
            let has = if own.is_empty() {
                "has none of its own".to_owned()
            } else {
                format!("has: {}", own.join(", "))
            };
            mistakes.at(
                &section.place_of(key.name),
                format!("`{}` is no key of `{}`, which {has}", key.name, kind.value),
            );
        }
    }
    let rule = rule(section, &kind, mistakes)?;
    if !rule.reads(answer.read_as) {
        let reading = serde_json::to_value(answer.read_as).ok();
        let reading = reading.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
        let message = format!("the check `{}` cannot judge answers that are read as `{reading}`", kind.value);
        mistakes.at(&kind.place, format!("{message}: say what it reads in `answer.as`"));
    }
    let gate = section.flag("gate");
    let source = source(section, context);
    match (&source, rule.expects()) {
        (None, true) => mistakes.at(&section.place, format!("the check `{}` needs `expect`", kind.value)),
        (Some(_), false) => mistakes
            .at(&section.place_of("expect"), format!("`{}` expects nothing but `matches`", kind.value)),
        _ => {}
    }
    let spec = CheckSpec {
        name: section.text("name").map_or(kind.value, |name| name.value).to_owned(),
        weight: section.number("weight").map_or(if gate { 0.0 } else { 1.0 }, |weight| weight.value),
        gate,
        empty_ok: section.flag("empty_ok"),
        rule,
    };
    Some(DeclaredCheck { spec, source, place: section.place.clone() })
}

fn rule(section: &FileSection<'_>, kind: &Placed<&str>, mistakes: &MistakeList<'_>) -> Option<CheckRule> {
    let number = |key: &str| section.number(key).map_or(0.0, |number| number.value);
    Some(match kind.value {
        "exact" => CheckRule::Exact,
        "text" => CheckRule::Text,
        "pattern" => {
            let Some(matches) = section.text("matches") else {
                mistakes.at(&section.place, "the check `pattern` needs `matches`");
                return None;
            };
            if let Err(error) = pattern(matches.value) {
                let message = error.to_string();
                let reason =
                    message.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
                mistakes.at(&matches.place, format!("the regular expression cannot be used: {reason}"));
            }
            CheckRule::Pattern { matches: matches.value.to_owned() }
        }
        "number" => CheckRule::Number { within: number("within"), relative: number("relative") },
        "choice" => {
            let choices: Vec<String> =
                section.texts("choices").into_iter().map(|text| text.value.to_owned()).collect();
            if choices.len() < 2 {
                mistakes.at(&section.place, "the check `choice` needs two `choices` at least");
            }
            CheckRule::Choice { choices }
        }
        "list" => CheckRule::List {
            items: section.text("items").and_then(|items| word(items.value)).unwrap_or_default(),
            ordered: section.flag("ordered"),
            partial: section.flag_or_true("partial"),
        },
        "rows" => CheckRule::Rows {
            compare: section.text("compare").and_then(|compare| word(compare.value)).unwrap_or_default(),
        },
        _ => return None,
    })
}

fn source<'a>(section: &FileSection<'a>, context: &FileContext<'_>) -> Option<ExpectedSource<'a>> {
    let expect = section.section("expect")?;
    let given: Vec<&str> = ["field", "text", "file", "query", "query_field"]
        .into_iter()
        .filter(|key| expect.text(key).is_some())
        .collect();
    if given.len() != 1 {
        let message = "`expect` needs one of: field, text, file, query, query_field";
        context.mistakes.at(&expect.place, message);
        return None;
    }
    let text = |key: &str| expect.text(key).map(|text| text.value);
    let of_file = |file: Placed<&str>| match (context.read_text)(file.value) {
        Ok(text) => Some(ExpectedSource::Text(text)),
        Err(message) => {
            context.mistakes.at(&file.place, message);
            None
        }
    };
    text("field")
        .map(ExpectedSource::Field)
        .or_else(|| text("text").map(|text| ExpectedSource::Text(text.to_owned())))
        .or_else(|| text("query").map(ExpectedSource::Query))
        .or_else(|| text("query_field").map(ExpectedSource::QueryField))
        .or_else(|| of_file(expect.text("file")?))
}
