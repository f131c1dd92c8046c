//! The kinds of pipelines there are: a folder for each, and one line here.

use crate::kind::Kind;

pub mod compared_facts;
pub mod judged_facts;
pub mod kghalubench;

/// Every kind.
const KINDS: &[&Kind] = &[&judged_facts::KIND, &compared_facts::KIND, &kghalubench::KIND];

/// The kinds there are.
pub fn all() -> impl Iterator<Item = &'static Kind> {
    KINDS.iter().copied()
}

/// The kind of a name.
pub fn find(name: &str) -> Option<&'static Kind> {
    all().find(|kind| kind.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::StageInput;
    use crate::names::ASK;

    #[test]
    fn stages_have_names_and_classes_of_judges() {
        for kind in all() {
            let mut names = vec![ASK];
            for stage in kind.stages {
                assert!(crate::names::is_pipeline_name(stage.name) && !names.contains(&stage.name));
                names.push(stage.name);
                if let StageInput::Answers { reads, .. } = stage.about {
                    let before = |read: &&str| {
                        let mut stages = kind.stages.iter().take_while(|other| other.name != stage.name);
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
