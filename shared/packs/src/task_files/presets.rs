//! Presets: bundled pieces of TOML with the keys of a task. A task that names a preset takes from it every key that the author
//! leaves out. A preset has no other means than these keys, so an author can replace any part of it. A new preset is a TOML file
//! and an entry of [`ALL`].

use std::sync::LazyLock;

use toml::de::DeTable;

/// A preset as its file has it.
pub struct Preset {
    pub name: &'static str,
    /// What it is for, in a phrase.
    pub about: &'static str,
    /// The fields of a case that it needs.
    pub needs: &'static [&'static str],
    pub text: &'static str,
}

/// All presets.
pub const ALL: [Preset; 9] = [
    Preset {
        name: "text-to-sparql",
        about: "write a query that answers a question; judged by what it finds",
        needs: &["question", "sparql"],
        text: include_str!("presets/text-to-sparql.toml"),
    },
    Preset {
        name: "answer-list",
        about: "answer a question with a list",
        needs: &["question", "answers"],
        text: include_str!("presets/answer-list.toml"),
    },
    Preset {
        name: "answer-word",
        about: "answer a question with a word or a short phrase",
        needs: &["question", "answer"],
        text: include_str!("presets/answer-word.toml"),
    },
    Preset {
        name: "json-records",
        about: "find records in a text",
        needs: &["text", "records"],
        text: include_str!("presets/json-records.toml"),
    },
    Preset {
        name: "choose",
        about: "answer a question with yes or no, or with one of other words",
        needs: &["question", "answer"],
        text: include_str!("presets/choose.toml"),
    },
    Preset {
        name: "extract-graph",
        about: "write the facts of a text as a graph",
        needs: &["text", "vocabulary", "facts"],
        text: include_str!("presets/extract-graph.toml"),
    },
    Preset {
        name: "fix-rdf",
        about: "correct a Turtle document that cannot be parsed",
        needs: &["broken", "repaired"],
        text: include_str!("presets/fix-rdf.toml"),
    },
    Preset {
        name: "conform",
        about: "change a graph so that it has given SHACL shapes",
        needs: &["broken", "shapes", "repaired"],
        text: include_str!("presets/conform.toml"),
    },
    Preset {
        name: "write-shapes",
        about: "write SHACL shapes for requirements; judged by the graphs that they tell apart",
        needs: &["requirement", "shapes", "accept", "reject"],
        text: include_str!("presets/write-shapes.toml"),
    },
];

/// A preset with its keys.
pub(crate) struct ReadPreset {
    pub(crate) preset: &'static Preset,
    pub(crate) table: DeTable<'static>,
}

/// The preset of a name.
pub(crate) fn find(name: &str) -> Option<&'static ReadPreset> {
    static READ: LazyLock<Vec<ReadPreset>> = LazyLock::new(|| {
        let read = |preset: &'static Preset| {
            let table = DeTable::parse(preset.text).ok()?.into_inner();
            Some(ReadPreset { preset, table })
        };
        ALL.iter().filter_map(read).collect()
    });
    READ.iter().find(|read| read.preset.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task_files::mistake::MistakeList;
    use crate::task_files::{schema, table};

    #[test]
    fn every_preset_has_the_keys_of_a_task() {
        for preset in &ALL {
            let read = find(preset.name).unwrap();
            let mistakes = MistakeList::new(preset.name, preset.text);
            table::check(&read.table, schema::of_task(), "[[task]]", &mistakes);
            assert_eq!(mistakes.none_yet(), Ok(()));
            assert!(read.table.contains_key("prompt") && read.table.contains_key("check"), "{}", preset.name);
        }
    }
}
