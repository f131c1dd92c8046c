//! Finding the dialogues that somebody wants to look at.

use serde_json::Value;
use vllm_sim::{FaultKind, FaultRule, FaultWhen};

use crate::harness::process::finish;
use crate::harness::terminal::Terminal;
use crate::harness::{Data, NT_TASK, Server};

const FAILED_DIALOGUES: i32 = 1;

/// A dialogue of [`one_of_each`].
const SHOWN: &str = "sim-weak/RdfFriendCount-nt-1/0";

/// What stands above the last part of a dialogue.
const LAST_HEADING: &str = "--- made at ---";

/// A run with one dialogue of each model.
fn one_of_each() -> Data {
    let data = Data::new();
    data.kgfleet(&["run", "--task", NT_TASK, "--iterations", "1"]).expect(0);
    data
}

/// `kgfleet show` on a terminal of so many lines, with these variables.
fn on_a_terminal(data: &Data, more: &[&str], lines: u16, variables: &[(&str, &str)]) -> Terminal {
    let mut command = data.command(&[&["show", "latest", SHOWN], more].concat());
    for name in ["KGFLEET_PAGER", "PAGER", "NO_COLOR"] {
        command.env_remove(name);
    }
    command.env("TERM", "xterm").envs(variables.iter().copied());
    Terminal::start(&mut command, 120, lines)
}

fn rows(listed: &Value) -> Vec<(&str, Option<f64>)> {
    let rows = listed["rows"].as_array().unwrap().iter();
    rows.map(|row| (row["dialogue"].as_str().unwrap(), row["score"].as_f64())).collect()
}

#[test]
fn the_worst_dialogues_are_listed_by_the_names_that_show_takes() {
    let data = Data::new();
    data.kgfleet(&["run", "--task", "RdfFriendCount-*-1", "--iterations", "3"]).expect(0);
    let list =
        |more: &[&str]| data.kgfleet(&[&["show", "latest", "--format", "json"], more].concat()).expect(0);
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
    data.kgfleet(&["show", "latest", "--model", "sim-wek"])
        .expect(2)
        .says(&["no model with a record is called `sim-wek`; did you mean `sim-weak`?"]);
    data.kgfleet(&["show", "latest", "--task", "rdffriend*"])
        .expect(2)
        .says(&["did you mean `RdfFriendCount-"]);
}

#[test]
fn what_is_longer_than_the_terminal_goes_through_the_pager() {
    let data = one_of_each();
    let paged = data.path().join("paged.txt");
    let pager = format!("cat > '{}'", paged.display());
    for (variables, is_coloured) in [
        (vec![("PAGER", pager.as_str())], true),
        (vec![("KGFLEET_PAGER", pager.as_str()), ("PAGER", "false"), ("NO_COLOR", "1")], false),
    ] {
        let (status, _) = on_a_terminal(&data, &[], 24, &variables).finish_whole();
        assert_eq!(status.code(), Some(0));
        let text = std::fs::read_to_string(&paged).unwrap();
        std::fs::remove_file(&paged).unwrap();
        let heading = "--- prompt 1 (first) ---";
        let heading = if is_coloured { format!("\u{1b}[1m{heading}\u{1b}[0m") } else { heading.to_owned() };
        assert!(text.contains(&heading) && text.contains(LAST_HEADING), "{text}");
        assert_eq!(text.contains('\u{1b}'), is_coloured, "{text}");
    }
    // Who leaves before the end has seen enough.
    let (status, _) = on_a_terminal(&data, &[], 24, &[("PAGER", "true")]).finish_whole();
    assert_eq!(status.code(), Some(0));
    // One that is not there is done without.
    let (status, lines) = on_a_terminal(&data, &[], 24, &[("PAGER", "/no/such/pager")]).finish_whole();
    assert_eq!(status.code(), Some(0));
    assert!(lines.iter().any(|line| line == LAST_HEADING), "{lines:?}");
}

#[test]
fn nothing_is_paged_where_it_fits_where_it_is_declined_or_off_a_terminal() {
    let data = one_of_each();
    let paged = data.path().join("paged.txt");
    let pager = format!("cat > '{}'", paged.display());
    let (all, own) = (("PAGER", pager.as_str()), ("KGFLEET_PAGER", pager.as_str()));
    for (more, lines, variables, last) in [
        (&["--no-pager"][..], 24, vec![own], LAST_HEADING),
        (&["--json"][..], 24, vec![own], "}"),
        (&[][..], 1_000, vec![own], LAST_HEADING),
        (&[][..], 24, vec![("KGFLEET_PAGER", ""), all], LAST_HEADING),
        (&[][..], 24, vec![("PAGER", "cat")], LAST_HEADING),
    ] {
        let (status, shown) = on_a_terminal(&data, more, lines, &variables).finish_whole();
        assert_eq!(status.code(), Some(0));
        assert!(shown.iter().any(|line| line == last), "{more:?} {variables:?}: {shown:?}");
        assert!(!paged.exists(), "{more:?} {variables:?}");
    }
    let piped =
        finish(data.command(&["show", "latest", SHOWN]).envs([all, own]).env("TERM", "xterm")).expect(0);
    assert!(!paged.exists() && !piped.stdout.contains('\u{1b}'), "{piped}");
    piped.prints(&[LAST_HEADING]);
}

#[test]
fn dialogues_that_failed_are_listed_with_their_cause() {
    let data = Data::new();
    let always = FaultRule::new(FaultWhen::Always, FaultKind::Status { code: 400, retry_after_s: None });
    let server = Server::with_faults(vec![always]);
    data.kgfleet(&server.run_arguments(&[NT_TASK], 3, 2)).expect(FAILED_DIALOGUES);
    let list = |condition: &str| data.kgfleet(&["show", "latest", condition, "--format", "csv"]).expect(0);
    let failed = list("--failed").stdout;
    assert_eq!(failed.lines().count(), 4, "{failed}");
    assert!(failed.lines().skip(1).all(|line| line.contains(",bad-request,")), "{failed}");
    assert_eq!(list("--worst=3").stdout.lines().count(), 1, "without a score none is the worst");
    assert_eq!(list("--limited").stdout.lines().count(), 1);
}

#[test]
fn answers_that_were_cut_are_told_wherever_a_run_is_seen() {
    let data = Data::new();
    let server = Server::start();
    let cut = "4 of 4 answers were cut by the limit of tokens";
    let run = server.run_arguments(&[NT_TASK, "RdfFriendCount-nt-2"], 2, 2);
    let run: Vec<&str> = run.iter().map(|argument| &**argument).chain(["--max-tokens", "1"]).collect();
    data.kgfleet(&run).expect(0).says(&[cut, &format!("({NT_TASK} 2, RdfFriendCount-nt-2 2)")]);
    data.kgfleet(&["status", "latest"]).expect(0).says(&[cut]);
    let status = data.kgfleet(&["status", "latest", "--json"]).expect(0).json();
    assert_eq!(status["cells"][0]["odd"], serde_json::json!([["cut", 2]]));
    let table = data.kgfleet(&["table", "latest", "--show", "cut", "--format", "json"]).expect(0).json();
    assert_eq!(table["rows"][1]["cut"], 2, "{table}");
    let list = |more: &[&str]| {
        data.kgfleet(&[&["show", "latest", "--cut", "--format", "csv"], more].concat()).expect(0).stdout
    };
    assert_eq!(list(&[]).lines().count(), 5);
    let one = list(&["--task", NT_TASK]);
    let name = one.lines().nth(1).unwrap().split(',').nth(1).unwrap();
    data.kgfleet(&["show", "latest", name]).expect(0).prints(&["; cut) ---"]);
    let file = data.path().join("report.html");
    data.kgfleet(&["report", "latest", "--out", file.to_str().unwrap()]).expect(0);
    assert!(std::fs::read_to_string(file).unwrap().contains(cut));
    // Whoever has room says nothing of it.
    let whole = Data::new();
    let whole_run = whole.kgfleet(&server.run_arguments(&[NT_TASK], 2, 2)).expect(0);
    assert!(!whole_run.stderr.contains("were cut"), "{whole_run}");
    let limits: Vec<_> =
        whole.run().records().values().map(|entry| entry.provenance.model.max_tokens).collect();
    assert!(limits.iter().all(|limit| limit.is_some_and(|limit| limit > 4096)), "{limits:?}");
}
