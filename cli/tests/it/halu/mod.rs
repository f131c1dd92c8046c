//! KGHaluBench through the command line: questions from graphs, judging with good, bad and absent judges, results, and
//! comparison with people.

use domain::control::BenchmarkView;

use crate::harness::{Data, Finished, invented_graph};

mod carried;
mod generating;
mod judges;
mod killed;
mod numbers;

/// The roles of judges.
const ROLES: [&str; 6] = ["writer", "abstention", "embedder", "classifier", "entailment", "expert"];

/// The stages, in order.
const STAGES: [&str; 7] = ["ask", "facts", "abstain", "similarity", "nli", "llm", "expert"];

/// Draws a pack of so many questions and assessments into the folder; its path.
fn pack(data: &Data, questions: usize, assessments: usize) -> String {
    let out = data.path().join("drawn.kgpack").to_str().unwrap().to_owned();
    let (questions, assessments) = (questions.to_string(), assessments.to_string());
    let numbers = ["--questions", &questions, "--assessments", &assessments, "--seed", "7"];
    draw_invented(data, &[&["--out", &out][..], &numbers].concat());
    out
}

/// Draws a pack from the invented graph of seed 1.
fn draw_invented(data: &Data, arguments: &[&str]) -> Finished {
    let graph = data.write("graph.ttl", invented_graph::turtle(1));
    let mapping = data.write("mapping.toml", invented_graph::MAPPING);
    let generate =
        ["halu", "generate", "--kg", graph.to_str().unwrap(), "--mapping", mapping.to_str().unwrap()];
    data.kgfleet(&[&generate[..], arguments].concat()).expect(0)
}

/// A configuration of simulated models of these skills, with judges of this skill.
fn configuration(pack: &str, questions: usize, skills: &[f64], judges: f64) -> String {
    let model = |(number, skill): (usize, &f64)| {
        format!("[[models]]\nlabel = \"m{number:02}\"\nconnector = \"simulated\"\nskill = {skill}\n")
    };
    let models: String = skills.iter().enumerate().map(model).collect();
    let judge = |role: &str| {
        format!("[judges.{role}]\nlabel = \"{role}-{judges}\"\nconnector = \"simulated\"\nskill = {judges}\n")
    };
    format!(
        "name = \"halu\"\npipeline = \"kghalubench\"\npack = \"{pack}\"\nseed = 1\niterations = {questions}\n\
         tasks = [\"KGHalu-*\"]\n{models}{}",
        ROLES.map(judge).concat()
    )
}

/// The same with a judge of another skill.
fn with_skill(configuration: &str, role: &str, skill: f64) -> String {
    with_judge(
        configuration,
        role,
        &format!("label = \"{role}-{skill}\"\nconnector = \"simulated\"\nskill = {skill}\n"),
    )
}

/// The same with another server in the place of a judge.
fn with_judge_at(configuration: &str, role: &str, model: &str, url: &str) -> String {
    let judge = format!(
        "label = \"{model}\"\nconnector = \"openai-compatible\"\nendpoint = \"{url}\"\nstream = false\n"
    );
    with_judge(configuration, role, &judge)
}

fn with_judge(configuration: &str, role: &str, judge: &str) -> String {
    let heading = format!("[judges.{role}]\n");
    let (before, behind) = configuration.split_once(&heading).unwrap();
    let rest = behind.find("[judges.").map_or("", |place| &behind[place..]);
    format!("{before}{heading}{judge}{rest}")
}

fn view(finished: &Finished) -> BenchmarkView {
    serde_json::from_value(finished.json()).unwrap_or_else(|error| panic!("{error}: {finished}"))
}

/// A table of a pipeline, row by row.
fn rows(data: &Data, pipeline: &str, show: &str) -> Vec<serde_json::Value> {
    let table = data.kgfleet(&["table", pipeline, "--show", show, "--format", "json"]).expect(0);
    table.json()["rows"].as_array().unwrap().clone()
}
