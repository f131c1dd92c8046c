//! What is shown of kinds that bring no tables of their own: the results of each model, which every judged kind has.

use domain::ModelLabel;
use report::table::{Cell, Table};

use crate::judging::Judging;
use crate::reading::BenchmarkReader;
use crate::report::{JudgedDialogue, JudgedOutcome, ModelReport};
use crate::showing::{Extras, KindNumbers, PageRows, Show, Showing, ShowingError, of_kind};

/// See the text of the module.
pub static SHOWING: Showing = Showing {
    title: "judged answers",
    heading: "Judged answers",
    numbers,
    relate: |_| (),
    shows: &[
        Show {
            name: "results",
            about: "Judged answers: the results of every model, with how many of its dialogues they cover",
            is_folded: false,
            on_page: PageRows::All,
            table: |numbers| results(&of_kind(numbers)),
        },
        Show {
            name: "not-judged",
            about: "Judged answers: dialogues that have no scores, by stage and cause",
            is_folded: true,
            on_page: PageRows::All,
            table: |numbers| not_judged(&of_kind(numbers)),
        },
    ],
    figures: &[],
    inputs: &[],
};

/// Decimal places of means.
const PLACES: usize = 4;

/// The results of one benchmark.
struct Results {
    benchmark: String,
    judging: &'static Judging,
    /// With how many dialogues wait for an answer or a verdict.
    models: Vec<(ModelReport, u64)>,
}

fn numbers(reader: &mut dyn BenchmarkReader, _: &Extras) -> Result<Box<KindNumbers>, ShowingError> {
    let facts = reader.facts().clone();
    let one = |model: &ModelLabel| -> Result<(ModelReport, u64), ShowingError> {
        let judged = reader.model(model)?.judged(&facts)?;
        let waits = |judged: &&JudgedDialogue| matches!(judged.outcome, JudgedOutcome::Waiting(_));
        let waiting = judged.iter().filter(waits).count() as u64;
        Ok((ModelReport::of(model.clone(), &judged, facts.judging.metrics), waiting))
    };
    let models = facts.models.iter().map(one).collect::<Result<_, _>>()?;
    Ok(Box::new(Results { benchmark: facts.name, judging: facts.judging, models }))
}

fn results(benchmarks: &[&Results]) -> Table {
    let names = benchmarks.first().map_or(&[][..], |first| first.judging.results);
    let mut table = Table::default()
        .left(["benchmark", "model"])
        .right(names.iter().map(|(name, _)| *name))
        .right(["planned", "scored", "waiting"])
        .titled("Results of judged answers");
    for Results { benchmark, models, .. } in benchmarks {
        for (report, waiting) in models {
            let means = report
                .metrics
                .iter()
                .map(|metric| Cell::Told(format!("{:.PLACES$}", metric.mean), metric.mean.value));
            let labels = [benchmark.as_str(), report.model.as_str()].map(Cell::from);
            let counts = [report.planned, report.scored, *waiting].map(Cell::Count);
            table.row(labels.into_iter().chain(means).chain(counts));
        }
    }
    table
}

fn not_judged(benchmarks: &[&Results]) -> Table {
    let mut table = Table::default()
        .left(["benchmark", "model", "stage", "cause"])
        .right(["dialogues"])
        .titled("Dialogues without scores");
    for Results { benchmark, models, .. } in benchmarks {
        for (report, _) in models {
            for (why, dialogues) in &report.not_judged {
                let cause = why.cause.to_string();
                let labels = [benchmark.as_str(), report.model.as_str(), why.stage, &cause].map(Cell::from);
                table.row(labels.into_iter().chain([Cell::Count(*dialogues)]));
            }
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use domain::{DialogueKey, FailureCause, ServiceError, TaskLabel};
    use tasks::TaskData;

    use super::*;
    use crate::reading::{BenchmarkFacts, ModelReading};
    use crate::testing::EmptyReader;

    /// The benchmark of the fixture, whose first model answered nothing twice.
    #[derive(Default)]
    struct Unanswered(EmptyReader);

    impl BenchmarkReader for Unanswered {
        fn facts(&self) -> &BenchmarkFacts {
            self.0.facts()
        }

        fn task(&self, label: &TaskLabel) -> Option<&TaskData> {
            self.0.task(label)
        }

        fn model(&mut self, model: &ModelLabel) -> Result<ModelReading, ServiceError> {
            let key = |iteration| DialogueKey { model: model.clone(), task: TaskLabel::from("t"), iteration };
            let failed = |iteration| (key(iteration), Some(FailureCause::Timeout));
            let dialogues = if model.as_str() == "m" { vec![failed(1), failed(2)] } else { Vec::new() };
            Ok(ModelReading { dialogues, ..self.0.model(model)? })
        }
    }

    #[test]
    fn results_say_what_they_cover_and_why_the_rest_has_none() {
        let numbers = (SHOWING.numbers)(&mut Unanswered::default(), &Extras::default()).unwrap();
        let [results, not_judged] = [0, 1].map(|show: usize| (SHOWING.shows[show].table)(&[&*numbers]));
        let shown = |table: &Table| {
            let cells = |row: &Vec<Cell>| row.iter().map(Cell::shown).collect::<Vec<_>>();
            table.rows().iter().map(cells).collect::<Vec<_>>()
        };
        let [first, second] = shown(&results).try_into().unwrap();
        assert_eq!(first[..2], ["nothing-asked", "m"]);
        assert_eq!(first[3..], ["2", "0", "0"], "{first:?}");
        assert_eq!(first[2], "-", "nothing was scored");
        assert_eq!(second[3..], ["0", "0", "0"], "{second:?}");
        assert_eq!(shown(&not_judged), [["nothing-asked", "m", "ask", "timeout", "2"]]);
    }
}
