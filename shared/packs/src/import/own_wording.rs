//! Our own wording for follow-ups that a task can send and that no record contains. A model that needs one is asked
//! something that no published model was asked, so the report lists them.

use domain::PromptKind;
use tasks::{AnswerForm, TaskClass, Template};

const ONE_QUERY: &str = "Please answer with exactly one Markdown fenced code block that holds the whole SPARQL query, \
                         and nothing else.";
const ONE_DOCUMENT: &str = "Please answer with exactly one Markdown fenced code block that holds the whole RDF \
                            document, and nothing else.";

/// The template of a kind that the class can send.
pub(super) fn template(class: TaskClass, kind: PromptKind) -> Template {
    Template::new(match (class.answers == AnswerForm::Document, kind) {
        (false, PromptKind::EmptyResult) => {
            format!("Your query has an empty result when it is run. Please look at it again. {ONE_QUERY}")
        }
        (false, _) => format!(
            "Your query has a syntax error: {{{{message}}}}\n\nThe query was:\n```sparql\n{{{{query}}}}\n```\n\n\
             {ONE_QUERY}"
        ),
        (true, PromptKind::Syntax) => {
            format!("The document still has a syntax error: {{{{message}}}}\n\n{ONE_DOCUMENT}")
        }
        (true, PromptKind::Content) => {
            format!("The document can be read, but this is not the expected data. {ONE_DOCUMENT}")
        }
        (true, PromptKind::Formatting) => {
            format!(
                "The data is right, but the formatting was altered. Please keep it as it was. {ONE_DOCUMENT}"
            )
        }
        (true, _) => format!("Your answer is not exactly one code block. {ONE_DOCUMENT}"),
    })
}

#[cfg(test)]
mod tests {
    use tasks::wording::recognise_follow_up;

    use super::*;

    #[test]
    fn every_kind_has_wording_that_is_recognised_as_that_kind() {
        for (name, version) in [("SparqlSyntaxFixingList", "5.0"), ("RdfSyntaxFixList", "0.3")] {
            let class = TaskClass::resolve(name, version).unwrap();
            for kind in class.follow_ups {
                let template = template(class, *kind);
                let filled = template.fill(|name| ["message", "query"].contains(&name).then_some("x"));
                assert_eq!(recognise_follow_up(&filled.unwrap()), Some(*kind), "{class:?}");
            }
        }
    }
}
