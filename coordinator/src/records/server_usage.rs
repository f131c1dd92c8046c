//! What servers of pools left that have ended, one file of the sink for each: `usage/JOB.UID.json`. Files are written once, so that
//! two conductors, or one that tells it twice, do no harm. They stay when the release goes.

use domain::ServiceError;
use domain::pools::ServerUsage;
use futures::{StreamExt, TryStreamExt, stream};

use crate::errors::{Result, internal, invalid};
use crate::records::store::Store;

/// The folder in the sink.
const USAGE: &str = "usage";

/// Servers of which this is read, at most. A night has some dozens.
const SERVERS_READ_MAX: usize = 5_000;

/// Longest name of a Job or uid, in bytes.
const NAME_BYTES_MAX: usize = 128;

/// Maximum number of files read concurrently.
const READS_MAX: usize = 16;

/// Whether a name of Kubernetes can be a part of a file's name.
fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.bytes().all(plain)
}

/// A file with what a server left.
pub(crate) struct ServerUsageFile {
    name: String,
    content: Vec<u8>,
}

impl ServerUsageFile {
    /// Of this server.
    ///
    /// # Errors
    /// Its names are none in Kubernetes.
    pub(crate) fn of(usage: &ServerUsage) -> Result<Self> {
        if let Some(name) = [&usage.job, &usage.uid].into_iter().find(|name| !is_plain(name)) {
            return Err(invalid(format!("`{}` is no name in Kubernetes", name.escape_debug())));
        }
        let content = serde_json::to_vec(usage).map_err(internal)?;
        Ok(Self { name: format!("{USAGE}/{}.{}.json", usage.job, usage.uid), content })
    }

    /// Keeps it; if something was kept of this server before, that stays.
    pub(crate) async fn put(self, store: &Store) -> Result<()> {
        store.sink.create(&self.name, self.content.into()).await?;
        Ok(())
    }
}

/// What servers left, in the order of their ends. What cannot be read is left out, because another version of kgfleet may have
/// written it.
pub(crate) async fn server_usages(store: &Store) -> Result<Vec<ServerUsage>> {
    let names = store.sink.list(USAGE).await?;
    if names.len() > SERVERS_READ_MAX {
        tracing::warn!(files = names.len(), "only {SERVERS_READ_MAX} files of `{USAGE}` are read");
    }
    let read = |name: String| async move {
        let content = store.sink.read(&format!("{USAGE}/{name}")).await.map_err(ServiceError::from)?;
        let usage = content.map(|content| serde_json::from_slice::<ServerUsage>(&content));
        Ok::<_, ServiceError>(usage.and_then(|read| {
            read.map_err(|error| tracing::warn!(name, %error, "what a server left cannot be read")).ok()
        }))
    };
    let found = stream::iter(names.into_iter().take(SERVERS_READ_MAX)).map(read).buffered(READS_MAX);
    let found: Vec<Option<ServerUsage>> = found.try_collect().await?;
    let mut usages: Vec<ServerUsage> = found.into_iter().flatten().collect();
    usages.sort_by(|a, b| (a.ended_at, &a.job).cmp(&(b.ended_at, &b.job)));
    Ok(usages)
}
