//! Resolves host names, without addresses that are never contacted.
//!
//! A name is checked when a connection is made, not when it is configured, because it may resolve to another address
//! by then.

use std::net::SocketAddr;

use domain::reach::never_asked_at;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// The system's resolver, without link-local and metadata addresses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GuardedResolver;

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let allowed = allowed(name.as_str(), found)?;
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

/// The allowed ones of the addresses that a name resolves to.
///
/// # Errors
/// No address is allowed.
fn allowed(name: &str, mut found: Vec<SocketAddr>) -> std::io::Result<Vec<SocketAddr>> {
    let some = !found.is_empty();
    found.retain(|address| !never_asked_at(address.ip()));
    if some && found.is_empty() {
        let message =
            format!("{name} resolves to a link-local or cloud metadata address, which is never contacted");
        return Err(std::io::Error::new(std::io::ErrorKind::PermissionDenied, message));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_stands_for_metadata_is_not_followed() {
        let address = |ip: &str| SocketAddr::new(ip.parse().unwrap(), 0);
        let error = allowed("innocent.example.org", vec![address("169.254.169.254")]).unwrap_err();
        assert!(error.to_string().contains("innocent.example.org resolves to a link-local"), "{error}");
        let mixed = allowed("h", vec![address("fe80::1"), address("10.0.0.1")]).unwrap();
        assert_eq!(mixed, [address("10.0.0.1")]);
    }
}
