//! Runs that wait for batches at a provider: what becomes of the batches when the run is removed or over. Questions are
//! gathered for 20 s before they are a batch, which is what these tests wait for.

use std::fs;
use std::process::Command;

use ::harness::batch_provider::{BatchProvider, ProvidedStage};
use rustix::process::Signal;
use tokio::runtime::Runtime;

use crate::harness::{Data, Running};

/// A task that asks once.
const TASK: &str = "RdfConnectionExplainStatic-turtle";

/// A provider in the test's own process.
struct Provider {
    at: BatchProvider,
    runtime: Runtime,
}

impl Provider {
    fn start() -> Self {
        let runtime = Runtime::new().unwrap();
        Self { at: runtime.block_on(BatchProvider::start()), runtime }
    }

    /// Starts a run on each of these machines, and interrupts it while its batch is under way.
    fn interrupted(&self, machines: &[&Data]) {
        let started: Vec<Running> = machines.iter().map(|data| self.run(data)).collect();
        self.runtime.block_on(self.at.made(started.len()));
        for process in started {
            process.signal(Signal::INT);
            process.finish().expect(130);
        }
    }

    fn run(&self, data: &Data) -> Running {
        let key = data.write("key", "sk-0123456789");
        let text = format!(
            "name = 'batched'\niterations = 2\ntasks = ['{TASK}']\n[[models]]\nlabel = 'm'\n\
             connector = 'anthropic'\nmode = 'batch'\nendpoint = '{}'\nkey_file = '{}'\n",
            self.at.url,
            key.display()
        );
        let configuration = data.write("batched.toml", text);
        data.start(&["run", configuration.to_str().unwrap(), "--evaluators", "1"])
    }

    /// Batches at this stage.
    fn count(&self, stage: ProvidedStage) -> usize {
        self.at.batches().iter().filter(|batch| batch.stage == stage).count()
    }
}

/// Batches that this machine remembers.
fn documents(data: &Data) -> usize {
    fs::read_dir(data.path().join("batches")).unwrap().count()
}

#[test]
fn a_removed_run_takes_its_batches_with_it_or_says_where_they_are() {
    let (provider, data, keyless, elsewhere) = (Provider::start(), Data::new(), Data::new(), Data::new());
    provider.interrupted(&[&data, &keyless]);
    let copied = Command::new("cp").arg("-r").arg(data.path().join(".")).arg(elsewhere.path()).status();
    assert!(copied.unwrap().success());
    let calls = provider.at.calls();

    // Where a copy of the run is, its key is not used.
    let copy = elsewhere.run();
    elsewhere.kgfleet(&["rm", copy.name()]).expect(0).says(&["batch_", "not known as yours", "removed run"]);
    // Nor is there one where it was deleted.
    fs::remove_file(keyless.path().join("key")).unwrap();
    let run = keyless.run();
    let removed = keyless.kgfleet(&["rm", run.name()]).expect(0);
    let place = format!("of m at {} may go on", provider.at.url);
    removed.says(&["warning: batch batch_", &place, "https://platform.claude.com", "removed run"]);
    assert_eq!(provider.at.calls(), calls);
    assert!(keyless.runs().is_empty() && elsewhere.runs().is_empty(), "they are removed all the same");
    assert_eq!((documents(&keyless), documents(&elsewhere)), (1, 1));

    let run = data.run();
    let removed = data.kgfleet(&["rm", run.name()]).expect(0);
    let removed = removed.says(&["batches at their providers cleared away: 1", "removed run"]);
    assert!(!removed.stderr.contains("warning"), "{removed}");
    assert!(data.runs().is_empty());
    assert_eq!(documents(&data), 0);
    let stages = (provider.count(ProvidedStage::Cancelled), provider.count(ProvidedStage::UnderWay));
    assert_eq!((stages, provider.at.stored().len()), ((1, 1), 1));
}

#[test]
fn a_run_that_is_resumed_to_its_end_leaves_nothing_at_its_provider() {
    let (provider, data) = (Provider::start(), Data::new());
    provider.interrupted(&[&data]);
    provider.at.end(0, ProvidedStage::Ended);
    assert_eq!((provider.at.stored().len(), documents(&data)), (1, 1), "it is there for whoever goes on");
    let run = data.run();
    data.kgfleet(&["resume", run.name(), "--evaluators", "1"]).expect(0).says(&["2 dialogues scored"]);
    assert_eq!(provider.at.batches().len(), 1, "nothing is asked twice");
    assert_eq!((provider.at.stored().len(), documents(&data)), (0, 0));
}
