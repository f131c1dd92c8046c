//! The view of what has a name, as it is now, and as it changes.

use std::time::Duration;

use domain::control::Feed;
use domain::{ErrorCode, RunId};
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
        let mut known = self.loaded.known(name).await;
        if let Ok(over) = &known
            && over.phase().is_over()
        {
            // Another coordinator may have extended it, or let it go on to another end.
            known = self.loaded.newest(name).await;
            if let Ok(run) = &known
                && let Ok(Some(state)) = self.store.state(name).await
            {
                run.end_as(state.phase);
            }
        }
        let known = match known {
            Ok(run) => run,
            Err(error) => {
                let view = self.view_of_broken(name, error).await?;
                return Ok(Unredacted::without_words(view));
            }
        };
        // Records come to other coordinators, too: what one of them has shown, the next one shows. Where they cannot be
        // read now, a run that goes on is shown as it was last seen, with its trouble.
        let run = match self.loaded.followed(name).await {
            Err(error) if error.code != ErrorCode::NotFound && !known.phase().is_over() => known,
            followed => followed?,
        };
        Ok(self.run_now(&run).await)
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
