//! Reads audit files back.

use std::fs;
use std::io;
use std::path::Path;

use super::AuditEntry;

/// Folders below the given one that are looked into: each coordinator has its own.
const DEPTH_MAX: usize = 2;

/// What stands in audit files.
#[derive(Debug, Default)]
pub struct AuditReading {
    /// In the order of time.
    pub entries: Vec<AuditEntry>,
    /// Lines that are none, such as the half line of a process that was killed.
    pub broken: u64,
}

impl AuditReading {
    /// Adds what stands in other files.
    pub fn add(&mut self, other: Self) {
        self.entries.extend(other.entries);
        self.entries.sort_by_key(|entry| entry.at);
        self.broken += other.broken;
    }
}

/// Reads all audit files in a folder and the folders in it.
///
/// # Errors
/// A file or folder cannot be read.
pub fn read_all(folder: &Path) -> io::Result<AuditReading> {
    let mut reading = AuditReading::default();
    read_into(folder, 0, &mut reading)?;
    reading.entries.sort_by_key(|entry| entry.at);
    Ok(reading)
}

fn read_into(folder: &Path, depth: usize, reading: &mut AuditReading) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            if depth < DEPTH_MAX {
                read_into(&path, depth + 1, reading)?;
            }
        } else if path.extension().is_some_and(|ending| ending == "jsonl") {
            // Rotation may have taken it away meanwhile.
            let bytes = match fs::read(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                bytes => bytes?,
            };
            for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                match serde_json::from_slice(line) {
                    Ok(entry) => reading.entries.push(entry),
                    Err(_) => reading.broken += 1,
                }
            }
        }
    }
    Ok(())
}
