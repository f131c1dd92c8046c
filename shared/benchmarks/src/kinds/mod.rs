//! The kinds of benchmarks there are: a file or folder for each, and one line here.

use crate::kind::Kind;
use crate::showing::{Input, Show, Showing};

pub mod compared_facts;
pub mod exact;
pub mod judged_facts;
pub mod judged_tasks;
pub mod kghalubench;
pub mod kghalubench_baseline;

/// Every kind; the first is that of configurations that name none.
static ALL: [&Kind; 6] = [
    &exact::KIND,
    &judged_facts::KIND,
    &judged_tasks::KIND,
    &compared_facts::KIND,
    &kghalubench::KIND,
    &kghalubench_baseline::KIND,
];

/// Kinds that a test added to its process.
#[cfg(any(test, feature = "test-support"))]
static ADDED: std::sync::Mutex<Vec<&'static Kind>> = std::sync::Mutex::new(Vec::new());

/// Adds a kind to this process.
#[cfg(any(test, feature = "test-support"))]
pub fn add_for_test(kind: &'static Kind) {
    let mut added = ADDED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if added.iter().all(|known| known.name != kind.name) {
        added.push(kind);
    }
}

/// The kinds whose answers are judged.
pub fn judged() -> impl Iterator<Item = &'static Kind> {
    #[cfg(any(test, feature = "test-support"))]
    let added = ADDED.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
    #[cfg(not(any(test, feature = "test-support")))]
    let added: [&'static Kind; 0] = [];
    ALL.into_iter().chain(added).filter(|kind| !kind.stages().is_empty())
}

/// The kind that a configuration names by its key `pipeline`; `None` if there is none of this name.
pub fn find(pipeline: Option<&str>) -> Option<&'static Kind> {
    match pipeline {
        None => Some(ALL[0]),
        Some(name) => judged().find(|kind| kind.name == name),
    }
}

/// The kinds that have tables of their own.
pub fn shown() -> impl Iterator<Item = &'static Kind> {
    judged().filter(|kind| kind.showing.is_some())
}

/// The tables of judged kinds, each with what else its kind shows; one that several have is named once.
pub fn shows() -> Vec<(&'static Showing, &'static Show)> {
    let mut shows: Vec<(&'static Showing, &'static Show)> = Vec::new();
    for showing in shown().filter_map(|kind| kind.showing) {
        for show in showing.shows {
            if shows.iter().all(|(_, known)| known.name != show.name) {
                shows.push((showing, show));
            }
        }
    }
    shows
}

/// The files that numbers of judged kinds can take into account; one that several take is named once.
pub fn inputs() -> Vec<&'static Input> {
    let mut inputs: Vec<&'static Input> = Vec::new();
    for input in shown().filter_map(|kind| kind.showing).flat_map(|showing| showing.inputs) {
        if inputs.iter().all(|known| known.name != input.name) {
            inputs.push(input);
        }
    }
    inputs
}

#[cfg(test)]
mod tests {
    use report::table::Cell;

    use super::*;
    use crate::judging::{Stage, StageInput};
    use crate::names::ASK;
    use crate::showing::{Extras, ShownBenchmark};
    use crate::testing::{EmptyReader, FIXTURE};

    #[test]
    fn results_are_those_that_are_computed() {
        for judging in judged().filter_map(|kind| kind.judging) {
            let computed: Vec<&str> = (judging.metrics)(&[]).into_iter().map(|metric| metric.name).collect();
            let named: Vec<&str> = judging.results.iter().map(|(name, _)| *name).collect();
            assert_eq!(computed, named);
        }
    }

    #[test]
    fn what_a_kind_shows_is_found_by_its_names_and_nothing_else_names_it() {
        add_for_test(&FIXTURE);
        assert_eq!(find(Some("fixture")).map(|kind| kind.name), Some("fixture"));
        let shows: Vec<&str> = shows().into_iter().map(|(_, show)| show.name).collect();
        assert!(shows.contains(&"fixture-answers"), "{shows:?}");
        assert!(inputs().iter().any(|input| input.name == "fixture-more"));
        let showing = FIXTURE.showing.unwrap();
        let mut extras = Extras::default();
        extras.insert(&showing.inputs[0], "5".to_owned());
        let numbers = (showing.numbers)(&mut EmptyReader::default(), &extras).unwrap();
        let page = showing.page(&[ShownBenchmark { name: "b".to_owned(), models: 2, numbers }]);
        assert_eq!(
            (page.heading, page.tables[0].table.rows()),
            ("Fixture of tests", &[vec![Cell::Count(5)]][..])
        );
        assert_eq!(page.figures[0].1[0].wide.title(), "Figure of the fixture");
        extras.insert(&showing.inputs[0], "many".to_owned());
        let error = (showing.numbers)(&mut EmptyReader::default(), &extras).err().unwrap();
        assert!(error.to_string().starts_with("--fixture-more: "), "{error}");
    }

    #[test]
    fn names_of_tables_and_files_mean_one_thing_each_and_are_documented() {
        for kind in judged() {
            let Some(showing) = kind.showing else { continue };
            assert!(!showing.shows.is_empty() && !showing.heading.is_empty(), "{}", kind.name);
            for about in showing
                .shows
                .iter()
                .map(|show| show.about)
                .chain(showing.inputs.iter().map(|input| input.about))
            {
                assert!(
                    !about.is_empty() && !about.ends_with('.'),
                    "{}: {about}: the help has no full stop",
                    kind.name
                );
            }
            for show in showing.shows {
                let (_, first) = shows().into_iter().find(|(_, known)| known.name == show.name).unwrap();
                assert_eq!(first.about, show.about, "two tables are called {}", show.name);
            }
            let files: std::collections::BTreeSet<&str> =
                showing.figures.iter().map(|figure| figure.file).collect();
            assert_eq!(files.len(), showing.figures.len(), "{}", kind.name);
            // Of no benchmark, every table is empty, and no fault.
            assert!(
                showing.page(&[]).tables.iter().all(|shown| !shown.table.title.is_empty()),
                "{}",
                kind.name
            );
        }
    }

    #[test]
    fn a_configuration_without_judges_is_exact_and_cannot_name_it() {
        assert_eq!(find(None).map(|kind| kind.name), Some("exact"));
        assert!(find(Some("exact")).is_none() && find(Some("judged-facts")).is_some());
    }

    #[test]
    fn editions_differ_in_words_and_in_nothing_else() {
        for kind in judged() {
            assert_eq!(kind.judging_in(Some(kind.edition() + 1)).map(|judging| judging.stages.len()), None);
            assert!(kind.judging_in(Some(0)).is_none() && kind.judging_in(None).is_some(), "{}", kind.name);
            for former in kind.former {
                let names = |stages: &[Stage]| {
                    stages.iter().map(|stage| (stage.name, stage.judge)).collect::<Vec<_>>()
                };
                assert_eq!(names(former.stages), names(kind.stages()), "{}", kind.name);
                for (before, now) in former.stages.iter().zip(kind.stages()) {
                    let of = |stage: &Stage| crate::wordings::fingerprint([&(stage.task)().wording]);
                    assert_eq!(of(before) == of(now), before.version == now.version, "{}", now.name);
                }
            }
        }
    }

    #[test]
    fn stages_have_names_and_classes_of_judges() {
        for kind in judged() {
            let mut names = vec![ASK];
            for stage in kind.stages() {
                assert!(crate::names::is_pipeline_name(stage.name) && !names.contains(&stage.name));
                names.push(stage.name);
                if let StageInput::Answers { reads, .. } = stage.about {
                    let before = |read: &&str| {
                        let mut stages = kind.stages().iter().take_while(|other| other.name != stage.name);
                        stages.any(|other| other.name == *read && other.is_shared())
                    };
                    assert!(reads.iter().all(before), "{}: {reads:?}", stage.name);
                }
                let task = (stage.task)();
                let class = tasks::TaskClass::resolve(&task.class, &task.version).unwrap();
                assert!(class.judges, "{}: {class:?} is no class of judges", stage.name);
                assert_eq!(task.label.as_str(), stage.name, "the task is named after its stage");
            }
        }
    }
}
