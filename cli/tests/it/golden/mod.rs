//! What people see of three benchmarks stays as it is, to the letter, while the program behind it changes.
//!
//! [`live`] runs them, in a folder and by a fleet, and looks at what does not depend on time. [`kept`] shows one run of each
//! that was sealed when it was over, so that times, names and every byte of an export are always the same.
//! `KGFLEET_BLESS=1 cargo test -p cli --test it golden` writes the files in `cli/testdata/golden` anew: whoever does it reads
//! the difference, and says in the commit why people see something else from now on.

mod archive;
mod kept;
mod live;
mod transcript;

use transcript::Transcript;

/// The bundled configurations, with as many iterations as the test can afford.
const BENCHMARKS: [(&str, &str); 3] = [("quick", "2"), ("judged-demo", "5"), ("halu-quick", "3")];

/// The tables of `kgfleet table --show`.
const SHOWS: [&str; 15] = [
    "scores",
    "models",
    "statistics",
    "preferences",
    "preference-tests",
    "combined",
    "groups",
    "dialogues",
    "halu",
    "halu-answers",
    "halu-groups",
    "halu-rates",
    "halu-stages",
    "halu-types",
    "halu-verdicts",
];

/// The file formats of `kgfleet export`, with the forms that one has.
const EXPORTS: [&[&str]; 5] = [&["result-json"], &["csv"], &["csv", "--form", "wide"], &["xlsx"], &["jsonl"]];
