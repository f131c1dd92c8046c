//! What a plot of dialogues says of itself. [`figures`](crate::figures) has them.

use crate::analysis::scheme::Scheme;
use crate::dialogues::{Dialogues, TaskId};
use crate::draw::{Breadth, Svg};

/// A plot of dialogues, or one for each of their tasks.
pub struct Plot {
    /// What a page calls it; a plot of one task is called like the task.
    pub heading: &'static str,
    /// Where a page of these dialogues has it.
    pub place: fn(&Dialogues) -> PagePlace,
    /// Draws it; `scheme` has the categories of compasses. What would show nothing is left out.
    pub draw: fn(&Dialogues, &Scheme, Breadth) -> Vec<DrawnPlot>,
}

/// Where a page has a plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PagePlace {
    Open,
    /// Only for those who open it.
    Folded,
    /// It is a file of its own and no part of a page.
    Nowhere,
}

/// A plot as a file or as a part of a page.
pub struct DrawnPlot {
    /// Its file's name without what comes after the dot. Labels of tasks in it are as they are.
    pub file: String,
    /// The task that it is about, if it is about one.
    pub task: Option<TaskId>,
    pub svg: Svg,
}

impl DrawnPlot {
    /// The only one of its kind.
    pub(crate) fn one(file: &str, svg: Svg) -> Vec<Self> {
        vec![Self { file: file.to_owned(), task: None, svg }]
    }
}
