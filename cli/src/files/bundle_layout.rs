//! What a bundle of a run is made of.

/// The folder of a bundle that is laid out as a data folder.
pub const DATA: &str = "data";

/// What stands in a bundle for people, beside the run.
pub const FOR_PEOPLE: [&str; 4] = ["README.txt", "report.html", "dialogues.csv", "dialogues.provenance.json"];
