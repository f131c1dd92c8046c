//! Counts what the runs of judged benchmarks have used, where a cap bounds that.

use benchmarks::names::benchmark_of;
use domain::RunId;

use crate::benchmarks::Benchmarks;
use crate::benchmarks::caps::{CountedBenchmark, SpentByRun};
use crate::benchmarks::documents::JudgedBenchmark;
use crate::errors::Result;

impl Benchmarks {
    /// Counts what the runs of a judged benchmark have used, if it has a cap. A run that is over is read once for each of its
    /// states.
    pub(crate) async fn count_spent(&self, pipeline: &JudgedBenchmark) -> Result<()> {
        let cap = pipeline.configuration.cap;
        let runs = match cap {
            // On the heap, since it is rare and its future is large.
            Some(_) => Box::pin(self.spent_by_run(pipeline)).await?,
            None => SpentByRun::new(),
        };
        let counted = CountedBenchmark { begun: pipeline.begun, cap, runs };
        self.caps.note(&pipeline.name, Some(counted));
        Ok(())
    }

    async fn spent_by_run(&self, pipeline: &JudgedBenchmark) -> Result<SpentByRun> {
        let chain = self.chain_of(pipeline).await?;
        let mut known = self.caps.counted(&pipeline.name, pipeline.begun);
        let mut counted = SpentByRun::new();
        for model in &pipeline.configuration.models {
            let stages = self.find_stages(&chain, model).await?;
            // Answers taken from another benchmark were paid for by that one.
            let own = stages.into_iter().skip(usize::from(chain.len() > 1));
            for (run, state) in own.flatten() {
                // Models share some.
                if counted.contains_key(&run) {
                    continue;
                }
                let before = known.remove(&run).filter(|(of, _)| *of == state);
                let spent = match (self.loaded.get(&run), before) {
                    (Some(loaded), _) => loaded.spent(),
                    (None, Some((_, spent))) => spent,
                    (None, None) => self.loaded.known(&run).await?.spent(),
                };
                counted.insert(run, (state, spent));
            }
        }
        Ok(counted)
    }

    /// Counts a benchmark that nobody looks after, if a run of it goes on by its own name and has a cap.
    pub(crate) async fn count_if_live(&self, name: &RunId) -> Result<()> {
        let mut live = self.loaded.live();
        live.retain(|run| benchmark_of(run.id()) == *name);
        // What has no cap is not looked at: each look is one that may fail.
        if live.iter().all(|run| run.cap.is_none()) {
            self.caps.forget(name);
            return Ok(());
        }
        match self.find_judged(name).await? {
            Some(pipeline) => self.count_spent(&pipeline).await,
            None => {
                self.caps.note(name, None);
                Ok(())
            }
        }
    }
}
