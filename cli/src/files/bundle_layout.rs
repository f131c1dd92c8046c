//! The names of files in a bundle of a run.

/// The folder of a bundle with the layout of a data folder.
pub const DATA: &str = "data";

/// Files of a bundle that are made for people.
pub const FOR_PEOPLE: [&str; 4] = ["README.txt", "report.html", "dialogues.csv", "dialogues.provenance.json"];
