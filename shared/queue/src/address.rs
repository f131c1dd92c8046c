//! Opens the store at an address.

use std::path::Path;
use std::sync::Arc;

use crate::clock::SystemClock;
use crate::error::{Error, Result};
use crate::memory_store::MemoryStore;
use crate::redis::RedisOptions;
use crate::store::QueueStore;

/// Opens the store at `address`: `memory`, or a Redis address as in [`RedisOptions::url`]. `ca_file` holds the
/// certificate of the authority that signed a Redis server's.
///
/// # Errors
/// [`crate::Error::Unfit`] if the address or a file is unusable. Redis is not contacted yet: see
/// [`QueueStore::check`].
pub fn open(address: &str, ca_file: Option<&Path>) -> Result<Arc<dyn QueueStore>> {
    open_as(address, ca_file, None, "a process")
}

/// The same, with a client certificate and its key for Redis, and the address of this process, under which others name it when it
/// leads. Two processes never have the same one at once.
///
/// # Errors
/// See [`open`].
pub fn open_as(
    address: &str,
    ca_file: Option<&Path>,
    identity: Option<(&Path, &Path)>,
    name: &str,
) -> Result<Arc<dyn QueueStore>> {
    if address == "memory" {
        return Ok(Arc::new(MemoryStore::new(Arc::new(SystemClock::default()))));
    }
    let options = RedisOptions {
        ca_file: ca_file.map(Path::to_owned),
        identity: identity.map(|(certificate, key)| (certificate.to_owned(), key.to_owned())),
        ..RedisOptions::new(address)
    };
    Ok(Arc::new(MemoryStore::kept_in(&options, name, Arc::new(SystemClock::default()))?))
}

/// An address of Redis with this password, for an address without one.
///
/// # Errors
/// [`Error::Unfit`] if it is no address of a server with a login, or has a password.
pub fn with_password(address: &str, password: &str) -> Result<String> {
    let unfit =
        |why: &str| Err(Error::Unfit { message: format!("the password of the queue cannot be used: {why}") });
    let Some((scheme, rest)) = address.split_once("://") else {
        return unfit("the address has no `://`");
    };
    if scheme.ends_with("+unix") {
        return unfit("give it in the address of a socket, as `?pass=`");
    }
    // Behind the first slash is no login.
    let host_at = rest.split('/').next().and_then(|place| place.rfind('@')).map_or(0, |at| at + 1);
    let (user, place) = (rest[..host_at].trim_end_matches('@'), &rest[host_at..]);
    if user.contains(':') {
        return unfit("the address has one already");
    }
    let is_unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let encode = |byte: u8| match is_unreserved(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    let password: String = password.bytes().map(encode).collect();
    Ok(format!("{scheme}://{user}:{password}@{place}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_goes_into_the_login_and_nowhere_else() {
        let with = |address: &str| with_password(address, "s3/c:r@t").unwrap();
        assert_eq!(with("redis://redis:6379/0"), "redis://:s3%2Fc%3Ar%40t@redis:6379/0");
        assert_eq!(with("rediss://fleet@redis:6379/0"), "rediss://fleet:s3%2Fc%3Ar%40t@redis:6379/0");
        assert_eq!(with("redis+sentinel://a:1,b:2/main"), "redis+sentinel://:s3%2Fc%3Ar%40t@a:1,b:2/main");
        for address in ["memory", "redis://:old@redis:6379", "redis+unix:///run/redis.sock"] {
            let error = with_password(address, "secret").unwrap_err().to_string();
            assert!(error.contains("password") && !error.contains("secret"), "{address}: {error}");
        }
    }

    #[test]
    fn addresses_lead_to_their_stores() {
        assert!(open("memory", None).is_ok() && open("redis://localhost:6379/0", None).is_ok());
        assert!(matches!(open("carrier-pigeon://roof", None), Err(Error::Unfit { .. })));
        let ca_file = Some(Path::new("/no/such/ca.pem"));
        assert!(matches!(open("rediss://localhost", ca_file), Err(Error::Unfit { .. })));
    }
}
