//! The launcher that is no chart and no batch system: the compose file's command lines.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::manifests::texts;

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy")
}

#[test]
fn the_binary_takes_every_command_line_of_the_compose_file() {
    let text = std::fs::read_to_string(deploy().join("compose/compose.yaml")).unwrap();
    let compose: Value = serde_saphyr::from_str(&text).unwrap();
    let mut taken = 0;
    for (name, service) in compose["services"].as_object().unwrap() {
        if !service["image"].as_str().unwrap().contains("KGFLEET_IMAGE") {
            continue;
        }
        let line = [vec!["kgfleet".to_owned()], texts(&service["command"])].concat();
        if let Err(error) = cli::command_line().try_get_matches_from(&line) {
            panic!("{name}: {}: {error}", line.join(" "));
        }
        taken += 1;
    }
    assert_eq!(taken, 6);
}
