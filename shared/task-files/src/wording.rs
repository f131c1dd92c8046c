//! The texts of a task: its prompts and follow-ups. Prompts are filled for each case when the file is compiled; follow-ups are
//! filled when they are sent, because they tell what was found in an answer.

use std::collections::HashSet;
use std::ops::Range;

use domain::PromptKind;
use serde_json::{Map, Value};
use tasks::{Template, Wording};

use crate::cases::DeclaredRow;
use crate::check::{DeclaredCheck, ExpectedSource};
use crate::context::FileContext;
use crate::graphs::FileGraph;
use crate::mistake::MistakeList;
use crate::prompts::{self, PromptInput};
use crate::table::FileSection;

/// Words of follow-ups that a file does not word itself.
const STRUCTURE: &str = "{{finding.message}} Please answer again, in the form that was asked for.";
const SYNTAX: &str =
    "Your answer cannot be read: {{finding.message}} Please send the whole answer again, corrected.";
const EMPTY_RESULT: &str = "Your answer leads to an empty result, and something is expected. Please send the whole answer again, \
     corrected.";

/// A template with the name under which a case keeps what it becomes.
pub(crate) struct NamedTemplate {
    name: &'static str,
    text: String,
    place: Range<usize>,
}

pub(crate) fn templates(task: &FileSection<'_>, context: &FileContext<'_>) -> Vec<NamedTemplate> {
    let mut found = Vec::new();
    for (name, in_file) in [("prompt", "prompt_file"), ("system", "system_file")] {
        let template = match (task.text(name), task.text(in_file)) {
            (_, Some(file)) if task.has(in_file) => match (context.read_text)(file.value) {
                Ok(text) => Some((text, file.place)),
                Err(message) => {
                    context.mistakes.at(&file.place, message);
                    None
                }
            },
            (Some(text), _) => Some((text.value.to_owned(), text.place)),
            _ => None,
        };
        if let Some((text, place)) = template {
            found.push(NamedTemplate { name, text, place });
        } else if name == "prompt" && !task.has(in_file) {
            context.mistakes.at(&task.place, "the task has no `prompt`");
        }
    }
    found
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
    let fields: Vec<String> = first.fields.keys().cloned().collect();
    for name in names {
        if hidden.contains(name.as_str()) {
            let by = checks
                .iter()
                .find(|check| check.source.as_ref().and_then(ExpectedSource::field) == Some(&name));
            let by = by.map_or("", |check| check.spec.name.as_str());
            mistakes.at(
                &template.place,
                format!(
                    "the {} shows `{name}`, which `{by}` expects: it gives the answer away. If that is meant: \
                     `reveal = [\"{name}\"]`",
                    template.name
                ),
            );
        } else if !rows.iter().any(|row| row.fields.contains_key(&name)) && name != "id" && name != "range" {
            mistakes.at(&template.place, prompts::unknown_name(&name, &fields));
        }
    }
}

pub(crate) fn prompts_of(
    row: &DeclaredRow,
    templates: &[NamedTemplate],
    hidden: &HashSet<&str>,
    graph: Option<&FileGraph>,
    context: &FileContext<'_>,
) -> Map<String, Value> {
    let mut fields = row.fields.clone();
    fields.retain(|name, _| !hidden.contains(name.as_str()));
    fields.insert("id".to_owned(), row.id.as_str().into());
    let prefixes = graph.map_or(context.prefixes, |graph| &graph.prefixes);
    let shown = graph.map_or_else(|| "".into(), FileGraph::shown);
    let input = PromptInput { fields: &fields, graph: shown, prefixes };
    let mut filled = Map::new();
    for template in templates {
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
