//! The follow-ups to queries that do not parse or find nothing: their kind and the values of their placeholders. Their
//! words are templates of the pack. When each is sent is decided in `evaluate` and by the limits of
//! [`Shots`](crate::exercise::Shots).

use domain::PromptKind;

use crate::exercise::FollowUp;
use crate::wording::Fields;

/// Replaces a missing query.
const NO_QUERY: &str = "None";

/// The query has syntax errors. Fields `message` and `query`.
pub(super) fn syntax(message: &str, query: Option<&str>) -> FollowUp {
    let mut fields = query_field(query);
    fields.insert("message".into(), message.into());
    FollowUp { kind: PromptKind::Syntax, fields }
}

/// The query finds nothing. Field `query`.
pub(super) fn empty_result(query: Option<&str>) -> FollowUp {
    FollowUp { kind: PromptKind::EmptyResult, fields: query_field(query) }
}

fn query_field(query: Option<&str>) -> Fields {
    Fields::from([("query".to_owned(), query.unwrap_or(NO_QUERY).to_owned())])
}
