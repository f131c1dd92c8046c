//! What the tasks of a file share while they are compiled: its graphs, prefixes and limits, the list of mistakes, and the way to
//! the files beside it.

use std::rc::Rc;

use rdf::PrefixTable;
use tasks::EvaluationLimits;

use crate::task_files::graphs::FileGraph;
use crate::task_files::mistake::MistakeList;
use crate::task_files::table::Placed;

impl FileContext<'_> {
    /// Reads a file beside the task file. Why it cannot be read goes to the list.
    pub(crate) fn read(&self, file: &Placed<&str>) -> Option<String> {
        let text = (self.read_text)(file.value);
        text.map_err(|message| self.mistakes.at(&file.place, message)).ok()
    }
}

/// What the tasks of a file share.
pub(crate) struct FileContext<'a> {
    pub(crate) mistakes: &'a MistakeList<'a>,
    pub(crate) graphs: &'a [(String, Rc<FileGraph>)],
    pub(crate) prefixes: &'a PrefixTable,
    pub(crate) limits: &'a EvaluationLimits,
    /// Of what is drawn.
    pub(crate) seed: u64,
    /// How often each case is asked.
    pub(crate) repeats: u32,
    /// Reads a file beside the task file.
    pub(crate) read_text: &'a dyn Fn(&str) -> Result<String, String>,
}
