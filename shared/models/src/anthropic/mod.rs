//! Anthropic's Messages API (version 2023-06-01).

mod convert;
mod errors;
mod wire;

use domain::Connector;
use reqwest::header::{HeaderMap, HeaderValue};

use crate::dialect::ProviderDialect;

const API_VERSION: &str = "2023-06-01";

pub(crate) const DIALECT: ProviderDialect = ProviderDialect {
    connector: Connector::Anthropic,
    headers: |key| {
        let mut headers = HeaderMap::new();
        headers.insert("x-api-key", key.header("")?);
        headers.insert("anthropic-version", HeaderValue::from_static(API_VERSION));
        Ok(headers)
    },
    path: |_| "v1/messages".to_owned(),
    request: convert::request,
    reply: convert::reply,
    classify: errors::classify,
};
