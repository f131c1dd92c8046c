//! Queries vLLM's load, beside the API.

use std::time::Duration;

use reqwest::{Client, StatusCode, Url};

/// Timeout of a query: the next one is due by then.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// The largest answer read, in bytes.
const ANSWER_BYTES_MAX: usize = 4 << 20;

/// Share of its cache from which a server begins to evict requests.
const KV_CACHE_FULL: f64 = 0.95;

/// Queries a server's load, as long as the server seems to report it.
pub struct ServerLoad {
    metrics: Option<(Client, Url)>,
}

impl ServerLoad {
    /// The load of the server with this API address.
    pub fn new(endpoint: &str) -> Self {
        let metrics = || {
            let mut url = Url::parse(endpoint).ok()?;
            let root = url.path().trim_end_matches('/').trim_end_matches("/v1").to_owned();
            url.set_path(&format!("{root}/metrics"));
            models::install_crypto();
            let mut client = Client::builder().timeout(ANSWER_MAX).no_proxy();
            if url.scheme() == "http" {
                client = client.tls_certs_only([]);
            }
            Some((client.build().ok()?, url))
        };
        Self { metrics: metrics() }
    }

    /// Queued requests, or 1 if there are none but the cache is full; `None` if the server does not report it.
    pub async fn waiting(&mut self) -> Option<u32> {
        let (client, url) = self.metrics.as_ref()?;
        let mut response = client.get(url.clone()).send().await.ok()?;
        if response.status() == StatusCode::NOT_FOUND {
            self.metrics = None;
            return None;
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.ok()? {
            body.extend_from_slice(&chunk);
            if body.len() > ANSWER_BYTES_MAX {
                self.metrics = None;
                return None;
            }
        }
        parse(&String::from_utf8_lossy(&body))
    }
}

/// Queued requests, from a text in Prometheus's format. A server with several engines has one line for each.
fn parse(text: &str) -> Option<u32> {
    let values = |name: &'static str| {
        text.lines().filter_map(move |line| {
            let rest = line.strip_prefix(name)?;
            rest.starts_with([' ', '{']).then_some(())?;
            rest.rsplit(' ').next()?.parse::<f64>().ok()
        })
    };
    let waiting = values("vllm:num_requests_waiting").reduce(|a, b| a + b)?;
    let full = values("vllm:kv_cache_usage_perc").any(|share| share >= KV_CACHE_FULL);
    Some((waiting as u32).max(u32::from(full)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_all_engines_are_added() {
        let text = "# HELP vllm:num_requests_waiting Number of requests waiting.\n\
                    vllm:num_requests_waiting{engine=\"0\",model_name=\"m\"} 3.0\n\
                    vllm:num_requests_waiting{engine=\"1\",model_name=\"m\"} 4.0\n\
                    vllm:num_requests_waiting_total 99.0\n\
                    vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 12.0\n";
        assert_eq!(parse(text), Some(7));
        let full = "vllm:num_requests_waiting 0.0\nvllm:kv_cache_usage_perc{engine=\"0\"} 0.97\n";
        assert_eq!(parse(full), Some(1));
        assert_eq!(parse("process_cpu_seconds_total 1.0\n"), None);
    }
}
