//! What the records of a benchmark take in a data folder, and whether those to come fit on its disk.

use std::fmt::{self, Display};
use std::path::Path;
use std::{fs, io};

use anyhow::Context;
use coordinator::configuration::Configuration;
use domain::RunId;
use domain::control::{BenchmarkView, Control};
use results::Sink;
use results::files::free_bytes;
use serde::Serialize;

use crate::kit::exit_code::explained;
use crate::kit::output::size;
use crate::place::local;

/// Bytes of a record in the log, where no record tells. On the safe side: dialogues of the published results of LLM-KG-Bench
/// compress to less than half of it.
const RECORD_BYTES: u64 = 4096;

/// What has been written of a benchmark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WrittenLogs {
    /// Bytes of its logs.
    pub bytes: u64,
    /// Dialogues that have a record.
    pub records: u64,
}

/// Whether the records of a benchmark fit on a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DiskForecast {
    /// Bytes of its logs.
    pub written_bytes: u64,
    /// Bytes of the records to come, about.
    pub coming_bytes: u64,
    /// Bytes that are free.
    pub free_bytes: u64,
}

impl DiskForecast {
    /// What this many records to come take, if they are like those that were written. Logs also hold records that do not count
    /// any more, so it is rather too much.
    pub fn of(written: WrittenLogs, left: u64, free_bytes: u64) -> Self {
        let left = u128::from(left);
        let coming = match written.records {
            0 => left * u128::from(RECORD_BYTES),
            records => (left * u128::from(written.bytes)).div_ceil(u128::from(records)),
        };
        let coming_bytes = u64::try_from(coming).unwrap_or(u64::MAX);
        Self { written_bytes: written.bytes, coming_bytes, free_bytes }
    }

    /// Whether there is room for the records to come.
    pub fn fits(&self) -> bool {
        self.coming_bytes <= self.free_bytes
    }
}

impl Display for DiskForecast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [written, coming, free] = [self.written_bytes, self.coming_bytes, self.free_bytes].map(size);
        match self.written_bytes {
            0 => write!(f, "about {coming}; {free} free"),
            _ => write!(f, "{written} so far, about {coming} more; {free} free"),
        }
    }
}

/// What is to come of a benchmark of this machine, and what is free for it; `None` where no record is to come. Of a judged one,
/// only of the runs that it has.
///
/// # Errors
/// Its logs or its disk cannot be measured.
pub fn forecast(view: &BenchmarkView, data_dir: &Path) -> anyhow::Result<Option<DiskForecast>> {
    let left: u64 = own_runs(view).iter().map(|(_, planned, done)| planned.saturating_sub(*done)).sum();
    if view.phase.is_over() || left == 0 {
        return Ok(None);
    }
    let free = free_bytes(data_dir);
    let free = free.with_context(|| format!("cannot ask for the free space of {}", data_dir.display()))?;
    Ok(Some(DiskForecast::of(written(view, data_dir)?, left, free)))
}

/// What has been written of a benchmark of this machine.
///
/// # Errors
/// Its logs cannot be measured.
pub fn written(view: &BenchmarkView, data_dir: &Path) -> anyhow::Result<WrittenLogs> {
    let mut written = WrittenLogs::default();
    for (run, _, done) in own_runs(view) {
        written.bytes += log_bytes(run, data_dir)?;
        written.records += done;
    }
    Ok(written)
}

/// What has been written of the unfinished run of a configuration, with which `kgfleet run` goes on; nothing where there is none.
/// The runs of judged benchmarks are not looked for.
///
/// # Errors
/// The run cannot be read.
pub async fn written_of_unfinished(
    configuration: &Configuration,
    data_dir: &Path,
) -> anyhow::Result<WrittenLogs> {
    if configuration.pipeline.is_some() {
        return Ok(WrittenLogs::default());
    }
    let access = local::beside(data_dir)?;
    match access.propose(local::submission(configuration)?).await {
        Ok(proposal) if !proposal.is_new() => {
            let view = access.view(&proposal.manifest().run).await.map_err(explained)?;
            written(&view, data_dir)
        }
        // What cannot be begun here has no run here.
        _ => Ok(WrittenLogs::default()),
    }
}

/// The runs whose logs are its own, with the numbers of dialogues that are planned and done: a judged benchmark may use those of
/// others.
fn own_runs(view: &BenchmarkView) -> Vec<(&RunId, u64, u64)> {
    if view.runs.is_empty() {
        return vec![(&view.run, view.planned, view.done())];
    }
    let own = view.runs.iter().filter(|run| local::is_run_of(&run.name, view.run.as_str()));
    own.map(|run| (&run.name, run.planned, run.scored + run.failed)).collect()
}

/// Bytes of the log of a run; 0 where it has none yet.
fn log_bytes(run: &RunId, data_dir: &Path) -> anyhow::Result<u64> {
    let log = Sink::new(data_dir).run_dir(run)?.log();
    let length = |file: io::Result<fs::DirEntry>| -> io::Result<u64> { Ok(file?.metadata()?.len()) };
    let bytes: io::Result<u64> = match fs::read_dir(&log) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        files => files.and_then(|files| files.map(length).sum()),
    };
    bytes.with_context(|| format!("cannot measure {}", log.display()))
}

#[cfg(test)]
mod tests {
    use domain::control::{RunLine, RunPhase};

    use super::*;

    #[test]
    fn records_to_come_are_as_long_as_those_that_are_there() {
        let written = WrittenLogs { bytes: 1_200_000_000, records: 1_000_000 };
        let forecast = DiskForecast::of(written, 2_833_333, 88_000_000_000);
        assert_eq!(forecast.coming_bytes, 3_399_999_600);
        assert_eq!(forecast.to_string(), "1.2 GB so far, about 3.4 GB more; 88 GB free");
        let third = DiskForecast::of(WrittenLogs { bytes: 10, records: 3 }, 1, 4);
        assert_eq!(third.coming_bytes, 4, "rather too much than too little");
    }

    #[test]
    fn before_the_first_record_each_one_counts_as_four_kibibytes() {
        let forecast = DiskForecast::of(WrittenLogs::default(), 45_500, 200_000_000_000);
        assert_eq!(forecast.coming_bytes, 45_500 * 4096);
        assert_eq!(forecast.to_string(), "about 190 MB; 200 GB free");
        // The head of a log says nothing about its records.
        let begun = DiskForecast::of(WrittenLogs { bytes: 64, records: 0 }, 10, 0);
        assert_eq!((begun.written_bytes, begun.coming_bytes), (64, 40_960));
    }

    #[test]
    fn what_is_as_long_as_the_room_fits_and_no_number_is_too_large() {
        let free = |free| DiskForecast::of(WrittenLogs { bytes: 500, records: 5 }, 10, free);
        assert!(free(1_000).fits() && !free(999).fits());
        let vast = DiskForecast::of(WrittenLogs { bytes: u64::MAX, records: 1 }, u64::MAX, u64::MAX);
        assert_eq!(vast.coming_bytes, u64::MAX);
        assert!(DiskForecast::of(WrittenLogs { bytes: 500, records: 5 }, 0, 0).fits());
    }

    /// A judged benchmark with answers of its own, half of which are there, and the verdicts of another one.
    fn judged() -> BenchmarkView {
        let run = |name: &str, planned, scored| RunLine {
            name: name.into(),
            stage: "ask".to_owned(),
            model: "m".into(),
            asks: "m".into(),
            phase: RunPhase::Active,
            planned,
            scored,
            failed: 0,
        };
        let runs = vec![run("own-1a2b3c.ask.m.1", 10, 5), run("other-1a2b3c.ask.m.1", 100, 100)];
        BenchmarkView { run: "own-1a2b3c".into(), planned: 10, scored: 5, runs, ..BenchmarkView::default() }
    }

    #[test]
    fn the_logs_of_a_benchmark_are_those_of_its_own_runs() {
        let data = tempfile::tempdir().unwrap();
        for run in ["own-1a2b3c.ask.m.1", "other-1a2b3c.ask.m.1"] {
            let log = data.path().join("runs").join(run).join("log");
            fs::create_dir_all(&log).unwrap();
            fs::write(log.join("00000001-00000001.kglog"), [0; 700]).unwrap();
            fs::write(log.join("00000002.kglog"), [0; 300]).unwrap();
        }
        let view = judged();
        assert_eq!(written(&view, data.path()).unwrap(), WrittenLogs { bytes: 1_000, records: 5 });
        let forecast = forecast(&view, data.path()).unwrap().unwrap();
        assert_eq!((forecast.written_bytes, forecast.coming_bytes), (1_000, 1_000));
        assert!(forecast.free_bytes > 0);
    }

    #[test]
    fn nothing_is_to_come_of_what_is_over_and_a_run_without_a_log_has_written_nothing() {
        let data = tempfile::tempdir().unwrap();
        let view = |phase, planned| BenchmarkView {
            run: "20260101-000000-00000001".into(),
            phase,
            planned,
            ..BenchmarkView::default()
        };
        let forecast = |view: BenchmarkView| forecast(&view, data.path()).unwrap();
        assert!(forecast(view(RunPhase::Finished, 10)).is_none());
        assert!(forecast(view(RunPhase::Cancelled, 10)).is_none());
        assert!(forecast(view(RunPhase::Active, 0)).is_none());
        let begun = forecast(view(RunPhase::Active, 10)).unwrap();
        assert_eq!((begun.written_bytes, begun.coming_bytes), (0, 40_960));
    }
}
