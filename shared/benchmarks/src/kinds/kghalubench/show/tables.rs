//! The main tables of KGHaluBench: a function for each, from studies to a table. The numbers come from the studies; the order of
//! rows, the marks of the best and the notes are made here. `rates` and `verdicts` have further tables.

use report::table::{Cell, Table, TopPlace};

use crate::kinds::kghalubench::draw::Date;
use crate::kinds::kghalubench::numbers::metrics::{Filter, Spread};
use crate::kinds::kghalubench::numbers::share;
use crate::kinds::kghalubench::show::found::Replies;
use crate::kinds::kghalubench::show::study::{FactTimes, ModelStudy, OrderedBy, Study, frequency_words};

/// One row per model, best weighted accuracy first: the paper's main table, with the spread over assessments. Without weights of
/// the graph, accuracy orders models, and no Wa is marked as the best. Models that have too little of their plan to be ranked
/// stand below, and none of their numbers is marked.
pub fn main(studies: &[&Study]) -> Table {
    let mut table = new(
        studies,
        "Hallucination",
        &[
            "Wa %",
            "Wa sd",
            "accuracy %",
            "accuracy sd",
            "abstained %",
            "Halu_BOK %",
            "Halu_DOK %",
            "size in B",
            "cut-off",
            "scored",
            "not scored",
        ],
    );
    for study in studies {
        let placed = study.placed();
        let models: Vec<&ModelStudy> = placed.iter().map(|(model, _)| *model).collect();
        // Those that can be ranked stand first.
        let able = &models[..placed.iter().filter(|(_, rank)| rank.is_some()).count()];
        // Which two are best: of hallucinations the least, of points the most.
        let weighted = |model: &ModelStudy| match study.ordered_by {
            OrderedBy::Wa => mean(model.metrics.weighted_accuracy()),
            OrderedBy::Accuracy => None,
        };
        let best = [
            top(able, false, &weighted),
            top(able, false, &|model| mean(model.metrics.accuracy())),
            top(able, true, &|model| mean(model.metrics.breadth_hallucination())),
            top(able, true, &|model| mean(model.metrics.depth_hallucination())),
        ];
        for (place, model) in models.iter().enumerate() {
            let (metrics, counts) = (&model.metrics, &model.metrics.counts);
            let best = best.each_ref().map(|of_column| of_column.get(place).copied().flatten());
            let (weighted, accuracy) = (metrics.weighted_accuracy(), metrics.accuracy());
            let cells = [
                percent(mean(weighted), best[0]),
                percent(deviation(weighted), None),
                percent(mean(accuracy), best[1]),
                percent(deviation(accuracy), None),
                percent(mean(metrics.abstention()), None),
                percent(mean(metrics.breadth_hallucination()), best[2]),
                percent(mean(metrics.depth_hallucination()), best[3]),
                Cell::number(model.size, 1),
                cut_off(model, study),
                Cell::Count(u64::from(counts.scored)),
                Cell::Count(u64::from(counts.not_scored)),
            ];
            row(&mut table, studies, study, &model.model, cells);
        }
    }
    table.notes.push(
        "* best, + second. Halu_BOK: answers about another entity, of those that do not abstain. Halu_DOK: facts not stated, of \
         answers about the entity. All rates are means over assessments; sd: over assessments."
            .to_owned(),
    );
    for study in studies {
        let named = |text: &str| {
            if studies.len() > 1 { format!("{}: {text}", study.pipeline) } else { text.to_owned() }
        };
        table.notes.extend(unranked(study).map(|note| named(&note)));
        table.notes.extend(study.notes.iter().map(|note| named(note)));
        table.notes.extend(cut_offs(study).map(|note| named(&note)));
        if let (Some(spearman), Some(kendall)) = study.correlation {
            let text = format!(
                "Difficulty and points: Spearman's rho {spearman:.3}, Kendall's tau-b {kendall:.3}, over all answers."
            );
            table.notes.push(named(&text));
        }
    }
    table
}

/// A note on models that are not ranked; `None` if there are none.
fn unranked(study: &Study) -> Option<String> {
    let placed = study.placed();
    let left_out = placed.iter().filter(|(model, rank)| rank.is_none() && model.metrics.counts.scored > 0);
    let told = left_out.map(|(model, _)| {
        let counts = &model.metrics.counts;
        let planned = counts.scored + counts.not_scored;
        let told = format!("{} ({} of {planned} answers)", model.model, counts.scored);
        match accuracy_bounds(model) {
            Some((low, high)) => format!(
                "{told}: accuracy from {:.2} % if all that is missing is wrong to {:.2} % if it is right",
                100.0 * low,
                100.0 * high
            ),
            None => told,
        }
    });
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| {
        format!("Not ranked, because they have less of their plan than others: {}.", told.join("; "))
    })
}

/// Between what the share of points lies, whatever the answers without a score are worth.
fn accuracy_bounds(model: &ModelStudy) -> Option<(f64, f64)> {
    let counts = &model.metrics.counts;
    let (missing, all) = (f64::from(counts.not_scored), f64::from(counts.scored + counts.not_scored));
    let points: f64 = model.points.iter().map(|(_, share)| share).sum();
    (all > 0.0).then(|| (points / all, (points + missing) / all))
}

/// The date at which the training data of a model end, marked if facts may have changed since.
fn cut_off(model: &ModelStudy, study: &Study) -> Cell {
    match &model.cut_off {
        None => Cell::from("unknown"),
        Some(date) if is_outdated(date, study) => Cell::from(format!("{date} !")),
        Some(date) => Cell::from(date.to_string()),
    }
}

fn is_outdated(date: &Date, study: &Study) -> bool {
    study.as_of.as_ref().is_some_and(|as_of| date.is_before(as_of))
}

/// A note that compares cut-offs with the date of the graph; `None` if no cut-off is known.
fn cut_offs(study: &Study) -> Option<String> {
    let mut known = study.models.iter().filter_map(|model| model.cut_off.as_ref()).peekable();
    known.peek()?;
    Some(match &study.as_of {
        None => "Of when the graph is, its pack does not say (`kgfleet halu generate --as-of`): no cut-off was compared with it.".to_owned(),
        Some(as_of) if known.any(|date| is_outdated(date, study)) => {
            format!("! before the state of the graph, {as_of}: what changed in between counts as wrong.")
        }
        Some(as_of) => format!("No cut-off is before the state of the graph, {as_of}."),
    })
}

/// Outcomes of answers, and how many facts were wrong in those about the entity.
pub fn distributions(studies: &[&Study]) -> Table {
    let mut table = new(
        studies,
        "What answers are made of",
        &["aligned %", "other entity %", "abstained %", "0 wrong %", "1 wrong %", "2 wrong %", "3 wrong %"],
    );
    for study in studies {
        for model in &study.models {
            let counts = &model.metrics.counts;
            let of_scored = |count: u32| percent(share(count, counts.scored), None);
            let mut cells =
                vec![of_scored(counts.aligned), of_scored(counts.hallucinated), of_scored(counts.abstained)];
            cells.extend(counts.by_wrong_facts.map(|count| percent(share(count, counts.aligned), None)));
            row(&mut table, studies, study, &model.model, cells);
        }
    }
    table.notes.push("0 to 3 wrong: wrong facts of an answer about the entity.".to_owned());
    table
}

/// Which filter decided how many facts, and how long each stage's judge took.
pub fn stages(studies: &[&Study]) -> Table {
    let mut table = Table::default()
        .left(["stage", "judge"])
        .right(["replies", "seconds per reply", "facts decided", "share %"])
        .titled("Stages");
    for study in studies {
        let facts: u32 = study.models.iter().map(|model| 3 * model.metrics.counts.aligned).sum();
        for replies in of_all_models(study) {
            let filter = Filter::ALL.into_iter().find(|filter| filter.stage() == replies.stage);
            let decided = filter.map(|filter| {
                study.models.iter().map(|model| model.metrics.counts.decided_by[filter as usize]).sum::<u32>()
            });
            let seconds = (replies.number > 0).then(|| replies.seconds / replies.number as f64);
            let stage = match studies.len() {
                1 => replies.stage.clone(),
                _ => format!("{}: {}", study.pipeline, replies.stage),
            };
            table.row([
                Cell::from(stage),
                Cell::from(replies.judge),
                Cell::Count(replies.number),
                Cell::number(seconds, 3),
                Cell::count(decided.map(u64::from)),
                percent(decided.and_then(|decided| share(decided, facts)), None),
            ]);
        }
    }
    table.notes.push("share: of the facts of answers about the entity.".to_owned());
    table
}

/// How long facts took to decide, of all models and of each, by the filter that decided: the paper's Table 3.
pub fn times(studies: &[&Study]) -> Table {
    let mut table = new(studies, "Time of facts", &[]);
    table = table.left(["decided by"]).right(["facts", "share %", "seconds per fact"]);
    table.notes.push(
        "seconds: from the prompt of the first filter to the reply of the one that decides, one after the other. share: of the facts of \
         answers about the entity."
            .to_owned(),
    );
    for study in studies {
        let all = study.models.iter().fold(FactTimes::default(), |times, model| times.and(&model.fact_times));
        if let (Some(fact), Some(question)) = (all.per_fact(), all.per_question()) {
            let whose = if studies.len() > 1 { format!("{}: ", study.pipeline) } else { String::new() };
            table.notes.push(format!("{whose}{fact:.3} s per fact, {question:.3} s per question."));
        }
        let of_models = study.models.iter().map(|model| (model.model.as_str(), model.fact_times));
        for (model, times) in [("all models", all)].into_iter().chain(of_models) {
            for filter in Filter::ALL {
                let cells = [
                    Cell::from(filter.stage()),
                    Cell::Count(u64::from(times.facts(filter))),
                    percent(share(times.facts(filter), times.all_facts()), None),
                    Cell::number(times.decided_by(filter), 3),
                ];
                row(&mut table, studies, study, model, cells);
            }
        }
    }
    table
}

/// The types of entities that questions are about.
pub fn types(studies: &[&Study]) -> Table {
    let mut table = Table::default()
        .left(["type", "in the graph"])
        .right(["questions", "answers", "accuracy %", "Halu_BOK %", "Halu_DOK %"])
        .titled("Types of entities");
    for study in studies {
        for of_type in &study.types {
            table.row([
                Cell::from(of_type.name.as_str()),
                Cell::from(frequency_words(of_type.frequency)),
                Cell::Count(of_type.questions),
                Cell::Count(u64::from(of_type.counts.scored)),
                percent(of_type.score, None),
                percent(of_type.counts.breadth_hallucination(), None),
                percent(of_type.counts.depth_hallucination(), None),
            ]);
        }
    }
    table
}

/// The replies of every stage, over all models; replies that models share are counted once.
fn of_all_models(study: &Study) -> Vec<Replies> {
    let mut all: Vec<Replies> = Vec::new();
    for replies in study.models.iter().flat_map(|model| &model.stages) {
        match all.iter_mut().find(|known| known.stage == replies.stage) {
            Some(known) if !known.shared => {
                known.number += replies.number;
                known.seconds += replies.seconds;
            }
            Some(_) => {}
            None => all.push(replies.clone()),
        }
    }
    all
}

/// A table whose first column is the model; with several judged benchmarks, the benchmark comes before it.
pub(super) fn new(studies: &[&Study], title: &str, numbers: &[&str]) -> Table {
    let pipeline = (studies.len() > 1).then_some("pipeline");
    Table::default().left(pipeline).left(["model"]).right(numbers.iter().copied()).titled(title)
}

pub(super) fn row(
    table: &mut Table,
    studies: &[&Study],
    study: &Study,
    model: &str,
    cells: impl IntoIterator<Item = Cell>,
) {
    let pipeline = (studies.len() > 1).then(|| Cell::from(study.pipeline.as_str()));
    table.row(pipeline.into_iter().chain([Cell::from(model)]).chain(cells));
}

/// The best and the second value of each model; `None` if all are equal.
fn top(
    models: &[&ModelStudy],
    least: bool,
    value: &dyn Fn(&ModelStudy) -> Option<f64>,
) -> Vec<Option<TopPlace>> {
    let values: Vec<Option<f64>> = models.iter().map(|model| value(model)).collect();
    let mut sorted: Vec<f64> = values.iter().flatten().copied().collect();
    sorted.sort_by(f64::total_cmp);
    sorted.dedup();
    if !least {
        sorted.reverse();
    }
    if sorted.len() < 2 {
        return vec![None; models.len()];
    }
    let place = |value: &Option<f64>| match value {
        Some(value) if *value == sorted[0] => Some(TopPlace::First),
        Some(value) if *value == sorted[1] => Some(TopPlace::Second),
        _ => None,
    };
    values.iter().map(place).collect()
}

fn percent(share: Option<f64>, place: Option<TopPlace>) -> Cell {
    match (share, place) {
        (None, _) => Cell::Empty,
        (Some(share), None) => Cell::Number(100.0 * share, 2),
        (Some(share), Some(place)) => Cell::Placed(100.0 * share, 2, place),
    }
}

pub(super) fn mean(spread: Option<Spread>) -> Option<f64> {
    spread.map(|spread| spread.mean)
}

pub(super) fn deviation(spread: Option<Spread>) -> Option<f64> {
    spread.and_then(|spread| spread.standard_deviation)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::kghalubench::numbers::Weights;
    use crate::kinds::kghalubench::numbers::metrics::Fate;
    use crate::kinds::kghalubench::show::about::ModelFacts;
    use crate::kinds::kghalubench::show::found::testing::found;

    fn study() -> Study {
        Study::of(&found(), &Weights::simulated().unwrap(), &ModelFacts::default())
    }

    fn shown(table: &Table, row: usize) -> Vec<String> {
        table.rows()[row].iter().map(Cell::shown).collect()
    }

    #[test]
    fn the_main_table_ranks_models_and_marks_the_best_two() {
        let table = main(&[&study()]);
        let (first, second) = (shown(&table, 0), shown(&table, 1));
        assert_eq!((first[0].as_str(), second[0].as_str()), ("strong-8B", "weak-1B"));
        assert!(first[1].ends_with(" *") && second[1].ends_with(" +"), "{first:?} {second:?}");
        assert_eq!(second[3..8], ["41.67 +", "0.00", "25.00", "33.33 +", "33.33 +"]);
        assert_eq!(first[8..], ["8.0", "unknown", "8", "0"]);
        let mut markdown = Vec::new();
        table.write_markdown(&mut markdown).unwrap();
        let markdown = String::from_utf8(markdown).unwrap();
        assert!(markdown.contains("\\*** |") && markdown.contains("<u>41.67 +</u>"), "{markdown}");
        let two = main(&[&study(), &study()]);
        assert_eq!(two.headings()[0].name, "pipeline");
    }

    #[test]
    fn cut_offs_are_compared_with_the_state_of_the_graph() {
        let about = "[models.\"weak-1B\"]\ncut_off = \"2023-12\"\n[models.\"strong-8B\"]\nsize = 9.0\n";
        let about = ModelFacts::parse(about).unwrap();
        let table = |as_of: &[&str]| {
            let mut found = found();
            for (assessment, date) in found.assessments.iter_mut().zip(as_of) {
                assessment.as_of = Some(date.parse().unwrap());
            }
            main(&[&Study::of(&found, &Weights::default(), &about)])
        };
        let cells = |table: &Table| [0, 1].map(|row| shown(table, row)[8..10].join(" "));
        let notes = |table: &Table| table.notes.join(" ");
        for (as_of, weak, note) in [
            (&["2024-06", "2024-01"][..], "1.0 2023-12 !", "! before the state of the graph, 2024-01"),
            (&["2023", "2023-12-31"], "1.0 2023-12", "No cut-off is before the state of the graph, 2023"),
            (&["2024-06"], "1.0 2023-12", "its pack does not say"),
        ] {
            let table = table(as_of);
            assert_eq!(cells(&table), ["9.0 unknown", weak]);
            assert!(notes(&table).contains(note), "{}", notes(&table));
        }
        assert!(!notes(&main(&[&study()])).contains("cut-off"));
    }

    #[test]
    fn shares_of_answers_facts_and_stages() {
        let distributions = distributions(&[&study()]);
        assert_eq!(
            shown(&distributions, 0)[1..],
            ["50.00", "25.00", "25.00", "50.00", "0.00", "50.00", "0.00"]
        );
        let stages = stages(&[&study()]);
        // Twelve replies about each model; a third of 3 * (4 + 8) facts.
        assert_eq!(shown(&stages, 0), ["nli", "judge", "24", "0.250", "12", "33.33"]);
        let times = times(&[&study()]);
        assert_eq!(shown(&times, 0), ["all models", "nli", "12", "33.33", "0.500"]);
        assert_eq!(shown(&times, 5), ["weak-1B", "expert", "4", "33.33", "3.500"]);
        assert_eq!(times.notes[1], "2.000 s per fact, 6.000 s per question.");
        let types = types(&[&study()]);
        assert!(types.rows().iter().all(|row| row[4].value().is_some()));
    }

    #[test]
    fn the_best_from_a_part_of_its_plan_is_the_best_in_nothing() {
        let mut found = found();
        let mut third = found.models[0].clone();
        third.model = "middling-3B".to_owned();
        third.answers[0].fate = found.models[1].answers[0].fate;
        found.models.push(third);
        // The strong one has three of its eight answers.
        found.models[1].answers[3..].iter_mut().for_each(|answer| answer.fate = Fate::NotScored);
        let table = main(&[&Study::of(&found, &Weights::simulated().unwrap(), &ModelFacts::default())]);
        let names = [0, 1, 2].map(|row| shown(&table, row)[0].clone());
        assert_eq!(names, ["middling-3B", "weak-1B", "strong-8B"]);
        let marks = |row: usize| shown(&table, row).join(" ").matches(['*', '+']).count();
        assert_eq!(marks(2), 0, "{:?}", shown(&table, 2));
        assert!(marks(0) > 0, "{:?}", shown(&table, 0));
        let note =
            "strong-8B (3 of 8 answers): accuracy from 37.50 % if all that is missing is wrong to 100.00 %";
        assert!(table.notes.iter().any(|told| told.contains(note)), "{:?}", table.notes);
    }

    #[test]
    fn a_model_without_answers_has_no_numbers() {
        let mut found = found();
        found.models[1].answers.clear();
        let table = main(&[&Study::of(&found, &Weights::default(), &ModelFacts::default())]);
        assert_eq!(shown(&table, 1)[..5], ["strong-8B", "-", "-", "-", "-"]);
    }
}
