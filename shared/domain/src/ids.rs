//! Names, each with its own type, so that they cannot be mixed up:
//!
//! ```compile_fail
//! use domain::ids::{ModelLabel, TaskLabel};
//! fn ask(_model: &ModelLabel, _task: &TaskLabel) {}
//! let (model, task) = (ModelLabel::new("tiny-llama"), TaskLabel::new("RdfFriendCount-turtle-1"));
//! ask(&task, &model);
//! ```

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Takes any text: nothing is checked here.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }
    };
}

/// Adds ids that are drawn at random instead of given.
macro_rules! random_id {
    ($(#[$doc:meta])* $name:ident) => {
        text_id!($(#[$doc])* $name);

        impl $name {
            /// A fresh id, unique without coordination (UUID version 7).
            pub fn random() -> Self {
                Self(crate::machine::fresh_id().to_string())
            }
        }
    };
}

text_id!(
    /// One execution of a benchmark configuration.
    RunId
);
text_id!(
    /// One language model under test, as the configuration labels it.
    ModelLabel
);
text_id!(
    /// A task class with its parameters, such as `RdfFriendCount-turtle-1`.
    TaskLabel
);
text_id!(
    /// A worker. One process at a time has its name.
    WorkerId
);
random_id!(
    /// One process of a worker: a random UUID, so that two processes of one name can be told apart.
    InstanceId
);
random_id!(
    /// One attempt to record a dialogue: a random UUID, so that two attempts never share it.
    RecordId
);

/// The i-th repetition of a task for a model, from 0. It selects the case of a list task.
pub type Iteration = u32;

/// What identifies a dialogue within its run: no two planned dialogues share it, and the same key always
/// asks the same question.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct DialogueKey {
    /// The model asked.
    pub model: ModelLabel,
    /// The task set.
    pub task: TaskLabel,
    /// The repetition, from 0.
    pub iteration: Iteration,
}

impl fmt::Display for DialogueKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.model, self.task, self.iteration)
    }
}
