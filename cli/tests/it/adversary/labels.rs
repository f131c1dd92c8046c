//! Labels that steer a terminal or the eyes of a reader.

use crate::harness::{Cluster, Data, NT_TASK};

const USAGE: i32 = 2;

#[test]
fn a_label_that_steers_a_terminal_is_refused_before_anything_is_planned() {
    let (data, cluster) = (Data::new(), Cluster::start());
    let coordinator = cluster.as_ref().map(|cluster| (cluster, cluster.coordinator()));
    for label in [r"m\u001b[2J", r"m\u202etxt", r"m\nn"] {
        let text = format!(
            "name = 'a'\niterations = 1\ntasks = ['{NT_TASK}']\n[[models]]\nlabel = \"{label}\"\nconnector = 'simulated'\n"
        );
        let file = data.write("steering.toml", text);
        let file = file.to_str().unwrap();
        let mut refused = vec![data.kgfleet(&["plan", file]), data.kgfleet(&["run", file])];
        if let Some((cluster, coordinator)) = &coordinator {
            refused.push(cluster.kgfleet(coordinator, &["submit", file]));
            assert_eq!(cluster.kgfleet(coordinator, &["status", "--json"]).expect(0).stdout, "");
        }
        for refused in refused {
            let refused =
                refused.expect(USAGE).says(&["models[0].label", "control character or a direction mark"]);
            assert!(!refused.stderr.contains(['\u{1b}', '\u{202e}']), "{refused}");
        }
        assert!(data.runs().is_empty());
    }
}
