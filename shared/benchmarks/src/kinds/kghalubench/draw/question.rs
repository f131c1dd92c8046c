//! The wording of questions (paper, 3.1.4 and A.4.1). The words are this project's own and say all that the paper's say; a pack
//! can have others.

use domain::PromptKind;
use serde::{Deserialize, Serialize};
use tasks::{Template, TemplateError, Wording};

use crate::kinds::kghalubench::draw::frequency::Frequency;
use crate::kinds::kghalubench::draw::graph::{Entity, Fact, Lifespan, Statistics};

/// Number of relations that a question asks for.
pub const FACTS: usize = 3;

/// Number of words that an overview should have, approximately.
pub const WORDS: u32 = 200;

/// The placeholders of a chosen wording, each with what stands in it.
pub const PLACES: [&str; 2 + FACTS] = ["name", "context", "relation1", "relation2", "relation3"];

/// What every model under test is asked, if nobody words it otherwise. The question stands in the case as a whole.
pub fn wording() -> Wording {
    let mut wording = Wording::default();
    wording.insert(PromptKind::System, Template::new(SYSTEM));
    wording.insert(PromptKind::First, Template::new("{{question}}"));
    wording
}

/// The system prompt of every model under test.
const SYSTEM: &str = "You answer questions about entities from memory. If you recognise the entity, give a clear and \
detailed answer. If you do not, say plainly that you do not know it.";

/// Why a wording of questions cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WordingError {
    /// It has a prompt that questions do not have.
    #[error("`{0}` is no prompt of a question; they have `system` and `first`")]
    Kind(PromptKind),
    /// A template cannot be filled.
    #[error("`{kind}`: {source}")]
    Template {
        kind: PromptKind,
        /// Why.
        source: TemplateError,
    },
    /// A placeholder that nothing stands in.
    #[error("`{kind}` has the placeholder `{name}`, which nothing fills; known: {}", PLACES.join(", "))]
    Unknown { kind: PromptKind, name: String },
    /// The question would not say what it is about or what it asks for.
    #[error("`first` lacks the placeholder `{0}`")]
    Missing(&'static str),
}

/// A chosen wording, with the program's own system prompt where it has none.
///
/// # Errors
/// It cannot be filled, or asks for nothing.
pub fn worded(chosen: &Wording) -> Result<Wording, WordingError> {
    let mut wording = wording();
    for (kind, template) in chosen.templates() {
        if !matches!(kind, PromptKind::System | PromptKind::First) {
            return Err(WordingError::Kind(kind));
        }
        let used = template.placeholders().map_err(|source| WordingError::Template { kind, source })?;
        if let Some(unknown) = used.iter().find(|name| !PLACES.contains(name)) {
            return Err(WordingError::Unknown { kind, name: (*unknown).to_owned() });
        }
        let needed = PLACES.into_iter().filter(|name| *name != "context" && kind == PromptKind::First);
        if let Some(missing) = needed.into_iter().find(|name| !used.contains(name)) {
            return Err(WordingError::Missing(missing));
        }
        wording.insert(kind, template.clone());
    }
    Ok(wording)
}

/// A question about one entity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// IRI of the entity.
    pub entity: String,
    /// Its label.
    pub name: String,
    /// Distinguishes it from other entities of that name; shown in parentheses.
    pub context: String,
    /// IRI of its type.
    pub type_id: String,
    /// Label of its type.
    pub type_name: String,
    /// How frequent the type is.
    pub frequency: Frequency,
    /// The facts that are asked for.
    pub facts: [Fact; FACTS],
    /// The text that answers are compared with.
    pub description: String,
    /// How well known the entity is.
    pub statistics: Statistics,
}

/// What distinguishes entities of one name without giving an answer away: the years of a human, otherwise the type.
pub fn context(entity: &Entity) -> String {
    match entity.lifespan {
        Some(Lifespan { born, died: Some(died) }) => format!("({born}-{died})"),
        Some(Lifespan { born, died: None }) => format!("({born}-)"),
        None => format!("({})", entity.type_name),
    }
}

/// Words from which on a description tells an entity from others: below it says little more than what kind of thing it is, such as
/// `Austrian composer`, and answers about many others are as near to it.
pub const TELLING_WORDS_MIN: usize = 12;

impl Question {
    /// Whether its description is too short to tell its entity from others.
    pub fn is_hard_to_tell(&self) -> bool {
        self.description.split_whitespace().nth(TELLING_WORDS_MIN - 1).is_none()
    }

    /// Says so of some questions; `None` if it is true of none.
    pub fn hard_to_tell<'q>(questions: impl IntoIterator<Item = &'q Self>) -> Option<String> {
        let (mut all, mut hard) = (0_u64, 0_u64);
        for question in questions {
            all += 1;
            hard += u64::from(question.is_hard_to_tell());
        }
        (hard > 0).then(|| {
            format!(
                "{hard} of {all} questions have a description of fewer than {TELLING_WORDS_MIN} words, too short to tell their \
                 entity from others: of these, outcomes `other entity` and Halu_BOK say little."
            )
        })
    }

    /// The verb of sentences about the entity: past of a human who died, whose years the context shows.
    pub fn verb(&self) -> &'static str {
        let years = self.context.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
        let is_year = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let died = years.and_then(|years| years.strip_prefix('-').unwrap_or(years).split_once('-'));
        let is_past =
            died.is_some_and(|(born, died)| is_year(born) && is_year(died.strip_prefix('-').unwrap_or(died)));
        if is_past { "was" } else { "is" }
    }

    /// What stands in the [places](PLACES) of its wording, in their order.
    pub fn places(&self) -> [&str; PLACES.len()] {
        let [first, second, third] = &self.facts;
        [&self.name, &self.context, &first.relation, &second.relation, &third.relation]
    }
}

/// The prompt for a model under test.
pub fn text(question: &Question) -> String {
    let [first, second, third] = &question.facts;
    format!(
        "Give a brief overview of {} {} in about {WORDS} words. The overview must state all of the following: {}; {}; {}. \
If several entities have this name, write about the best known one that fits.",
        question.name, question.context, first.relation, second.relation, third.relation
    )
}

/// A fact as a plain sentence. If a relation has several objects, the sentence is true for any of them.
pub fn statement(question: &Question, fact: &Fact) -> String {
    let Question { name, type_name, .. } = question;
    format!("The {} of {name} ({type_name}) is {}.", fact.relation, value(fact))
}

/// The objects of a fact, of which each is right.
pub fn value(fact: &Fact) -> String {
    fact.objects.join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::kghalubench::draw::Recipe;
    use crate::kinds::kghalubench::draw::assessment::draw;
    use crate::kinds::kghalubench::draw::testing::invented;

    fn chosen(kind: PromptKind, text: &str) -> Result<Wording, WordingError> {
        let mut wording = Wording::default();
        wording.insert(kind, Template::new(text));
        worded(&wording)
    }

    #[test]
    fn a_chosen_wording_stands_in_the_place_of_the_own_one_and_must_ask_for_everything() {
        let all = "{{name}}: {{relation1}}, {{relation2}}, {{relation3}}?";
        let first = chosen(PromptKind::First, all).unwrap();
        assert_eq!(first.get(PromptKind::First).unwrap().as_str(), all);
        assert_eq!(first.get(PromptKind::System), wording().get(PromptKind::System));
        let error = |kind, text| chosen(kind, text).unwrap_err().to_string();
        assert!(
            error(PromptKind::First, "{{name}} {{relation1}}").contains("lacks the placeholder `relation2`")
        );
        assert!(
            error(PromptKind::First, "{{who}}").contains("`who`, which nothing fills; known: name, context")
        );
        assert!(error(PromptKind::System, "{{name").contains("`system`: a placeholder is opened"));
        assert!(error(PromptKind::Choice, "").contains("`choice` is no prompt of a question"));
    }

    #[test]
    fn who_died_is_spoken_of_as_past() {
        let recipe = Recipe { questions: 1, ..Recipe::default() };
        let mut question = draw(&mut invented(1), recipe, 0).unwrap().questions.remove(0);
        for (context, verb) in [
            ("(1815-1852)", "was"),
            ("(-70--19)", "was"),
            ("(-63-14)", "was"),
            ("(1965-)", "is"),
            ("(mountain)", "is"),
            ("(non-profit)", "is"),
            ("(-63-)", "is"),
            ("", "is"),
        ] {
            context.clone_into(&mut question.context);
            assert_eq!(question.verb(), verb, "{context}");
        }
    }
}
