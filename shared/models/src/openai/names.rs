//! What is particular about addresses of providers: the names that they answer under, and where they take keys.

use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderName};

/// Hosts (with subdomains) whose answers may name another model than the requested one, because that is an alias or a
/// deployment.
const PROVIDERS: [&str; 2] = ["openai.com", "azure.com"];

/// Whether the server at this address belongs to such a provider.
pub(super) fn are_the_providers(base: &Url) -> bool {
    let Some(host) = base.host_str() else { return false };
    PROVIDERS.iter().any(|provider| {
        host.strip_suffix(provider).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    })
}

/// The header in which Azure takes keys.
pub(super) const AZURE_KEY: HeaderName = HeaderName::from_static("api-key");

/// The header for a key at this address, and what stands before the key there. Azure takes only tokens of users as others take
/// keys.
pub(super) fn key_header(base: &Url, key: &str) -> (HeaderName, &'static str) {
    let is_azure = base.host_str().is_some_and(|host| host.ends_with(".azure.com"));
    let is_token = key.starts_with("eyJ") && key.matches('.').count() == 2;
    if is_azure && !is_token { (AZURE_KEY, "") } else { (AUTHORIZATION, "Bearer ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn azure_takes_keys_in_a_header_of_its_own() {
        let header = |url: &str, key| key_header(&Url::parse(url).unwrap(), key).0;
        assert_eq!(header("https://x.openai.azure.com/openai/v1", "abc"), AZURE_KEY);
        assert_eq!(header("https://x.openai.azure.com/openai/v1", "eyJhbGci.e30.c2ln"), AUTHORIZATION);
        assert_eq!(header("https://api.openai.com/v1", "abc"), AUTHORIZATION);
    }

    #[test]
    fn providers_are_known_by_their_hosts() {
        let provider = |url: &str| are_the_providers(&Url::parse(url).unwrap());
        assert!(provider("https://api.openai.com/v1") && provider("https://x.openai.azure.com/openai"));
        assert!(!provider("http://127.0.0.1:8000/v1") && !provider("https://notopenai.com/v1"));
    }
}
