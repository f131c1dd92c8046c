//! The identity of a worker's process, and its predecessors.
//!
//! A name belongs to one process at a time. A restart takes over the name at once; a second worker with the same name
//! must not. The spool distinguishes them: only one process can hold it, so the processes listed in its file
//! `instances` have ended. Every process adds itself before it registers, so that its successor knows it even if it
//! dies at any moment.

use std::io;
use std::path::Path;

use domain::InstanceId;

/// Number of processes remembered: enough for a worker that dies repeatedly before it registers.
const REMEMBERED: usize = 16;

/// This process and its predecessors.
#[derive(Clone, Debug)]
pub struct Instance {
    /// This process.
    pub id: InstanceId,
    /// Its predecessors, oldest first.
    pub predecessors: Vec<InstanceId>,
}

impl Instance {
    /// A process without predecessors.
    pub fn fresh() -> Self {
        Self { id: InstanceId::random(), predecessors: Vec::new() }
    }

    /// A process that succeeds those in the file of a spool's folder, and is added to it. Call it with the folder
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
        // Replaced atomically: with half a file, this process would not be recognised under its own name.
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
