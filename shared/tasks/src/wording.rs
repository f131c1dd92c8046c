//! Prompt texts: templates are data of a pack; the values of their placeholders come from cases and evaluations.

use std::collections::BTreeMap;

use domain::PromptKind;
use serde::{Deserialize, Serialize};

/// Values for placeholders, by name.
pub type Fields = BTreeMap<String, String>;

/// A prompt with placeholders written `{{name}}`. Everything else, including single braces, is literal text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Template(String);

/// A template cannot be filled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A placeholder has no value.
    #[error("no value for the placeholder `{{{{{name}}}}}`")]
    NoValue { name: String },
    /// `{{` without `}}`.
    #[error("a placeholder is opened with `{{{{` and never closed")]
    Unclosed,
    /// The pack has no template for this kind of prompt.
    #[error("the task has no wording for `{0}` prompts")]
    NoTemplate(PromptKind),
}

impl Template {
    /// A template of this text, which is checked when it is filled.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text with placeholders.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The names of its placeholders, in the order of the text.
    ///
    /// # Errors
    /// One is opened and never closed.
    pub fn placeholders(&self) -> Result<Vec<&str>, TemplateError> {
        let opened = self.0.split("{{").skip(1);
        opened.map(|rest| Ok(rest.split_once("}}").ok_or(TemplateError::Unclosed)?.0.trim())).collect()
    }

    /// The text with every placeholder replaced by the `value` of its name. Values are not searched for placeholders.
    pub fn fill<'v>(&self, value: impl Fn(&str) -> Option<&'v str>) -> Result<String, TemplateError> {
        let mut text = String::with_capacity(self.0.len() * 2);
        let mut rest = self.0.as_str();
        while let Some((before, after)) = rest.split_once("{{") {
            let (name, after) = after.split_once("}}").ok_or(TemplateError::Unclosed)?;
            let name = name.trim();
            text.push_str(before);
            text.push_str(value(name).ok_or_else(|| TemplateError::NoValue { name: name.to_owned() })?);
            rest = after;
        }
        text.push_str(rest);
        Ok(text)
    }
}

/// The templates of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Wording {
    templates: BTreeMap<PromptKind, Template>,
}

impl Wording {
    /// Adds or replaces the template of a kind.
    pub fn insert(&mut self, kind: PromptKind, template: Template) {
        self.templates.insert(kind, template);
    }

    /// The template of a kind.
    pub fn get(&self, kind: PromptKind) -> Option<&Template> {
        self.templates.get(&kind)
    }

    /// Its templates, by kind.
    pub fn templates(&self) -> impl Iterator<Item = (PromptKind, &Template)> {
        self.templates.iter().map(|(kind, template)| (*kind, template))
    }

    /// The prompt of a kind.
    pub fn render<'v>(
        &self,
        kind: PromptKind,
        value: impl Fn(&str) -> Option<&'v str>,
    ) -> Result<String, TemplateError> {
        self.get(kind).ok_or(TemplateError::NoTemplate(kind))?.fill(value)
    }
}

/// Number of characters of a recorded prompt that are searched: the request is there, and parser messages and queries,
/// which may contain any word, come later.
const OPENING_CHARS_MAX: usize = 110;

/// Words that only one kind uses, searched in this order.
const FOLLOW_UP_MARKS: &[(&str, PromptKind)] = &[
    ("empty result", PromptKind::EmptyResult),
    ("formatting was", PromptKind::Formatting),
    ("not the expected", PromptKind::Content),
    ("syntax error", PromptKind::Syntax),
    ("code block", PromptKind::Structure),
];

/// The kind of follow-up of a recorded prompt, recognised by its opening words, because result files do not contain it.
/// `None` if the text is not a known follow-up.
pub fn recognise_follow_up(prompt: &str) -> Option<PromptKind> {
    let opening: String = prompt.chars().take(OPENING_CHARS_MAX).collect::<String>().to_lowercase();
    FOLLOW_UP_MARKS.iter().find(|(mark, _)| opening.contains(mark)).map(|(_, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(template: &str) -> Result<String, TemplateError> {
        Template::new(template).fill(|name| match name {
            "query" => Some("SELECT ?s {{ ?s ?p ?o }}"),
            "empty" => Some(""),
            _ => None,
        })
    }

    #[test]
    fn placeholders_are_named_in_order() {
        let named = |text: &str| Template::new(text).placeholders().map(|names| names.join(" "));
        assert_eq!(named("a {b} {{query}}{{ empty }}{{query}}").unwrap(), "query empty query");
        assert_eq!(named("none").unwrap(), "");
        assert_eq!(named("{{open"), Err(TemplateError::Unclosed));
    }

    #[test]
    fn placeholders_are_replaced_and_values_are_left_alone() {
        assert_eq!(
            fill("a {b} {{query}}{{ empty }}!").unwrap(),
            "a {b} SELECT ?s {{ ?s ?p ?o }}!",
            "braces inside a value are not placeholders"
        );
    }

    #[test]
    fn mistakes_in_templates_are_named() {
        assert_eq!(fill("{{nope}}"), Err(TemplateError::NoValue { name: "nope".into() }));
        assert_eq!(fill("{{query"), Err(TemplateError::Unclosed));
        assert!(fill("{{nope}}").unwrap_err().to_string().contains("{{nope}}"));
    }

    #[test]
    fn the_opening_decides_and_a_message_further_on_does_not() {
        assert_eq!(
            recognise_follow_up("There is a syntax error in it: found 'empty result'"),
            Some(PromptKind::EmptyResult)
        );
        let late = format!("The formatting was altered. {} syntax error", "x".repeat(100));
        assert_eq!(recognise_follow_up(&late), Some(PromptKind::Formatting));
        assert_eq!(recognise_follow_up("What a lovely day"), None);
    }
}
