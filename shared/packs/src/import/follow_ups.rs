//! Derives templates from follow-ups as sent: the parser's message and the model's query, which the record of the
//! round before also contains, become placeholders again.

use domain::PromptKind;
use results::llmkgbench::{ResultRecord, Speaker};
use serde_json::Value;
use tasks::wording::recognise_follow_up;
use tasks::{AnswerForm, Fields, TaskClass, Template};

/// Stands for the query if an answer has none.
const NO_QUERY: &str = "None";

/// A follow-up as sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordedFollowUp<'r> {
    /// The round of the answer before it, from 0.
    pub(super) round: usize,
    /// Its kind; `None` if the class does not send it.
    pub(super) kind: Option<PromptKind>,
    pub(super) text: &'r str,
    /// The values of its placeholders.
    pub(super) fields: Fields,
}

/// A sample follow-up.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub(super) text: String,
    pub(super) fields: Fields,
}

/// Whether two classes judge the same way and therefore send the same follow-ups: all that ask for a query do.
pub(super) fn is_same_family(one: TaskClass, other: TaskClass) -> bool {
    !one.follow_ups.is_empty() && one.follow_ups == other.follow_ups
}

pub(super) fn recorded(record: &ResultRecord, class: TaskClass) -> Vec<RecordedFollowUp<'_>> {
    let mut answers = 0_usize;
    let mut found = Vec::new();
    for interaction in record.interactions() {
        match interaction.speaker {
            Speaker::Response => answers += 1,
            Speaker::Prompt if answers > 0 => {
                let round = answers - 1;
                let kind =
                    recognise_follow_up(interaction.text).filter(|kind| class.follow_ups.contains(kind));
                let infos = record.infos().get(&round.to_string());
                let fields = kind.map(|kind| fields(class, kind, infos)).unwrap_or_default();
                found.push(RecordedFollowUp { round, kind, text: interaction.text, fields });
            }
            Speaker::Prompt => {}
        }
    }
    found
}

/// The placeholder values of follow-ups of this kind, from the infos of the round before.
fn fields(class: TaskClass, kind: PromptKind, infos: Option<&Value>) -> Fields {
    let info = |name: &str| infos.and_then(|infos| infos.get(name)?.as_str()).map(str::to_owned);
    let mut fields = Fields::new();
    let is_query = class.answers == AnswerForm::Query;
    if kind == PromptKind::Syntax
        && let Some(message) = info(if is_query { "parseError" } else { "syntaxError" })
    {
        fields.insert("message".to_owned(), message);
    }
    if is_query {
        fields.insert("query".to_owned(), info("sparql").unwrap_or_else(|| NO_QUERY.to_owned()));
    }
    fields
}

/// The template that reproduces most samples exactly; the earliest of several. `None` if none reproduces even its own
/// sample, for example because the fixed text contains `{{`.
///
/// A single sample may mislead, because a short message or query can also occur in the fixed text. The more samples
/// there are, the fewer of them a wrong template reproduces.
pub(super) fn learn(samples: &[Sample]) -> Option<Template> {
    let mut best: Option<(usize, Template)> = None;
    for sample in samples {
        let candidate = generalise(sample);
        if best.as_ref().is_some_and(|(_, template)| *template == candidate) {
            continue;
        }
        let explained =
            samples.iter().filter(|sample| gives(&candidate, &sample.fields, &sample.text)).count();
        if explained > best.as_ref().map_or(0, |(explained, _)| *explained) {
            best = Some((explained, candidate));
        }
        if explained == samples.len() {
            break;
        }
    }
    best.map(|(_, template)| template)
}

/// Whether the template reproduces exactly this text.
pub(super) fn gives(template: &Template, fields: &Fields, text: &str) -> bool {
    template.fill(|name| fields.get(name).map(String::as_str)).is_ok_and(|filled| filled == text)
}

/// A sample with every occurrence of its values replaced by placeholders, longer values first: a message may quote a
/// short query, and a query may contain the words of a short message.
fn generalise(sample: &Sample) -> Template {
    enum Piece<'s> {
        Text(&'s str),
        Placeholder(&'s str),
    }
    let mut values: Vec<(&str, &str)> =
        sample.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    values.retain(|(_, value)| !value.is_empty());
    values.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
    let mut pieces = vec![Piece::Text(&sample.text)];
    for (name, value) in values {
        let mut divided = Vec::new();
        for piece in pieces {
            let Piece::Text(text) = piece else {
                divided.push(piece);
                continue;
            };
            for (index, between) in text.split(value).enumerate() {
                if index > 0 {
                    divided.push(Piece::Placeholder(name));
                }
                divided.push(Piece::Text(between));
            }
        }
        pieces = divided;
    }
    let mut template = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => template.push_str(text),
            Piece::Placeholder(name) => template.push_str(&format!("{{{{{name}}}}}")),
        }
    }
    Template::new(template)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sample(text: &str, message: &str, query: &str) -> Sample {
        let fields = [("message", message), ("query", query)];
        Sample {
            text: text.to_owned(),
            fields: fields.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        }
    }

    #[test]
    fn values_become_placeholders_and_the_rest_stays() {
        let learnt = learn(&[sample("{No}: bad at 3.\n\nYou said SELECT x", "bad at 3", "SELECT x")]);
        assert_eq!(learnt.unwrap().as_str(), "{No}: {{message}}.\n\nYou said {{query}}");
        assert_eq!(learn(&[]), None);
    }

    #[test]
    fn a_message_may_quote_the_query_and_a_value_may_be_missing() {
        let quoting = sample("Hm: `ASK {}` is odd. Given: ASK {}", "`ASK {}` is odd", "ASK {}");
        assert_eq!(learn(&[quoting]).unwrap().as_str(), "Hm: {{message}}. Given: {{query}}");
        let silent = sample("Nothing was found.", "", "SELECT y");
        assert_eq!(learn(&[silent]).unwrap().as_str(), "Nothing was found.");
    }

    #[test]
    fn more_samples_correct_a_misleading_one() {
        // The query of the first is a word of the fixed text.
        let misleading = sample("None of it parses: oh! Given: None", "oh!", "None");
        let clear = sample("None of it parses: bah! Given: SELECT z", "bah!", "SELECT z");
        let learnt = learn(&[misleading, clear]).unwrap();
        assert_eq!(learnt.as_str(), "None of it parses: {{message}} Given: {{query}}");
    }

    #[test]
    fn a_text_that_no_template_can_hold_is_not_learnt() {
        assert_eq!(learn(&[sample("Use {{x}} here: m", "m", "q")]), None);
    }

    #[test]
    fn only_the_kinds_of_a_class_count_and_rounds_are_those_of_the_answers() {
        let record = ResultRecord::from_value(serde_json::json!({
            "modelId": "a--b--c",
            "taskInfo": {"taskId": "RdfSyntaxFixList", "version": "0.3"},
            "scores": {},
            "info": {"0": {"syntaxError": "line 2"}, "1": {"syntaxError": null}},
            "interactions": [
                ["prompt", "t", "Fix it."], ["response", "t", "a"],
                ["prompt", "t", "A syntax error: line 2"], ["response", "t", "b"],
                ["prompt", "t", "An empty result."], ["response", "t", "c"]
            ]
        }));
        let record = record.unwrap();
        let found = recorded(&record, TaskClass::resolve("RdfSyntaxFixList", "0.3").unwrap());
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].round, found[0].kind), (0, Some(PromptKind::Syntax)));
        assert_eq!(found[0].fields, Fields::from([("message".to_owned(), "line 2".to_owned())]));
        assert_eq!((found[1].round, found[1].kind), (1, None), "documents have no results");
    }

    proptest! {
        /// However confusing the other samples are, one whose values occur nowhere else is enough.
        #[test]
        fn one_clear_sample_is_enough(
            fixed in prop::array::uniform3("[ab .\n]{0,12}"),
            others in prop::collection::vec(("[ab\\{]{0,4}", "[ab\\}]{0,4}"), 0..8),
            place in any::<prop::sample::Index>(),
        ) {
            let send = |message: &str, query: &str| {
                let text = format!("{}{message}{}{query}{}", fixed[0], fixed[1], fixed[2]);
                sample(&text, message, query)
            };
            let mut samples: Vec<Sample> = others.iter().map(|(m, q)| send(m, q)).collect();
            samples.insert(place.index(samples.len() + 1), send("MESSAGE", "QUERY"));
            let learnt = learn(&samples).unwrap();
            for sample in &samples {
                prop_assert!(gives(&learnt, &sample.fields, &sample.text), "{}", learnt.as_str());
            }
        }
    }
}
