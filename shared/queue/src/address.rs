//! Opens the store at an address.

use std::path::Path;
use std::sync::Arc;

use crate::clock::SystemClock;
use crate::error::Result;
use crate::local::MemoryStore;
use crate::redis::{RedisOptions, RedisStore};
use crate::store::QueueStore;

/// Opens the store at `address`: `memory`, or a Redis address as in [`RedisOptions::url`]. `ca_file` holds the
/// certificate of the authority that signed a Redis server's.
///
/// # Errors
/// [`crate::Error::Unfit`] if the address or a file is unusable. Redis is not contacted yet: see
/// [`QueueStore::check`].
pub fn open(address: &str, ca_file: Option<&Path>) -> Result<Arc<dyn QueueStore>> {
    open_as(address, ca_file, None)
}

/// The same, with a client certificate and its key for Redis.
///
/// # Errors
/// See [`open`].
pub fn open_as(
    address: &str,
    ca_file: Option<&Path>,
    identity: Option<(&Path, &Path)>,
) -> Result<Arc<dyn QueueStore>> {
    if address == "memory" {
        return Ok(Arc::new(MemoryStore::new(Arc::new(SystemClock::default()))));
    }
    let options = RedisOptions {
        ca_file: ca_file.map(Path::to_owned),
        identity: identity.map(|(certificate, key)| (certificate.to_owned(), key.to_owned())),
        ..RedisOptions::new(address)
    };
    Ok(Arc::new(RedisStore::new(&options)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn addresses_lead_to_their_stores() {
        assert!(open("memory", None).is_ok() && open("redis://localhost:6379/0", None).is_ok());
        assert!(matches!(open("carrier-pigeon://roof", None), Err(Error::Unfit { .. })));
        let ca_file = Some(Path::new("/no/such/ca.pem"));
        assert!(matches!(open("rediss://localhost", ca_file), Err(Error::Unfit { .. })));
    }
}
