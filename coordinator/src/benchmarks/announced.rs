//! Which run answers a submission, where several coordinators are sent the same one at the same moment.
//!
//! Whoever finds no unfinished run of a configuration writes down the name of the run that it is about to create. Others read
//! that and join this run; where it is not there, because who announced it is slow or has died, they create it under this
//! name. The record store takes each announcement and each name of a run once, so that one run comes of them all.

use domain::RunId;
use results::RunManifest;
use results::manifest::hash;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::benchmarks::Benchmarks;
use crate::errors::Result;

/// The folder of the record store with what was announced.
const FOLDER: &str = "submissions";

/// What is to be done about a submission for which no unfinished run was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Announcement {
    /// To create this run: nobody else creates another one.
    Create(RunId),
    /// To look again: another coordinator was quicker, perhaps with this run.
    LookAgain(Option<RunId>),
}

/// The newest run of a configuration that somebody was about to create.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct AnnouncedRun {
    run: RunId,
}

/// What decides what is asked: a benchmark of another priority or under another cap is the same benchmark.
pub(super) fn without_terms(configuration: &Value) -> Value {
    let mut configuration = configuration.clone();
    if let Some(fields) = configuration.as_object_mut() {
        fields.remove("priority");
        fields.remove("cap");
    }
    configuration
}

impl Benchmarks {
    /// Announces a new run, unless another one of its configuration is announced. `passed_over` is one that was looked for
    /// and did not answer the submission: it cannot be loaded, or asks something else.
    pub(super) async fn announce(
        &self,
        manifest: &RunManifest,
        passed_over: Option<&RunId>,
    ) -> Result<Announcement> {
        let of = json!([manifest.plan_hash, without_terms(&manifest.configuration)]);
        let document = format!("{FOLDER}/{}", hash(&of));
        let known = self.store.newest::<AnnouncedRun>(&document).await?;
        if let Some(AnnouncedRun { run }) = known.content
            && passed_over != Some(&run)
        {
            // A run that is damaged cannot answer, which whoever looks again finds out.
            let look_again = Announcement::LookAgain(Some(run.clone()));
            let Some(manifest) = self.health.unless_transient(&run, self.store.manifest(&run).await)? else {
                return Ok(look_again);
            };
            if manifest.is_none() {
                if !self.store.sink.is_removed(&run).await? {
                    return Ok(Announcement::Create(run));
                }
            } else {
                let state = self.health.unless_transient(&run, self.store.state(&run).await)?.flatten();
                if !state.is_some_and(|state| state.phase.is_over()) {
                    return Ok(look_again);
                }
            }
        }
        let announced = AnnouncedRun { run: manifest.run.clone() };
        let is_ours =
            self.health.note_sink(self.store.revise(&document, known.revision, &announced).await)?;
        Ok(if is_ours { Announcement::Create(announced.run) } else { Announcement::LookAgain(None) })
    }
}
