//! Reads the checks of a task: what they compare, and where what they expect comes from. No answer is judged here;
//! `families::declared` of the crate `tasks` does that.

use std::ops::Range;

use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error as WordError, StrDeserializer};
use serde_json::Value;
use tasks::families::declared::pattern;
use tasks::families::declared::spec::{AnswerRule, Assertion, CheckRule, CheckSpec};

use crate::task_files::context::FileContext;
use crate::task_files::mistake::MistakeList;
use crate::task_files::schema;
use crate::task_files::table::{FileSection, Placed};

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
    /// The graphs that shapes must tell apart.
    Telling(TellingFields<'a>),
}

/// The fields of a case with the graphs that shapes must tell apart.
pub(crate) struct TellingFields<'a> {
    pub(crate) accept: &'a str,
    pub(crate) reject: &'a str,
    pub(crate) focus: Option<&'a str>,
    /// Shapes that are right.
    pub(crate) reference: &'a str,
}

impl ExpectedSource<'_> {
    /// The field of a case that holds it, or that an answer of full score does.
    pub(crate) fn field(&self) -> Option<&str> {
        match self {
            Self::Field(field) | Self::QueryField(field) => Some(field),
            Self::Telling(fields) => Some(fields.reference),
            Self::Text(_) | Self::Query(_) => None,
        }
    }

    /// All fields that give the answer away.
    pub(crate) fn fields(&self) -> Vec<&str> {
        match self {
            Self::Telling(fields) => {
                [Some(fields.reference), Some(fields.accept), Some(fields.reject), fields.focus]
                    .into_iter()
                    .flatten()
                    .collect()
            }
            _ => self.field().into_iter().collect(),
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
    let own = ["score", "readable", "mean", "max", "last", "file"].contains(&name)
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
    let keys = &schema::of_task()["properties"]["check"]["items"]["properties"];
    let Some(kind) = section.text("kind") else {
        let kinds = keys["kind"]["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let kinds = kinds.collect::<Vec<_>>().join(", ");
        mistakes.at(&section.place, format!("the check has no `kind`: {kinds}"));
        return None;
    };
    let own = own_keys(kind.value);
    for (key, _) in keys.as_object().into_iter().flatten().filter(|(key, _)| section.has(key)) {
        if !own.contains(&key.as_str()) && !KEYS_OF_ALL.contains(&key.as_str()) {
            let has = if own.is_empty() {
                "has none of its own".to_owned()
            } else {
                format!("has: {}", own.join(", "))
            };
            mistakes
                .at(&section.place_of(key), format!("`{key}` is no key of `{}`, which {has}", kind.value));
        }
    }
    let rule = rule(section, &kind, context)?;
    if !rule.reads(answer.read_as) {
        let reading = serde_json::to_value(answer.read_as).ok();
        let reading = reading.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
        let message = format!("the check `{}` cannot judge answers that are read as `{reading}`", kind.value);
        mistakes.at(&kind.place, format!("{message}: say what it reads in `answer.as`"));
    }
    let gate = section.flag("gate");
    let source = match &rule {
        CheckRule::Shapes => Some(ExpectedSource::Telling(telling_fields(section))),
        CheckRule::Conforms { shapes: None, .. } => {
            section.text("shapes_field").map(|field| ExpectedSource::Field(field.value))
        }
        _ => source(section, context),
    };
    match (&source, rule.expects()) {
        (None, true) if matches!(rule, CheckRule::Conforms { .. }) => {
            mistakes
                .at(&section.place, "the check `conforms` needs one of: shapes, shapes_file, shapes_field");
        }
        (None, true) => mistakes.at(&section.place, format!("the check `{}` needs `expect`", kind.value)),
        (Some(_), false) => mistakes
            .at(&section.place_of("expect"), format!("`{}` expects nothing but its own keys", kind.value)),
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

/// The keys that checks of every kind have.
const KEYS_OF_ALL: [&str; 6] = ["kind", "name", "weight", "gate", "empty_ok", "expect"];

/// The keys that only this kind of check has.
fn own_keys(kind: &str) -> &'static [&'static str] {
    match kind {
        "pattern" => &["matches"],
        "number" => &["within", "relative"],
        "choice" => &["choices"],
        "list" => &["items", "ordered", "partial"],
        "rows" => &["compare"],
        "schema" => &["schema", "schema_file"],
        "graph" => &["literals", "blank", "ignore"],
        "assert" => &["ask", "with_graph"],
        "conforms" => &["shapes", "shapes_file", "shapes_field", "by"],
        "shapes" => &["accept", "reject", "focus", "reference"],
        _ => &[],
    }
}

fn telling_fields<'a>(section: &FileSection<'a>) -> TellingFields<'a> {
    let field = |key: &str| section.text(key).map(|field| field.value);
    TellingFields {
        accept: field("accept").unwrap_or("accept"),
        reject: field("reject").unwrap_or("reject"),
        focus: field("focus"),
        reference: field("reference").unwrap_or("shapes"),
    }
}

/// The text of a key, or of the file that its twin names.
pub(crate) fn text_or_file(
    section: &FileSection<'_>,
    key: &str,
    context: &FileContext<'_>,
) -> Option<Placed<String>> {
    if let Some(text) = section.text(key) {
        return Some(Placed { value: text.value.to_owned(), place: text.place });
    }
    let file = section.text(&format!("{key}_file"))?;
    Some(Placed { value: context.read(&file)?, place: file.place })
}

/// The queries of an `assert`, with names that can be parts of scores.
fn assertions(section: &FileSection<'_>, mistakes: &MistakeList<'_>) -> Vec<Assertion> {
    let mut ask = Vec::new();
    for (name, query) in section.texts_by_name("ask") {
        let good = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if name.is_empty() || name.len() > 60 || !name.chars().all(good) {
            let message = format!("the name `{name}` of a query may have 1 to 60 letters, digits and `-`");
            mistakes.at(&query.place, message);
        }
        ask.push(Assertion { name: name.to_owned(), query: query.value.to_owned() });
    }
    if ask.is_empty() {
        mistakes.at(&section.place, "the check `assert` needs queries: `ask.NAME = \"ASK { ... }\"`");
    }
    ask
}

/// Properties in full.
fn properties(section: &FileSection<'_>, context: &FileContext<'_>) -> Vec<String> {
    let full = |name: &str| {
        let known =
            name.split_once(':').and_then(|(prefix, local)| Some((context.prefixes.get(prefix)?, local)));
        known.map_or_else(
            || name.trim_matches(['<', '>']).to_owned(),
            |(namespace, local)| format!("{namespace}{local}"),
        )
    };
    section.texts("ignore").into_iter().map(|name| full(name.value)).collect()
}

fn rule(section: &FileSection<'_>, kind: &Placed<&str>, context: &FileContext<'_>) -> Option<CheckRule> {
    let mistakes = context.mistakes;
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
        "schema" => {
            let Some(schema) = text_or_file(section, "schema", context) else {
                mistakes.at(&section.place, "the check `schema` needs one of: schema, schema_file");
                return None;
            };
            CheckRule::Schema { schema: schema.value }
        }
        "graph" => CheckRule::Graph {
            literals: section.text("literals").and_then(|text| word(text.value)).unwrap_or_default(),
            blank: section.text("blank").and_then(|text| word(text.value)).unwrap_or_default(),
            ignore: properties(section, context),
        },
        "assert" => {
            CheckRule::Assert { ask: assertions(section, mistakes), with_graph: section.flag("with_graph") }
        }
        "conforms" => CheckRule::Conforms {
            shapes: text_or_file(section, "shapes", context).map(|shapes| shapes.value),
            by: section.text("by").and_then(|by| word(by.value)).unwrap_or_default(),
        },
        "shapes" => CheckRule::Shapes,
        "similar" => CheckRule::Similar,
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
    text("field")
        .map(ExpectedSource::Field)
        .or_else(|| text("text").map(|text| ExpectedSource::Text(text.to_owned())))
        .or_else(|| text("query").map(ExpectedSource::Query))
        .or_else(|| text("query_field").map(ExpectedSource::QueryField))
        .or_else(|| context.read(&expect.text("file")?).map(ExpectedSource::Text))
}
