//! The report and the table of an invented run as large as the published one: `cargo bench -p report --bench report`.
//!
//! Prints time and memory of reading the records and writing the page, with the bound of the whole command beside them, and
//! asserts nothing. `-- --keep FILE.html` keeps the page.

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use domain::DialogueKey;
use domain::seed::SplitMix64;
use report::Dialogues;
use report::analysis::scheme::{bundled, named};
use report::details::Details;
use report::dialogues::Exercises;
use report::export::Source;
use report::html::{ReportPage, write};
use report::input::{RunSource, read_run};
use report::views::Grid;
use results::log::{LogOptions, LogWriter, WinnerIndex};
use results::testing;
use serde_json::{Value, json};

/// Models of the published matrix with 20 iterations of every task, and with 50.
const PROPRIETARY: u32 = 10;
const OPEN: u32 = 31;
/// Tasks of three rounds, and of one.
const LONG: u32 = 8;
const SHORT: u32 = 18;
/// Cases of a task, and different answers to one.
const CASES: u32 = 10;
const ANSWERS: u64 = 6;
/// Records that are written at once.
const COMMIT: u64 = 16;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let value =
        |name: &str| Some(arguments.get(arguments.iter().position(|given| given == name)? + 1)?.as_str());
    if let Some(folder) = value("--read") {
        return read(Path::new(folder), value("--keep"));
    }
    let folder = tempfile::tempdir()?;
    let keys = make(folder.path())?;
    println!("{keys} dialogues");
    let page = folder.path().join("report.html");
    let page = value("--keep").or(page.to_str()).ok_or("no name")?;
    for (what, more, bound) in [("report", &["--keep", page][..], "5 s, 100 MB"), ("table", &[], "2.5 s")] {
        // In a process of its own: its memory is what is measured.
        let mut command = Command::new(std::env::current_exe()?);
        let told = command.arg("--read").arg(folder.path()).args(more).output()?;
        println!(
            "{what}: {} (bound of the command: {bound})",
            String::from_utf8_lossy(&told.stdout).trim_end()
        );
    }
    Ok(())
}

/// Dialogues of this many models and tasks, in any order.
fn keys() -> Vec<DialogueKey> {
    let mut keys = Vec::new();
    for model in 0..PROPRIETARY + OPEN {
        for task in 0..LONG + SHORT {
            for iteration in 0..if model < PROPRIETARY { 20 } else { 50 } {
                let format = ["turtle", "jsonld", "nt", "xml"][task as usize % 4];
                let task = format!("{}-{format}-{task:02}", if task < LONG { "Long" } else { "Short" });
                let model = format!("Model-{model:02}-{}B", model + 1);
                keys.push(DialogueKey {
                    model: model.as_str().into(),
                    task: task.as_str().into(),
                    iteration,
                });
            }
        }
    }
    keys
}

fn make(folder: &Path) -> Result<usize, Box<dyn Error>> {
    let (mut keys, mut random) = (keys(), SplitMix64::new(3));
    for at in (1..keys.len()).rev() {
        keys.swap(at, (random.next_u64() % (at as u64 + 1)) as usize);
    }
    let mut writer = LogWriter::open(folder, LogOptions::default())?;
    for (number, key) in (1..).zip(&keys) {
        let mut record =
            serde_json::to_value(testing::numbered(number, key.model.as_str(), key.iteration, true))?;
        let is_long = key.task.as_str().starts_with("Long");
        let case = u64::from(key.iteration % CASES);
        let of_task =
            key.task.as_str().bytes().fold(case, |seed, byte| SplitMix64::mix(seed ^ u64::from(byte)));
        let round = |nth: u64| {
            let mut round = record["rounds"][0].clone();
            round["prompt"]["text"] = words(of_task + nth, 300).into();
            round["answer"]["text"] = words(of_task + 100 * (nth + 1) + number % ANSWERS, 20).into();
            round
        };
        let rounds: Vec<Value> = (0..if is_long { 3 } else { 1 }).map(round).collect();
        let score = (random.unit() * 10.0).round() / 10.0;
        let part = json!({"combined": score, "f1": score, "brevity": 1.0, "answerParse": 1.0});
        let groups = json!({"0": part, "1": part, "2": part, "max": part, "mean": part, "meanExt": part, "last": part});
        record["rounds"] = rounds.into();
        record["outcome"]["scores"] = if is_long { groups } else { json!({"f1": score, "brevity": 1.0}) };
        record["provenance"]["task"]["class"] =
            if is_long { "RdfSyntaxFixList" } else { "RdfFriendCount" }.into();
        record["provenance"]["task"]["case"] = format!("case-{case}").into();
        record["key"] = json!(key);
        writer.append(&serde_json::from_value(record)?)?;
        if number % COMMIT == 0 {
            writer.commit()?;
        }
    }
    writer.commit()?;
    Ok(keys.len())
}

/// Invented words of a small language.
fn words(seed: u64, count: usize) -> String {
    let mut random = SplitMix64::new(seed);
    let word = |_| {
        let mut letters = SplitMix64::new((random.unit() * random.unit() * 60.0) as u64);
        let length = 2 + letters.next_u64() % 7;
        (0..length).map(|_| char::from(b'a' + (letters.next_u64() % 26) as u8)).collect::<String>()
    };
    (0..count).map(word).collect::<Vec<_>>().join(" ")
}

/// Reads the run, and writes its report where a file is named, or its table; says what that took.
fn read(log: &Path, file: Option<&str>) -> Result<(), Box<dyn Error>> {
    let (begun, keys) = (Instant::now(), keys());
    let mut manifest = testing::manifest("invented");
    manifest.planned_dialogues = keys.len() as u64;
    let index = WinnerIndex::build(log, None, keys.len(), |_| {})?;
    let records = &Source { run: manifest.run.clone(), log: log.to_owned(), cipher: None, index };
    let (mut all, mut details) = (Dialogues::default(), Details::new(false));
    let compare = &|_: &_| Err(String::new());
    let run = RunSource { records, manifest: &manifest, exercises: Exercises::Unknown, compare };
    read_run(&mut all, &run, || keys.iter().cloned(), file.map(|_| &mut details))?;
    let (combined, compass) = (&named(&bundled(), "sparql-b")?, &named(&bundled(), "semantic")?);
    match file {
        None => Grid::of(&all).table().write(None, &mut std::io::sink())?,
        Some(file) => {
            let page =
                ReportPage { title: "An invented run", dialogues: &all, judged: &[], combined, compass };
            write(&page, details, BufWriter::new(File::create(file)?))?;
        }
    }
    let [status, stat] = ["status", "stat"].map(|name| std::fs::read_to_string(format!("/proc/self/{name}")));
    let (status, stat) = (status?, stat?);
    let highest = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("? kB");
    // Behind the name, which may hold anything, fields 14 and 15 are hundredths of a second.
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().skip(11).take(2);
    let processor: f64 = fields.filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / 100.0;
    let seconds = begun.elapsed().as_secs_f64();
    println!("{seconds:.1} s, {processor:.1} s of processor time, at most {} in memory", highest.trim());
    Ok(())
}
