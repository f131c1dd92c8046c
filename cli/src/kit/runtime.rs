//! Runs async calls to completion.

/// Runs calls to a coordinator to completion.
pub fn block_on<T>(calls: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(calls)
}
