//! Opens object stores by address.

use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, RetryConfig};

use super::SinkError;
use crate::files::Doing;

/// Maximum number of retries of a request that failed because of the connection or the store.
const RETRIES_MAX: usize = 6;

/// Time after which a request is not retried any more.
const RETRY_TIME_MAX: Duration = Duration::from_secs(30);

/// The store of an address, and the prefix in it.
///
/// | address | store | settings |
/// |---|---|---|
/// | `s3://BUCKET/PREFIX` | Amazon S3 and compatible stores | environment: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT`, … |
/// | `gs://BUCKET/PREFIX` | Google Cloud Storage | environment: `GOOGLE_SERVICE_ACCOUNT`, … |
/// | `file:///FOLDER` | a folder, such as a mounted share | |
pub(super) fn open(url: &str) -> Result<(Arc<dyn ObjectStore>, Path), SinkError> {
    let unknown = || SinkError::Url { url: url.to_owned() };
    let failed = |source| SinkError::Store { place: url.to_owned(), doing: "open", source };
    let (scheme, rest) = url.split_once("://").ok_or_else(unknown)?;
    if scheme == "file" {
        let folder = FilePath::new(rest);
        if !folder.is_absolute() {
            return Err(unknown());
        }
        std::fs::create_dir_all(folder).doing("create", folder)?;
        // Acknowledged content must be on the disk.
        let store = LocalFileSystem::new_with_prefix(folder).map_err(failed)?.with_fsync(true);
        return Ok((Arc::new(store), Path::default()));
    }
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    if bucket.is_empty() {
        return Err(unknown());
    }
    let prefix = Path::parse(prefix).map_err(|error| failed(error.into()))?;
    // The HTTP client uses the process's TLS provider. An error means that one is installed already.
    rustls::crypto::ring::default_provider().install_default().ok();
    let retry =
        RetryConfig { max_retries: RETRIES_MAX, retry_timeout: RETRY_TIME_MAX, ..RetryConfig::default() };
    let store: Arc<dyn ObjectStore> = match scheme {
        "s3" => Arc::new(
            AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(retry).build().map_err(failed)?,
        ),
        "gs" => Arc::new(
            GoogleCloudStorageBuilder::from_env()
                .with_bucket_name(bucket)
                .with_retry(retry)
                .build()
                .map_err(failed)?,
        ),
        _ => return Err(unknown()),
    };
    Ok((store, prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_name_a_store_and_a_prefix() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("share/kgfleet");
        open(&format!("file://{}", at.display())).unwrap();
        assert!(at.is_dir());
        assert_eq!(open("s3://bucket/some/prefix/").unwrap().1, Path::from("some/prefix"));
        assert_eq!(open("s3://bucket").unwrap().1, Path::default());
        for url in ["bucket", "s3://", "s3:///prefix", "ftp://bucket/prefix", "file://not/absolute"] {
            assert!(matches!(open(url), Err(SinkError::Url { .. })), "{url}");
        }
    }
}
