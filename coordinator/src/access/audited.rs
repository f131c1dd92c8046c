//! What callers do and read, noted in the audit log before it happens; what they are refused, in the log of the process.

use std::fmt::Display;

use domain::caller::CallerRole;
use domain::control::ExportItem;
use domain::{ErrorCode, RunId, ServiceError};
use results::RunManifest;
use service_kit::telemetry::refused;

use crate::access::{Access, redact};
use crate::audit::{AuditError, Deed, LOOK};
use crate::errors::{Result, internal};

impl Access {
    /// The caller's machine; empty where it is unknown.
    fn from(&self) -> String {
        self.caller.from().map(|from| from.to_string()).unwrap_or_default()
    }

    /// Notes an act that is about to be done.
    ///
    /// # Errors
    /// It cannot be noted, and must not be done.
    pub(super) async fn does(&self, act: &str, about: impl Display) -> Result<()> {
        let who = self.caller.name().to_owned();
        let deed = Deed { who, from: self.from(), act: act.to_owned(), about: about.to_string() };
        self.audit.act(deed).await.map_err(unnoted)
    }

    /// Notes that the caller is about to read protected texts.
    ///
    /// # Errors
    /// It cannot be noted, and they must not be shown.
    pub(super) async fn reads(&self, about: impl Display) -> Result<()> {
        self.does(LOOK, about).await
    }

    /// Logs an attempt at something that the caller may not do.
    pub fn was_refused(&self, what: &str) {
        refused(self.caller.name(), &self.from(), what);
    }

    /// Notes that the caller is shown what a view [for many](crate::Coordinator::view_for_many) holds of a run.
    ///
    /// # Errors
    /// It cannot be noted, and must not be shown.
    pub async fn shows_to_caller(&self, run: &RunId) -> Result<()> {
        // Of a run that is not here, nobody knows.
        let is_protected = self.parts.loaded.get(run).is_none_or(|run| run.manifest.protected);
        if is_protected && self.caller.has(CallerRole::Operator) { self.reads(run).await } else { Ok(()) }
    }

    /// An item of an export as this caller may see it. `protected` is set from the manifest of a run, which comes before its
    /// records.
    pub(super) async fn exported(
        &self,
        item: Result<ExportItem>,
        protected: &mut bool,
    ) -> Result<ExportItem> {
        let item = item?;
        if !self.caller.has(CallerRole::Operator) {
            return redact::item(item, protected);
        }
        if let ExportItem::Manifest(json) = &item {
            let manifest: RunManifest = serde_json::from_str(json).map_err(internal)?;
            if manifest.protected {
                self.does("export", manifest.run).await?;
            }
        }
        Ok(item)
    }
}

/// Another coordinator may be able to.
fn unnoted(error: AuditError) -> ServiceError {
    ServiceError::new(ErrorCode::Unavailable, error.to_string())
}
