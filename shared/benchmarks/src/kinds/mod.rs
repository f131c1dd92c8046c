//! The kinds of benchmarks there are: a folder for each that has judges, and one line here.

use crate::kind::Kind;

pub mod compared_facts;
pub mod judged_facts;
pub mod kghalubench;

/// Benchmarks whose scores are computed from the answers alone, such as LLM-KG-Bench.
pub static EXACT: Kind = Kind {
    name: "exact",
    about: "answers to knowledge graph tasks, scored by comparing graphs and query results",
    judging: None,
};

/// Every kind.
static ALL: [&Kind; 4] = [&EXACT, &judged_facts::KIND, &compared_facts::KIND, &kghalubench::KIND];

/// The kinds whose answers are judged.
pub fn judged() -> impl Iterator<Item = &'static Kind> {
    ALL.into_iter().filter(|kind| kind.judging.is_some())
}

/// The kind that a configuration names by its key `pipeline`; `None` if there is none of this name.
pub fn find(pipeline: Option<&str>) -> Option<&'static Kind> {
    match pipeline {
        None => Some(&EXACT),
        Some(name) => judged().find(|kind| kind.name == name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::StageInput;
    use crate::names::ASK;

    #[test]
    fn results_are_those_that_are_computed() {
        for judging in judged().filter_map(|kind| kind.judging) {
            let computed: Vec<&str> = (judging.metrics)(&[]).into_iter().map(|metric| metric.name).collect();
            let named: Vec<&str> = judging.results.iter().map(|(name, _)| *name).collect();
            assert_eq!(computed, named);
        }
    }

    #[test]
    fn a_configuration_without_judges_is_exact_and_cannot_name_it() {
        assert_eq!(find(None).map(|kind| kind.name), Some("exact"));
        assert!(find(Some("exact")).is_none() && find(Some("judged-facts")).is_some());
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
