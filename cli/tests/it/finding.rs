//! Finding the dialogues that somebody wants to look at.

use serde_json::Value;
use vllm_sim::{FaultKind, FaultRule, FaultWhen};

use crate::harness::{Data, NT_TASK, Server};

const FAILED_DIALOGUES: i32 = 1;

fn rows(listed: &Value) -> Vec<(&str, Option<f64>)> {
    let rows = listed["rows"].as_array().unwrap().iter();
    rows.map(|row| (row["dialogue"].as_str().unwrap(), row["score"].as_f64())).collect()
}

#[test]
fn the_worst_dialogues_are_listed_by_the_names_that_show_takes() {
    let data = Data::new();
    data.kgfleet(&["run", "--task", "RdfFriendCount-*-1", "--iterations", "3"]).expect(0);
    let list = |more: &[&str]| {
        data.kgfleet(&[&["dialogues", "latest", "--format", "json"], more].concat()).expect(0)
    };
    let all = list(&[]).json();
    let worst = list(&["--worst", "4", "--model", "sim-w*"]).json();
    let worst = rows(&worst);
    let mut of_the_weak: Vec<_> =
        rows(&all).into_iter().filter(|(name, _)| name.starts_with("sim-weak/")).collect();
    of_the_weak.sort_by(|a, b| a.1.unwrap().total_cmp(&b.1.unwrap()));
    assert_eq!(worst, of_the_weak[..4]);
    for (name, score) in worst {
        let shown = data.kgfleet(&["show", "latest", name]).expect(0);
        shown.prints(&[&format!("score: {:.3} (f1)", score.unwrap()), "prompt 1"]);
    }
    list(&["--failed"]).says(&["no dialogue of", "is like this"]);
    data.kgfleet(&["dialogues", "latest", "--model", "sim-wek"])
        .expect(2)
        .says(&["no model with a record is called `sim-wek`; did you mean `sim-weak`?"]);
    data.kgfleet(&["dialogues", "latest", "--task", "rdffriend*"])
        .expect(2)
        .says(&["did you mean `RdfFriendCount-"]);
}

#[test]
fn dialogues_that_failed_are_listed_with_their_cause() {
    let data = Data::new();
    let always = FaultRule::new(FaultWhen::Always, FaultKind::Status { code: 400, retry_after_s: None });
    let server = Server::with_faults(vec![always]);
    data.kgfleet(&server.run_arguments(&[NT_TASK], 3, 2)).expect(FAILED_DIALOGUES);
    let list =
        |condition: &str| data.kgfleet(&["dialogues", "latest", condition, "--format", "csv"]).expect(0);
    let failed = list("--failed").stdout;
    assert_eq!(failed.lines().count(), 4, "{failed}");
    assert!(failed.lines().skip(1).all(|line| line.contains(",bad-request,")), "{failed}");
    assert_eq!(list("--worst=3").stdout.lines().count(), 1, "without a score none is the worst");
    assert_eq!(list("--limited").stdout.lines().count(), 1);
}

#[test]
fn the_doctor_names_calls_that_a_server_refused() {
    let data = Data::new();
    let first = FaultRule::new(
        FaultWhen::NthOfConversation(1),
        FaultKind::Status { code: 503, retry_after_s: Some(0) },
    );
    let server = Server::with_faults(vec![first]);
    data.kgfleet(&server.run_arguments(&[NT_TASK], 6, 2)).expect(0);
    let told = data.kgfleet(&["doctor", "latest", "--json"]).expect(0).json();
    let figures = &told["figures"];
    assert_eq!(
        (&figures["dialogues"], &figures["calls"], &figures["failed_calls"]),
        (&6.into(), &6.into(), &6.into())
    );
    let causes: Vec<&str> =
        told["findings"].as_array().unwrap().iter().map(|found| found["cause"].as_str().unwrap()).collect();
    assert!(causes.contains(&"server"), "{told}");
    data.kgfleet(&["doctor", "latest"])
        .expect(0)
        .prints(&["server: 50 % of the calls failed (more than 5 %)"]);
    data.kgfleet(&["doctor", "nobody"]).expect(3).says(&["nobody"]);
}
