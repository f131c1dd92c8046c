//! Google's Gemini API (`generateContent`, v1beta).

mod convert;
mod errors;
mod wire;

use domain::Connector;
use reqwest::header::HeaderMap;

use crate::dialect::ProviderDialect;

pub(crate) const DIALECT: ProviderDialect = ProviderDialect {
    connector: Connector::Gemini,
    headers: |key| {
        let mut headers = HeaderMap::new();
        // The API also accepts the key in the URL, where it would appear in logs.
        headers.insert("x-goog-api-key", key.header("")?);
        Ok(headers)
    },
    path: |model| format!("v1beta/models/{}:generateContent", model.strip_prefix("models/").unwrap_or(model)),
    request: |_, request| convert::request(request),
    reply: convert::reply,
    classify: errors::classify,
};
