//! What a span costs: processor time of building and writing one, and of sending it too, to a collector in the same
//! process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::routing::post;
use service_kit::traces::{self, SampleShare, Service, Span, TraceValue};

/// Spans of a dialogue of one round, of which one asks a model.
const SPANS: usize = 6;

/// Dialogues of a batch, and batches. A batch is smaller than what may wait, so that no span is dropped.
const DIALOGUES: usize = 2_000;
const BATCHES: usize = 10;

/// What a span may cost.
const BOUND: Duration = Duration::from_micros(2);

/// The spans of a dialogue as a worker and a coordinator make them.
fn dialogue(number: usize) {
    let Some(trace) = traces::kept(&["20260101-000000-bench", &format!("record {number}")]) else { return };
    let start = SystemTime::now();
    for (key, parent) in [("queue wait", Some("dialogue")), ("deliver", Some("dialogue")), ("dialogue", None)]
    {
        traces::emit(&Span::until_now(trace, key, parent, start));
    }
    traces::emit(&Span::until_now(trace, "store", Some("deliver"), start).with("kgfleet.batch", 64_usize));
    traces::emit(
        &Span::until_now(trace, "evaluate 1", Some("dialogue"), start)
            .with("kgfleet.class", "RdfFriendCount")
            .with("kgfleet.round", 1_usize),
    );
    traces::emit(
        &Span::until_now(trace, "chat 1", Some("dialogue"), start)
            .with("gen_ai.operation.name", "chat")
            .with("gen_ai.provider.name", "openai-compatible")
            .with("gen_ai.request.model", "meta-llama/Llama-3.1-8B-Instruct")
            .with("kgfleet.round", 1_usize)
            .with("kgfleet.retries", 0_usize)
            .with("server.address", "http://127.0.0.1:8000/v1")
            .with("gen_ai.request.max_tokens", 8_192_u32)
            .with("gen_ai.usage.input_tokens", 812_u64)
            .with("gen_ai.usage.output_tokens", 204_u64)
            .with("gen_ai.response.model", "meta-llama/Llama-3.1-8B-Instruct")
            .with("gen_ai.response.finish_reasons", TraceValue::OneOf("stop")),
    );
}

/// Takes posts on a free port and counts their bytes; its address.
async fn collector(taken: Arc<AtomicU64>) -> String {
    let take = move |body: Bytes| async move {
        taken.fetch_add(body.len() as u64, Ordering::Relaxed);
    };
    let taking = Router::new().route("/v1/traces", post(take)).layer(DefaultBodyLimit::disable());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async { axum::serve(listener, taking).await });
    url
}

/// Processor time of this process so far, the collector included.
fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

fn main() {
    rustls::crypto::ring::default_provider().install_default().expect("the first provider");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let taken = Arc::new(AtomicU64::new(0));
        let url = collector(Arc::clone(&taken)).await;
        let service = Service { name: "bench", version: "1", instance: "bench" };
        let url = traces::address(&url).expect("an address");
        let tracing = traces::start(url, reqwest::Client::new(), SampleShare::all(), service);
        let (mut written, begun) = (Duration::ZERO, cpu());
        for batch in 0..BATCHES {
            let before = cpu();
            (0..DIALOGUES).for_each(|number| dialogue(batch * DIALOGUES + number));
            written += cpu() - before;
            // The exporter sends them within a second.
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
        tracing.end().await;
        let spans = (BATCHES * DIALOGUES * SPANS) as u32;
        let each = (cpu() - begun) / spans;
        let held = if each < BOUND { "held" } else { "NOT held" };
        println!("a span: {} ns to build and write", (written / spans).as_nanos());
        println!("a span sent: {} ns; bound {} ns, {held}", each.as_nanos(), BOUND.as_nanos());
        println!(
            "bytes per dialogue of one round: {}",
            taken.load(Ordering::Relaxed) / (BATCHES * DIALOGUES) as u64
        );
    });
}
