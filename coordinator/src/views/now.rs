//! The view of what has a name, as it is now, and as it changes.

use std::time::Duration;

use domain::RunId;
use domain::control::Feed;
use futures::stream;

use crate::benchmarks::documents::Benchmark;
use crate::errors::Result;
use crate::views::Views;
use crate::views::run::Unredacted;

/// Interval between two views of a watched run.
const WATCH_EVERY: Duration = Duration::from_secs(1);

impl Views {
    /// The full view of a run or judged benchmark; of one that cannot be read, with the reason.
    pub(crate) async fn view(&self, name: &RunId) -> Result<Unredacted> {
        let judged = match self.benchmarks.find(name).await {
            Ok(Benchmark::Run(run)) => return self.run_or_trouble(&run).await,
            Ok(Benchmark::Judged(benchmark)) => self.judged_now(&benchmark).await,
            Err(error) => Err(error),
        };
        match judged {
            Err(error) => Ok(Unredacted::without_words(self.view_of_broken(name, error).await?)),
            shown => shown,
        }
    }

    /// The full view of a run; of one that cannot be loaded, with the reason.
    async fn run_or_trouble(&self, name: &RunId) -> Result<Unredacted> {
        match self.loaded.known(name).await {
            Ok(run) => Ok(self.run_now(&run).await),
            Err(error) => Ok(Unredacted::without_words(self.view_of_broken(name, error).await?)),
        }
    }

    /// Views of a run or judged benchmark, until it is over.
    pub(crate) fn watch<'a>(&'a self, name: &'a RunId) -> Feed<'a, Unredacted> {
        // `None` is the beginning, then whether the last view was that of a run that is over.
        Box::pin(stream::unfold(None, move |over: Option<bool>| async move {
            match over {
                Some(true) => return None,
                Some(false) => tokio::time::sleep(WATCH_EVERY).await,
                None => {}
            }
            let view = self.view(name).await;
            let over = view.as_ref().map_or(true, |seen| seen.view.phase.is_over());
            Some((view, Some(over)))
        }))
    }
}
