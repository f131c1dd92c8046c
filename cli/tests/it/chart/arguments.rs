//! Every command line of the chart is one that the binary takes.

use std::collections::BTreeSet;

use super::manifests::{chart_tests, containers, pods, snapshot, texts};

#[test]
fn the_binary_takes_every_command_line_of_the_chart() {
    let mut verbs = BTreeSet::new();
    let mut value_sets = 0;
    for file in std::fs::read_dir(chart_tests().join("snapshots")).unwrap() {
        let path = file.unwrap().path();
        value_sets += 1;
        for object in snapshot(&path) {
            for container in pods(&object).into_iter().flat_map(containers) {
                let line = [texts(&container["command"]), texts(&container["args"])].concat();
                if line[0] != "kgfleet" {
                    continue;
                }
                verbs.insert(line[1].clone());
                if let Err(error) = cli::command_line().try_get_matches_from(&line) {
                    panic!("{}: {}: {error}", path.display(), line.join(" "));
                }
            }
        }
    }
    assert!(value_sets >= 8, "{value_sets} value sets");
    assert_eq!(
        verbs.iter().map(String::as_str).collect::<Vec<_>>(),
        ["conduct", "coordinator", "fleet", "submit", "worker"]
    );
}
