//! Which process of a worker this is, and which ones it follows.
//!
//! A name belongs to one process at a time. What tells a restart, which takes over at once, from a second worker under the
//! same name, which must not, is the spool: only one process can hold it, so the processes named in its file `instances`
//! have ended. Every process adds itself before it registers, so that one which dies at any moment is known to the next.

use std::io;
use std::path::Path;

use domain::InstanceId;

/// Processes remembered: a worker that dies again and again before it registers is no stranger at the end.
const REMEMBERED: usize = 16;

/// This process, and the ones before it.
#[derive(Clone, Debug)]
pub struct Instance {
    /// This process.
    pub id: InstanceId,
    /// The ones before it, oldest first.
    pub predecessors: Vec<InstanceId>,
}

impl Instance {
    /// A process that follows none.
    pub fn fresh() -> Self {
        Self { id: InstanceId::random(), predecessors: Vec::new() }
    }

    /// A process that follows those in the file of a spool's folder, and is written into it. Call it with the folder
    /// locked.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn in_folder(folder: &Path) -> io::Result<Self> {
        let path = folder.join("instances");
        let known = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            text => text?,
        };
        let mut predecessors: Vec<InstanceId> = known.lines().map(InstanceId::from).collect();
        let surplus = predecessors.len().saturating_sub(REMEMBERED - 1);
        predecessors.drain(..surplus);
        let this = Self { id: InstanceId::random(), predecessors };
        let ids = this.predecessors.iter().chain([&this.id]);
        let text: String = ids.map(|id| format!("{id}\n")).collect();
        // Replaced as a whole: half a file would make this process a stranger to its own name.
        let new = path.with_extension("new");
        std::fs::write(&new, text)?;
        std::fs::rename(new, path)?;
        Ok(this)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_follows_those_before_it_in_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let mut before: Vec<InstanceId> = Vec::new();
        for _ in 0..REMEMBERED + 3 {
            let Instance { id, predecessors } = Instance::in_folder(folder.path()).unwrap();
            assert_eq!(predecessors, before[before.len().saturating_sub(REMEMBERED - 1)..]);
            before.push(id);
        }
        assert!(Instance::fresh().predecessors.is_empty());
    }
}
