//! Queries vLLM's load, beside the API.

use std::collections::BTreeMap;
use std::time::Duration;

use models::client::{redirect_place, redirect_words};
use models::http::read_up_to;
use models::{ClientOptions, HttpClient};
use reqwest::{Client, StatusCode, Url};

use crate::limiter::Occupancy;

/// Timeout of a query: the next one is due by then.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// The largest answer read, in bytes.
const ANSWER_BYTES_MAX: usize = 4 << 20;

/// Share of its cache from which a server begins to evict requests.
const KV_CACHE_FULL: f64 = 0.95;

/// Models of one server whose loads are told apart.
const MODELS_MAX: usize = 64;

/// How servers say that a page is not there, or not for us.
const NO_PAGE: [StatusCode; 4] =
    [StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED, StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN];

const MODEL_LABEL: &str = "model_name=\"";

/// The load of a server, as its metrics report it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loads {
    /// Of all its models together.
    all: Load,
    /// Of each model that the metrics name.
    of_models: BTreeMap<String, Load>,
}

impl Loads {
    /// The load of a model; of the whole server if its metrics do not name the model.
    pub fn of(&self, model: &str) -> &Load {
        self.of_models.get(model).unwrap_or(&self.all)
    }
}

impl From<Load> for Loads {
    fn from(all: Load) -> Self {
        Self { all, of_models: BTreeMap::new() }
    }
}

/// The load that a server reports for one model, over all its engines.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Requests that it works on.
    pub running: f64,
    /// Requests queued.
    pub waiting: f64,
    /// Share of its cache of keys and values that is in use, of the fullest engine.
    pub kv_cache: Option<f64>,
    /// Tokens looked up in its prefix cache so far.
    pub prefix_queries: Option<f64>,
    /// Tokens found there so far.
    pub prefix_hits: Option<f64>,
    /// Prompt tokens processed so far, for all its clients.
    pub prompt_tokens: Option<f64>,
    /// Tokens generated so far, for all its clients.
    pub generated_tokens: Option<f64>,
    /// Requests pushed out of the cache so far, to be computed again.
    pub preemptions: Option<f64>,
}

impl Load {
    /// What limits follow.
    pub fn occupancy(&self) -> Occupancy {
        let is_full = self.kv_cache.is_some_and(|share| share >= KV_CACHE_FULL);
        Occupancy { running: self.running, waiting: self.waiting, is_full }
    }
}

/// Queries a server's load, as long as the server seems to report it.
pub struct ServerLoad {
    metrics: Option<(Client, Url)>,
}

impl ServerLoad {
    /// The load of the server with this API address.
    pub fn new(endpoint: &str) -> Self {
        Self { metrics: beside(endpoint, "metrics") }
    }

    /// Whether the server may report its load: it has not said that it does not.
    pub fn is_told(&self) -> bool {
        self.metrics.is_some()
    }

    /// The loads now; `None` if the server does not report them. One that redirects, or has no such page for us, is not
    /// asked again.
    pub async fn read(&mut self) -> Option<Loads> {
        let (client, url) = self.metrics.as_ref()?;
        let response = client.get(url.clone()).send().await.ok()?;
        if let Some(place) = redirect_place(&response) {
            let answer = redirect_words(&place);
            tracing::warn!(%url, answer, "the load of a server is not known; its concurrency follows its answers alone");
            self.metrics = None;
            return None;
        }
        let is_page = !NO_PAGE.contains(&response.status());
        let (body, is_whole) = read_up_to(response, ANSWER_BYTES_MAX).await.ok()?;
        if !(is_page && is_whole) {
            self.metrics = None;
            return None;
        }
        parse(&String::from_utf8_lossy(&body))
    }
}

/// The largest answer about a version that is read, in bytes.
const VERSION_BYTES_MAX: usize = 4 << 10;

/// The version that the server with this API address gives; `None` if it gives none.
pub async fn version(endpoint: &str) -> Option<String> {
    let (client, url) = beside(endpoint, "version")?;
    let response = client.get(url).send().await.ok()?;
    if response.status() != StatusCode::OK {
        return None;
    }
    let (body, _) = read_up_to(response, VERSION_BYTES_MAX).await.ok()?;
    let answer: serde_json::Value = serde_json::from_slice(&body).ok()?;
    answer.get("version")?.as_str().map(str::to_owned)
}

/// How a page beside the API is asked for.
fn beside(endpoint: &str, page: &str) -> Option<(Client, Url)> {
    let mut url = Url::parse(endpoint).ok()?;
    let root = url.path().trim_end_matches('/').trim_end_matches("/v1").to_owned();
    url.set_path(&format!("{root}/{page}"));
    // A proxy may answer for a server that is gone.
    let options =
        ClientOptions { request_max: Some(ANSWER_MAX), is_direct: true, ..ClientOptions::default() };
    Some((HttpClient::with(options).for_url(&url).ok()?, url))
}

/// The loads, from a text in Prometheus's format. It is read once, however many models it is about.
fn parse(text: &str) -> Option<Loads> {
    let (mut all, mut of_models) = (Quantities::default(), BTreeMap::<&str, Quantities>::new());
    for (name, labels, value) in text.lines().filter_map(series_of) {
        all.add(name, value);
        let model = labels.split_once(MODEL_LABEL).and_then(|(_, rest)| rest.split_once('"'));
        if let Some((model, _)) = model
            && (of_models.len() < MODELS_MAX || of_models.contains_key(model))
        {
            of_models.entry(model).or_default().add(name, value);
        }
    }
    let of_models = of_models.into_iter();
    let of_models = of_models.filter_map(|(name, told)| Some((name.to_owned(), told.load()?)));
    Some(Loads { all: all.load()?, of_models: of_models.collect() })
}

/// The name of a line's series behind `vllm:`, with its labels and its value.
fn series_of(line: &str) -> Option<(&str, &str, f64)> {
    let rest = line.strip_prefix("vllm:")?;
    let (name, labels) = rest.split_at(rest.find([' ', '{'])?);
    let value = labels.rsplit(' ').next()?.parse::<f64>().ok().filter(|value| value.is_finite())?;
    Some((name, labels, value))
}

/// The sum and the maximum of each series. A server with several engines has one line for each.
#[derive(Default)]
struct Quantities<'t>(BTreeMap<&'t str, (f64, f64)>);

impl<'t> Quantities<'t> {
    fn add(&mut self, name: &'t str, value: f64) {
        let (sum, most) = self.0.entry(name).or_insert((0.0, value));
        (*sum, *most) = (*sum + value, most.max(value));
    }

    /// The load; `None` of a server that does not say how many requests wait. A quantity has the name that vLLM gives it today,
    /// then older ones.
    fn load(&self) -> Option<Load> {
        let of = |names: &[&str]| names.iter().find_map(|name| self.0.get(name).copied());
        let sum = |names: &[&str]| of(names).map(|(sum, _)| sum);
        Some(Load {
            waiting: sum(&["num_requests_waiting"])?,
            running: sum(&["num_requests_running"]).unwrap_or_default(),
            kv_cache: of(&["kv_cache_usage_perc", "gpu_cache_usage_perc"]).map(|(_, most)| most),
            prefix_queries: sum(&["prefix_cache_queries_total", "gpu_prefix_cache_queries_total"]),
            prefix_hits: sum(&["prefix_cache_hits_total", "gpu_prefix_cache_hits_total"]),
            prompt_tokens: sum(&["prompt_tokens_total"]),
            generated_tokens: sum(&["generation_tokens_total"]),
            preemptions: sum(&["num_preemptions_total"]),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// A server that gives every request this answer, and how many it got.
    async fn server(answer: String) -> (SocketAddr, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, asked) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
        let count = Arc::clone(&asked);
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let (answer, count) = (answer.clone(), Arc::clone(&count));
                tokio::spawn(async move {
                    // A request without a body comes in one piece.
                    while stream.read(&mut [0; 4096]).await.is_ok_and(|length| length > 0) {
                        count.fetch_add(1, Ordering::SeqCst);
                        stream.write_all(answer.as_bytes()).await.unwrap();
                    }
                });
            }
        });
        (address, asked)
    }

    #[tokio::test]
    async fn a_redirect_of_the_load_leads_nowhere_and_is_not_asked_for_again() {
        let (elsewhere, seen) = server("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_owned()).await;
        let place = format!("http://{elsewhere}/latest/meta-data");
        let (redirecting, asked) =
            server(format!("HTTP/1.1 302 Found\r\nlocation: {place}\r\ncontent-length: 0\r\n\r\n")).await;
        let mut load = ServerLoad::new(&format!("http://{redirecting}/v1"));
        assert_eq!((load.read().await, load.read().await), (None, None));
        let asked = (asked.load(Ordering::SeqCst), seen.load(Ordering::SeqCst));
        assert_eq!(asked, (1, 0), "asked once, and nobody else");
    }

    #[tokio::test]
    async fn a_server_without_such_a_page_is_not_asked_again() {
        for status in ["401 Unauthorized", "403 Forbidden", "404 Not Found"] {
            let (address, asked) = server(format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n")).await;
            let mut load = ServerLoad::new(&format!("http://{address}/v1"));
            assert_eq!((load.read().await, load.read().await, load.is_told()), (None, None, false));
            assert_eq!(asked.load(Ordering::SeqCst), 1);
        }
    }

    #[test]
    fn requests_of_all_engines_are_added() {
        let text = "# HELP vllm:num_requests_waiting Number of requests waiting.\n\
                    vllm:num_requests_waiting{engine=\"0\",model_name=\"m\"} 3.0\n\
                    vllm:num_requests_waiting{engine=\"1\",model_name=\"m\"} 4.0\n\
                    vllm:num_requests_waiting_total 99.0\n\
                    vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 12.0\n";
        let load = parse(text).unwrap().all;
        let occupancy = Occupancy { running: 12.0, waiting: 7.0, is_full: false };
        assert_eq!((load.occupancy(), load.kv_cache), (occupancy, None));
        let full = "vllm:num_requests_waiting 0.0\nvllm:kv_cache_usage_perc{engine=\"0\"} 0.97\n";
        assert!(parse(full).unwrap().of("m").occupancy().is_full);
        assert_eq!(parse("process_cpu_seconds_total 1.0\n"), None);
    }

    #[test]
    fn models_behind_one_address_are_told_apart() {
        let text = "vllm:num_requests_waiting{engine=\"0\",model_name=\"a\"} 3.0\n\
                    vllm:num_requests_running{engine=\"0\",model_name=\"a\"} 5.0\n\
                    vllm:num_requests_waiting{engine=\"0\",model_name=\"ab\"} 0.0\n\
                    vllm:num_requests_running{engine=\"0\",model_name=\"ab\"} 1.0\n";
        let loads = parse(text).unwrap();
        let of = |model: &str| (loads.of(model).waiting, loads.of(model).running);
        assert_eq!((of("a"), of("ab"), of("another")), ((3.0, 5.0), (0.0, 1.0), (3.0, 6.0)));
    }

    #[test]
    fn names_of_today_and_of_older_versions_mean_the_same() {
        let of = |cache: &str, prefix: &str| {
            let text = format!(
                "vllm:num_requests_waiting{{model_name=\"m\"}} 2.0\n\
                 vllm:{cache}{{engine=\"0\"}} 0.25\nvllm:{cache}{{engine=\"1\"}} 0.5\n\
                 vllm:{prefix}_queries_total{{engine=\"0\"}} 51.0\nvllm:{prefix}_queries_created{{engine=\"0\"}} 1.7e+09\n\
                 vllm:{prefix}_hits_total{{engine=\"0\"}} 16.0\nvllm:{prefix}_hits_total{{engine=\"1\"}} 1.0\n\
                 vllm:generation_tokens_total{{engine=\"0\"}} 1.25e+06\n"
            );
            parse(&text).unwrap().all
        };
        let today = of("kv_cache_usage_perc", "prefix_cache");
        assert_eq!(
            (today.kv_cache, today.prefix_queries, today.prefix_hits),
            (Some(0.5), Some(51.0), Some(17.0))
        );
        assert_eq!((today.generated_tokens, today.prompt_tokens), (Some(1.25e6), None));
        assert_eq!(of("gpu_cache_usage_perc", "gpu_prefix_cache"), today);
    }
}
