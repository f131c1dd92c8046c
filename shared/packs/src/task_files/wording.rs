//! The texts of a task: its prompts and follow-ups. Prompts are filled for each case when the file is compiled; follow-ups are
//! filled when they are sent, because they tell what was found in an answer.

use std::collections::HashSet;
use std::ops::Range;
use std::rc::Rc;

use domain::PromptKind;
use serde_json::{Map, Value};
use tasks::{Template, Wording};

use crate::task_files::cases::DeclaredRow;
use crate::task_files::check::{DeclaredCheck, text_or_file};
use crate::task_files::context::FileContext;
use crate::task_files::graphs::FileGraph;
use crate::task_files::mistake::MistakeList;
use crate::task_files::prompts::{self, PromptInput};
use crate::task_files::shown::{self, ShownRule};
use crate::task_files::table::{FileSection, Placed};

/// Words of follow-ups that a file does not word itself.
const STRUCTURE: &str = "{{finding.message}} Please answer again, in the form that was asked for.";
const SYNTAX: &str =
    "Your answer cannot be read: {{finding.message}} Please send the whole answer again, corrected.";
const EMPTY_RESULT: &str = "Your answer leads to an empty result, and something is expected. Please send the whole answer again, \
     corrected.";

/// The names of what is no prompt of the task: the document around the part of an answer that counts, and the question to a
/// judge.
pub(crate) const WRAP: &str = "wrap";
pub(crate) const JUDGE: &str = "judge";

/// The name of the answer in both.
const ANSWER: &str = "answer";

/// All fields of the case, beside the answer: one of them may have its name.
const CASE: &str = "case";

/// The name of the examples.
const SHOTS: &str = "shots";

/// Names beside the fields of a case.
const KNOWN: [&str; 3] = ["id", "range", SHOTS];

/// Sent only where a file words it, so that nobody counts on rounds that it does not mean.
const CONTENT: &str = "{{finding.message}} Please send the whole answer again.";

/// A template with the name under which a case keeps what it becomes.
pub(crate) struct NamedTemplate {
    name: &'static str,
    text: String,
    place: Range<usize>,
}

impl NamedTemplate {
    /// Whether it is no prompt of the task, and the answer stands in it.
    fn holds_answer(&self) -> bool {
        [WRAP, JUDGE].contains(&self.name)
    }
}

pub(crate) fn templates(task: &FileSection<'_>, context: &FileContext<'_>) -> Vec<NamedTemplate> {
    let mut found = Vec::new();
    for (name, in_file) in [("prompt", "prompt_file"), ("system", "system_file")] {
        // A file goes before the text of a preset.
        let template = match task.text(in_file).filter(|_| task.has(in_file)) {
            Some(file) => context.read(&file).map(|text| (text, file.place)),
            None => task.text(name).map(|text| (text.value.to_owned(), text.place)),
        };
        if let Some((text, place)) = template {
            found.push(NamedTemplate { name, text, place });
        } else if name == "prompt" && !task.has(in_file) {
            context.mistakes.at(&task.place, "the task has no `prompt`");
        }
    }
    let around = |section, name, key| around_answer(&task.section(section)?, name, key, context);
    found.extend(around("answer", WRAP, "wrap"));
    found.extend(around("judge", JUDGE, "question"));
    found
}

/// The template of a key, or of the file that its twin names, in which the answer stands.
fn around_answer(
    section: &FileSection<'_>,
    name: &'static str,
    key: &str,
    context: &FileContext<'_>,
) -> Option<NamedTemplate> {
    let Placed { value: text, place } = text_or_file(section, key, context)?;
    if prompts::names_of(&text).is_ok_and(|names| !names.iter().any(|name| name == ANSWER)) {
        context
            .mistakes
            .at(&place, format!("`{key}` does not say where the answer stands: `{{{{ answer }}}}`"));
    }
    Some(NamedTemplate { name, text, place })
}

pub(crate) fn check_names(
    template: &NamedTemplate,
    rows: &[DeclaredRow],
    hidden: &HashSet<&str>,
    checks: &[DeclaredCheck<'_>],
    mistakes: &MistakeList<'_>,
) {
    let names = match prompts::names_of(&template.text) {
        Ok(names) => names,
        Err(message) => return mistakes.at(&template.place, format!("`{}` {message}", template.name)),
    };
    let Some(first) = rows.first() else { return };
    let stands = prompts::uses_of(ANSWER, &template.text);
    if template.name == JUDGE && stands > 1 && first.fields.contains_key(ANSWER) {
        let message = format!(
            "`{{{{ answer }}}}` stands for what the model answered, {stands} times here; the field of that name is \
             `{{{{ case.answer }}}}`"
        );
        mistakes.at(&template.place, message);
    }
    let fields: Vec<String> = first.fields.keys().cloned().collect();
    for name in names {
        if template.holds_answer() {
            // No model under test sees it, so it may have what checks expect.
            if ![ANSWER, CASE].contains(&name.as_str())
                && !rows.iter().any(|row| row.fields.contains_key(&name))
            {
                mistakes.at(&template.place, prompts::unknown_name(&name, &fields));
            }
        } else if hidden.contains(name.as_str()) {
            let by = checks.iter().find(|check| {
                check.source.as_ref().is_some_and(|source| source.fields().contains(&name.as_str()))
            });
            let by = by.map_or("", |check| check.spec.name.as_str());
            mistakes.at(
                &template.place,
                format!(
                    "the {} shows `{name}`, which `{by}` expects: it gives the answer away. If that is meant: \
                     `reveal = [\"{name}\"]`",
                    template.name
                ),
            );
        } else if !rows.iter().any(|row| row.fields.contains_key(&name)) && !KNOWN.contains(&name.as_str()) {
            mistakes.at(&template.place, prompts::unknown_name(&name, &fields));
        }
    }
}

/// What the prompts of a task are made of, beside the fields of a case.
pub(crate) struct PromptMaterial<'a> {
    /// Fields that give the answer away.
    pub(crate) hidden: &'a HashSet<&'a str>,
    pub(crate) shown: &'a ShownRule,
    /// Examples.
    pub(crate) shots: &'a [Value],
}

pub(crate) fn prompts_of(
    row: &DeclaredRow,
    templates: &[NamedTemplate],
    material: &PromptMaterial<'_>,
    graph: Option<&FileGraph>,
    context: &FileContext<'_>,
) -> Map<String, Value> {
    let hidden = material.hidden;
    let mut fields = row.fields.clone();
    fields.retain(|name, _| !hidden.contains(name.as_str()));
    fields.insert("id".to_owned(), row.id.as_str().into());
    if !material.shots.is_empty() {
        fields.insert(SHOTS.to_owned(), material.shots.into());
    }
    let prefixes = graph.map_or(context.prefixes, |graph| &graph.prefixes);
    let shown: Rc<str> = match graph.map(|graph| material.shown.text(graph, row)) {
        None => "".into(),
        Some(Ok(shown)) => shown,
        Some(Err(message)) => {
            context.mistakes.at(&row.place, format!("case `{}`: {message}", row.id));
            return Map::new();
        }
    };
    let schema = || graph.map_or_else(String::new, |graph| shown::schema(graph.graph(), &graph.prefixes));
    let mut around_answer = row.fields.clone();
    around_answer.entry(CASE).or_insert_with(|| row.fields.clone().into());
    around_answer.insert(ANSWER.to_owned(), "{{answer}}".into());
    let mut filled = Map::new();
    for template in templates {
        let fields = if template.holds_answer() { &around_answer } else { &fields };
        let input = PromptInput { fields, graph: Rc::clone(&shown), schema: &schema, prefixes };
        match prompts::fill(&template.text, &input) {
            Ok(text) => {
                filled.insert(template.name.to_owned(), text.into());
            }
            Err(message) => {
                context
                    .mistakes
                    .at(&template.place, format!("the {} of case `{}` {message}", template.name, row.id));
            }
        }
    }
    filled
}

/// The templates of a task. The words of follow-ups are filled when they are sent, with what was found.
pub(crate) fn wording(task: &FileSection<'_>, rounds: usize, mistakes: &MistakeList<'_>) -> Wording {
    let mut wording = Wording::default();
    wording.insert(PromptKind::First, Template::new("{{prompt}}"));
    if task.text("system").is_some() || task.text("system_file").is_some() {
        wording.insert(PromptKind::System, Template::new("{{system}}"));
    }
    if rounds > 1 {
        let follow_up = task.section("follow_up");
        let said = |key: &str| follow_up.as_ref().and_then(|follow_up| follow_up.text(key));
        for (kind, key, usual) in [
            (PromptKind::Structure, "structure", STRUCTURE),
            (PromptKind::Syntax, "syntax", SYNTAX),
            (PromptKind::EmptyResult, "empty-result", EMPTY_RESULT),
            (PromptKind::Content, "content", CONTENT),
        ] {
            let said = said(key);
            let template = Template::new(said.as_ref().map_or(usual, |said| said.value));
            let known = |name: &str| ["finding.message", "answer"].contains(&name).then_some("");
            if let (Err(error), Some(said)) = (template.fill(known), said) {
                let names = "it may have {{finding.message}} and {{answer}}";
                mistakes.at(&said.place, format!("the follow-up `{key}`: {error}; {names}"));
            }
            wording.insert(kind, template);
        }
    }
    wording
}
