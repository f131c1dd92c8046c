//! Writes what servers have shown of their models into a table of sizes. The table is a person's text: all but the measured
//! figures stays as it is, comments and order too.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use anyhow::Context;
use domain::pools::ServerUsage;

use super::table::{MeasuredSize, Sizes};
use crate::kit::exit_code::{Exit, usage};

/// Seconds that a server must have worked for its speed to count: at first it is not full, and at its end neither.
const WORKED_MIN_S: f64 = 180.0;

/// What servers have shown, by model: those of the table whose loading and speed are both known.
pub fn measured(ended: &[ServerUsage], sizes: &Sizes) -> BTreeMap<String, MeasuredSize> {
    let of_model = |(name, size): (&String, &super::table::Size)| {
        let served: Vec<(f64, &ServerUsage)> = (ended.iter().filter(|usage| usage.model == *name))
            .filter_map(|usage| Some((usage.load_s()?, usage)))
            .filter(|(_, usage)| usage.dialogues > 0 && usage.work_s() >= WORKED_MIN_S)
            .collect();
        let mut loads: Vec<f64> = served.iter().map(|(load, _)| *load).collect();
        loads.sort_by(f64::total_cmp);
        // One that waited for a slow disk once says little; so the one in the middle counts.
        let load = loads.get(loads.len() / 2)?;
        let worked: f64 = served.iter().map(|(_, usage)| usage.work_s()).sum();
        let dialogues: u64 = served.iter().map(|(_, usage)| usage.dialogues).sum();
        let rate = dialogues as f64 / worked;
        let measured = MeasuredSize {
            load_minutes: rounded(load / 60.0),
            tokens_per_second: rounded(rate * f64::from(sizes.tokens_of(size))),
            runs: u32::try_from(served.len()).unwrap_or(u32::MAX),
        };
        Some((name.clone(), measured))
    };
    sizes.models.iter().filter_map(of_model).collect()
}

/// To two digits after the point.
fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// Writes them into this table: the file, if there is one, else a copy of the table in `from`.
///
/// # Errors
/// A file cannot be read or written, or a model stands in the table in a form that cannot be changed.
pub fn write(
    file: &Path,
    from: Option<&Path>,
    measured: &BTreeMap<String, MeasuredSize>,
) -> anyhow::Result<()> {
    let from = if file.exists() { Some(file) } else { from };
    let text = Sizes::text(from)?;
    let text = with_measured(&text, measured);
    let learnt = Sizes::parse(&text, &file.display().to_string())?;
    let differs = |(name, measured): (&String, &MeasuredSize)| {
        learnt.models.get(name).and_then(|size| size.measured) != Some(*measured)
    };
    if let Some((name, _)) = measured.iter().find(|(name, measured)| differs((name, measured))) {
        return Err(usage!(
            "{}: `{name}` has no section [models.\"{name}\"] of its own; what was measured of it is written there",
            file.display()
        ));
    }
    // It may be a table that a person wrote: a full disk or a kill leaves the one of before.
    results::files::replace(file, |mut table| table.write_all(text.as_bytes()).map(|()| table))
        .with_context(|| format!("cannot write {}", file.display()))
        .map_err(Exit::usage)
}

/// The text with these figures in sections of their own, `[models."NAME".measured]`.
fn with_measured(text: &str, measured: &BTreeMap<String, MeasuredSize>) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (name, MeasuredSize { load_minutes, tokens_per_second, runs }) in measured {
        let (of_model, header) = (format!("[models.\"{name}\"]"), format!("[models.\"{name}\".measured]"));
        let figures = [
            format!("load_minutes = {load_minutes:?}"),
            format!("tokens_per_second = {tokens_per_second:?}"),
            format!("runs = {runs}"),
        ];
        if let Some(at) = lines.iter().position(|line| line.trim() == header) {
            let end = end_of_section(&lines, at);
            lines.splice(at + 1..end, figures);
        } else if let Some(at) = lines.iter().position(|line| line.trim() == of_model) {
            let end = end_of_section(&lines, at);
            let section = [String::new(), header].into_iter().chain(figures);
            lines.splice(end..end, section);
        }
    }
    lines.join("\n") + "\n"
}

/// Where the section that begins there ends: after its last key. Blank lines and comments behind it belong to the next one.
fn end_of_section(lines: &[String], begin: usize) -> usize {
    let next = lines.iter().skip(begin + 1).position(|line| line.trim_start().starts_with('['));
    let next = next.map_or(lines.len(), |after| begin + 1 + after);
    let is_key = |line: &String| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    lines[begin..next].iter().rposition(is_key).map_or(begin + 1, |last| begin + last + 1)
}

#[cfg(test)]
mod tests {
    use super::super::costs::tests::usage;
    use super::*;

    const SMALL: &str = "Qwen/Qwen2-0.5B-Instruct";

    #[test]
    fn what_servers_have_shown_is_written_into_the_table_and_read_from_it() {
        let shipped = Sizes::read(None).unwrap();
        let slow = usage(SMALL, 45, 3_600);
        let short = usage(SMALL, 1, 5);
        let short = ServerUsage { ended_at: short.loaded_at.unwrap(), ..short };
        let never = ServerUsage { loaded_at: None, ..usage(SMALL, 9, 0) };
        let ended =
            [usage(SMALL, 4, 7_200), usage(SMALL, 6, 7_200), slow, short, never, usage("org/x", 1, 9)];
        let learnt = measured(&ended, &shipped);
        // 18 000 dialogues in three hours, of 400 tokens each.
        let figures = MeasuredSize { load_minutes: 6.0, tokens_per_second: 666.67, runs: 3 };
        assert_eq!(learnt, BTreeMap::from([(SMALL.to_owned(), figures)]));

        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("table.toml");
        write(&file, None, &learnt).unwrap();
        let (before, after) = (Sizes::text(None).unwrap(), std::fs::read_to_string(&file).unwrap());
        let header = format!("[models.\"{SMALL}\".measured]");
        let section = format!("\n{header}\nload_minutes = 6.0\ntokens_per_second = 666.67\nruns = 3\n");
        assert_eq!(after.replace(&section, ""), before, "nothing else has changed");
        let size = &Sizes::read(Some(&file)).unwrap().models[SMALL];
        assert_eq!((size.minutes_to_load(), size.speed()), (6.0, 666.67));
        // Later figures take the place of these.
        let later = MeasuredSize { load_minutes: 5.5, tokens_per_second: 700.0, runs: 4 };
        write(&file, None, &BTreeMap::from([(SMALL.to_owned(), later)])).unwrap();
        assert_eq!(Sizes::read(Some(&file)).unwrap().models[SMALL].measured, Some(later));
        let again = std::fs::read_to_string(&file).unwrap();
        assert_eq!(again.lines().count(), after.lines().count());
    }

    #[test]
    fn a_model_that_has_no_section_is_not_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("table.toml");
        let figures = MeasuredSize { load_minutes: 1.0, tokens_per_second: 1.0, runs: 1 };
        let refused = write(&file, None, &BTreeMap::from([("org/unknown".to_owned(), figures)])).unwrap_err();
        assert!(format!("{refused:#}").contains("`org/unknown` has no section"), "{refused:#}");
        assert!(!file.exists());
    }
}
