//! Writes the report of an invented run as large as the published one, 41 models × 26 tasks × 20 or 50 dialogues, to see how
//! long that takes and how it looks: `cargo run -p report --example large -- FILE.html [MODELS]`.

use std::fs::File;
use std::io::BufWriter;
use std::time::Instant;

use domain::seed::SplitMix64;
use report::Dialogues;
use report::analysis::scheme::{bundled, named};
use report::details::{Details, DialogueDetail};
use report::dialogues::{Column, Exercises, Origin, ReportedDialogue};
use report::html::{ReportPage, write};
use serde_json::json;

/// Without another number.
const MODELS_DEFAULT: usize = 41;
const TASKS: usize = 26;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("name the file to write")?;
    let models = std::env::args().nth(2).map_or(Ok(MODELS_DEFAULT), |number| number.parse())?;
    let started = Instant::now();
    let mut all = Dialogues::default();
    let mut details = Details::new(false);
    let mut random = SplitMix64::new(1);
    let long = "An answer of some length, as models give them. ".repeat(60);
    for model in 0..models {
        let family = ["Llama", "Qwen", "Phi", "Mistral", "Gemma", "Claude", "GPT", "Yi"][model % 8];
        let size = [0.5, 1.5, 3.0, 7.0, 14.0, 32.0, 72.0][model % 7];
        let name = format!("{family}-{model}-{size}B");
        let column = all.column(Column {
            model: name.clone(),
            name,
            family: family.to_owned(),
            size: Some(size),
            active: None,
            origin: Origin::Published,
            exercises: Exercises::Published,
        });
        let iterations = if model < 10 { 20 } else { 50 };
        for task in 0..TASKS {
            let format = ["turtle", "jsonld", "xml", "nt"][task % 4];
            let task = match task {
                0..4 => {
                    all.task(&format!("RdfSyntaxFixList-{format}"), "RdfSyntaxFixList", &["max", "combined"])
                }
                _ => all.task(&format!("RdfFriendCount-{format}-{}", task / 4), "RdfFriendCount", &["f1"]),
            };
            for iteration in 0..iterations {
                let skill = (size.ln() + 1.0) / 6.0;
                let score = (skill + random.unit() * 0.6 - 0.2).clamp(0.0, 1.0);
                let score = (score * 10.0).round() / 10.0;
                let first = json!({ "combined": score * 0.8, "brevity": 1.0, "answerParse": 1.0 });
                let best = json!({ "combined": score, "brevity": 1.0, "answerParse": 1.0 });
                let scores = json!({ "f1": score, "brevity": 1.0, "0": first, "max": best, "meanExt": best });
                let scores = scores.as_object().ok_or("no object")?;
                let words = random.next_u64();
                let record = json!({
                    "modelId": "GPT--m--m", "taskInfo": { "taskId": "RdfFriendCount", "version": "4.4" }, "scores": scores,
                    "info": {}, "interactions": [["prompt", "t", format!("{words} {long}")], ["response", "t", format!("{words} {long}")]],
                });
                let record = results::llmkgbench::ResultRecord::from_value(record)?;
                details.push(DialogueDetail::of_result(&record), false)?;
                let mut dialogue = ReportedDialogue::of(column, task, iteration);
                dialogue.rounds = 1;
                dialogue.prompt_tokens = Some(900);
                dialogue.completion_tokens = Some(words % 400);
                dialogue.seconds = Some(random.unit() * 20.0);
                all.add(dialogue, &(iteration % 5).to_string(), Ok(scores));
            }
        }
    }
    println!("{} dialogues after {:.1} s", all.len(), started.elapsed().as_secs_f64());
    let (combined, compass) = (named(&bundled(), "sparql-b")?, named(&bundled(), "semantic")?);
    let judged = &[];
    let report = ReportPage {
        title: "An invented run",
        dialogues: &all,
        judged,
        combined: &combined,
        compass: &compass,
    };
    write(&report, details, BufWriter::new(File::create(&path)?))?;
    println!("written after {:.1} s", started.elapsed().as_secs_f64());
    Ok(())
}
