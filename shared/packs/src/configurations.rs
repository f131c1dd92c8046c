//! The configurations that come with the program. One is added as a file in `task-data/configurations` and a line here.

/// Each with its name, the text of its file; the first is that of a run without arguments.
pub const BUNDLED: [(&str, &str); 3] = [
    ("quick", include_str!("../../../task-data/configurations/quick.toml")),
    ("judged-demo", include_str!("../../../task-data/configurations/judged-demo.toml")),
    ("halu-quick", include_str!("../../../task-data/configurations/halu-quick.toml")),
];
