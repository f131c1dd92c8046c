//! The names of files in a bundle of a benchmark.

/// The folder of a bundle with the layout of a data folder.
pub const DATA: &str = "data";

/// The documents of a judged benchmark; a bundle without it is of a run.
pub const DOCUMENTS: &str = "data/benchmark.json";

/// Maximum size of these documents in bytes: those of a thousand models take some megabytes.
pub const DOCUMENTS_BYTES_MAX: u64 = 64 << 20;

/// What a bundle says of itself, for people.
pub const README: &str = "README.txt";

/// The report of a bundle.
pub const REPORT: &str = "report.html";

/// Which servers of pools made the records, where some did.
pub const SERVERS: &str = "servers.json";

/// Files in a bundle of a run that are made for people.
pub const FOR_PEOPLE: [&str; 4] = [README, REPORT, "dialogues.csv", "dialogues.provenance.json"];
