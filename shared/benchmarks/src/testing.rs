//! A kind for tests, [`FIXTURE`]. A test adds it to the list of kinds with `kinds::add_for_test`. If its tables, figures and
//! numbers then appear in a program or on a page, a new kind needs no more than its line in that list. No benchmark of users can
//! name it.

use std::collections::BTreeMap;

use domain::control::Better;
use domain::{FailureCause, ModelLabel, Scores, ServiceError, TaskLabel};
use report::draw::Svg;
use report::table::{Cell, Table};
use tasks::TaskData;

use crate::judging::{Judging, PromptPlace, Stage, StageInput, delimited};
use crate::kind::Kind;
use crate::questions;
use crate::reading::{BenchmarkFacts, BenchmarkReader, ModelReading};
use crate::report::{Metric, NotJudged};
use crate::showing::{Figure, Input, PageRows, Show, Showing, of_kind};

/// See the text of the module. One judge calls each answer GOOD or BAD.
pub static FIXTURE: Kind = Kind {
    name: "fixture",
    about: "answers that a judge likes or not; for tests",
    judging: Some(&Judging {
        stages: &[Stage {
            name: "liking",
            judge: "taste",
            version: "1",
            task: || questions::choice("liking", "Judge.", &[("GOOD", 1.0), ("BAD", 0.0)], "{{answer}}"),
            places: &[PromptPlace::Needed("answer")],
            stands_in: false,
            about: StageInput::Answers {
                reads: &[],
                questions: |subject, _| vec![vec![("answer", delimited(&subject.answer))]],
            },
        }],
        settings: &[],
        every_case: false,
        refuses: |_| None,
        conclude: |_, judgements| {
            let missing = NotJudged { stage: "liking", cause: FailureCause::JudgeUnparseable };
            let liked = judgements.number("liking", "grade")?.ok_or(missing)?;
            Ok(Scores::from_iter([("liked".to_owned(), liked.into())]))
        },
        metrics: |judged| vec![Metric::mean_of("liked", "liked", judged)],
        results: &[("liked", Better::Higher)],
    }),
    former: &[],
    showing: Some(&Showing {
        title: "the fixture",
        heading: "Fixture of tests",
        numbers: |reader, extras| {
            let models = reader.facts().models.clone();
            let mut answers = 0;
            for model in &models {
                answers += reader.model(model)?.dialogues.len() as u64;
            }
            let more = extras.parsed(&MORE, str::parse::<u64>)?.unwrap_or_default();
            Ok(Box::new(Answers(answers + more)))
        },
        relate: |_| (),
        shows: &[Show {
            name: "fixture-answers",
            about: "Fixture: how many answers there are",
            is_folded: false,
            on_page: PageRows::All,
            table: |numbers| {
                let mut table = Table::default().right(["answers"]).titled("Answers of the fixture");
                of_kind::<Answers>(numbers)
                    .into_iter()
                    .for_each(|Answers(answers)| table.row([Cell::Count(*answers)]));
                table
            },
        }],
        figures: &[Figure { file: "fixture", draw: |_, _| Svg::new(100.0, 40.0, "Figure of the fixture") }],
        inputs: &[MORE],
    }),
};

const MORE: Input = Input { name: "fixture-more", about: "Answers that the fixture adds to its number" };

/// How many answers a benchmark has, plus what the input `fixture-more` adds.
struct Answers(u64);

/// A benchmark of the fixture without records: two models that were never asked.
pub struct EmptyReader(BenchmarkFacts);

impl Default for EmptyReader {
    fn default() -> Self {
        let judge = serde_json::json!({ "label": "judge", "connector": "simulated" });
        let judge = serde_json::from_value(judge).expect("a judge is a model");
        Self(BenchmarkFacts {
            name: "nothing-asked".to_owned(),
            kind: FIXTURE.name.to_owned(),
            judging: FIXTURE.judging.expect("it is judged"),
            is_finished: false,
            models: ["m", "n"].map(ModelLabel::from).to_vec(),
            judges: BTreeMap::from([("taste".to_owned(), judge)]),
            settings: Default::default(),
            wordings: Default::default(),
        })
    }
}

impl BenchmarkReader for EmptyReader {
    fn facts(&self) -> &BenchmarkFacts {
        &self.0
    }

    fn task(&self, _: &TaskLabel) -> Option<&TaskData> {
        None
    }

    fn model(&mut self, model: &ModelLabel) -> Result<ModelReading, ServiceError> {
        Ok(ModelReading { model: model.clone(), ..ModelReading::default() })
    }
}
