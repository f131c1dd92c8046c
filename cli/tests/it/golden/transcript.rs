//! Commands and what they answered, as text to compare.

use std::io::{Cursor, Read};
use std::ops::Range;
use std::path::Path;

use domain::text::hex;
use regex::Regex;
use sha2::{Digest, Sha256};

use crate::harness::{Finished, kept_text};

/// Commands with their answers. Names of the test's own are replaced: the first text of a pair by the second.
pub struct Transcript {
    text: String,
    names: Vec<(String, &'static str)>,
    timeless: bool,
}

impl Transcript {
    pub fn new() -> Self {
        Self { text: String::new(), names: Vec::new(), timeless: false }
    }

    /// One of commands whose answers hold times and rates, which differ from run to run and are left out.
    pub fn timeless() -> Self {
        Self { timeless: true, ..Self::new() }
    }

    /// Whatever of this stands in commands and answers is replaced from now on.
    pub fn replace(&mut self, name: impl Into<String>, by: &'static str) {
        self.names.push((name.into(), by));
    }

    /// Adds a command with its exit code, its data and its talk, but for what it says of the kernel of this machine.
    pub fn add(&mut self, command: &[&str], finished: &Finished) {
        self.add_data(command, finished);
        let talk = finished.stderr.split_inclusive('\n').filter(|line| !line.starts_with("sandbox: "));
        self.put(&talk.collect::<String>());
    }

    /// The same without its talk, of one that tells how far it is.
    pub fn add_data(&mut self, command: &[&str], finished: &Finished) {
        self.add_line(&format!("$ kgfleet {}", command.join(" ")));
        if finished.code() != Some(0) {
            self.add_line(&format!("[exit code {:?}]", finished.code()));
        }
        self.put(&finished.stdout);
    }

    pub fn add_line(&mut self, line: &str) {
        self.put(&format!("{line}\n"));
    }

    /// Adds a file by its hash: exports hold the texts of exercises, and a report is long.
    pub fn add_file(&mut self, path: &Path) {
        let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let bytes = if bytes.starts_with(b"PK") { parts(bytes) } else { bytes };
        let name = path.file_name().unwrap().to_str().unwrap();
        self.add_line(&format!("{name}: {} bytes, SHA-256 {}", bytes.len(), hex(Sha256::digest(&bytes))));
    }

    /// Compares it with the file of this name.
    #[track_caller]
    pub fn compare(&self, name: &str) {
        kept_text::compare(&format!("cli/testdata/golden/{name}.txt"), &self.text, "golden");
    }

    fn put(&mut self, text: &str) {
        let mut text = if self.timeless { without_times(text) } else { text.to_owned() };
        for (name, by) in &self.names {
            text = text.replace(name, by);
        }
        // A table is as wide as the names in it.
        let rule = Regex::new("(?m)^-{4,}$").unwrap();
        self.text.push_str(&rule.replace_all(&text, "----"));
    }
}

/// The parts of a spreadsheet, one after the other, but for the one that says when it was made.
fn parts(spreadsheet: Vec<u8>) -> Vec<u8> {
    let mut archive = zip::ZipArchive::new(Cursor::new(spreadsheet)).unwrap();
    let mut content = Vec::new();
    for index in 0..archive.len() {
        let mut part = archive.by_index(index).unwrap();
        let name = part.name().unwrap().into_owned();
        if name != "docProps/core.xml" {
            content.extend_from_slice(name.as_bytes());
            part.read_to_end(&mut content).unwrap();
        }
    }
    content
}

fn without_times(text: &str) -> String {
    let mut text = without_rates(text);
    for (pattern, by) in [
        // How far it is is told every ten seconds.
        (r"(?m)^.*, ETA .* tokens/s.*\n", ""),
        (r"(?m)^\d+/\d+ dialogues, .*\n", ""),
        (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?", "TIME"),
        (r"[0-9.]+ s, [0-9.]+ dialogues/s", "SECONDS, RATE"),
    ] {
        text = Regex::new(pattern).unwrap().replace_all(&text, by).into_owned();
    }
    text
}

/// Columns of a table that hold rates.
const RATES: [&str; 3] = ["per s", "tokens/s", "ETA"];

/// Blanks the columns of rates. They end where their heads end, and nothing in them is wider.
fn without_rates(text: &str) -> String {
    let mut places: Vec<Range<usize>> = Vec::new();
    let mut kept = String::new();
    for line in text.split_inclusive('\n') {
        let mut line = line.to_owned();
        if RATES.iter().all(|rate| line.contains(&format!("  {rate}"))) {
            let place = |rate: &str| line.find(rate).map(|at| at..at + rate.len());
            places = RATES.iter().filter_map(|rate| place(rate)).collect();
        } else if line.trim().is_empty() {
            places.clear();
        } else if !line.starts_with("---") {
            let length = line.trim_end().len();
            for place in places.iter().filter(|place| place.end <= length) {
                line.replace_range(place.clone(), &" ".repeat(place.len()));
            }
            if !places.is_empty() {
                line = format!("{}\n", line.trim_end());
            }
        }
        kept.push_str(&line);
    }
    kept
}
