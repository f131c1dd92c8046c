//! What one call costs the server: `cargo run --release -p vllm-sim --example throughput`.
//!
//! One thread serves, another asks over keep-alive connections with hand-written requests, so that the client costs little and
//! the two can be told apart. The figures are calls per second and the serving thread's processor time per call, as the
//! kernel accounts it (Linux only).

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use vllm_sim::{AnswerKey, KnownCase, ModelConfig, Profile, SimConfig, Simulator};

/// Connections, each with one call at a time.
const CONNECTIONS: usize = 64;
/// Calls of one measurement.
const CALLS: usize = 60_000;
/// Bytes of the prompt: a typical one of the benchmark.
const PROMPT_BYTES: usize = 3_000;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Answers every exercise with some 300 bytes.
struct Key;

impl AnswerKey for Key {
    fn solve(&self, _: &str) -> Option<KnownCase> {
        let text =
            |word: &str| format!("```sparql\nSELECT ?{word} WHERE {{ ?s ?p ?o }}\n```\n{}", word.repeat(50));
        Some(KnownCase { right: text("right"), wrong: text("wrong"), malformed: text("broken") })
    }
}

fn main() -> Result<(), Failure> {
    println!("{CALLS} calls over {CONNECTIONS} connections, prompts of {PROMPT_BYTES} bytes");
    let fixed = Profile::Fixed { round_ms: 0.0 };
    for (name, profile, stream) in [
        ("no latency", Profile::Zero, false),
        ("no latency, streamed", Profile::Zero, true),
        ("latency law with zero times", fixed, false),
    ] {
        let (took, cpu) = measure(profile, stream)?;
        let rate = CALLS as f64 / took.as_secs_f64();
        let cost = cpu.as_secs_f64() * 1e6 / CALLS as f64;
        println!("{name:>28}: {rate:>7.0} calls/s, {cost:>5.1} us of server CPU per call");
    }
    Ok(())
}

/// Wall time, and processor time of the serving thread.
fn measure(profile: Profile, stream: bool) -> Result<(Duration, Duration), Failure> {
    let model = ModelConfig { profile, ..ModelConfig::new("m") };
    let (tell, addr) = std::sync::mpsc::channel();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let server = std::thread::spawn(move || -> Result<Duration, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let simulator = Simulator::new(SimConfig::new(vec![model]))?.answer_key(Arc::new(Key));
            let handle = simulator.serve(listener)?;
            tell.send(handle.addr())?;
            let before = thread_cpu()?;
            let _ = stopped.await;
            let cpu = thread_cpu()?.saturating_sub(before);
            handle.shutdown().await;
            Ok(cpu)
        })
    });
    let addr = addr.recv()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let took = runtime.block_on(async {
        let began = Instant::now();
        let connections = (0..CONNECTIONS).map(|at| connection(addr, at, stream));
        futures::future::try_join_all(connections).await?;
        Ok::<_, Failure>(began.elapsed())
    })?;
    let _ = stop.send(());
    let cpu = server.join().map_err(|_| "the server panicked")??;
    Ok((took, cpu))
}

async fn connection(addr: std::net::SocketAddr, number: usize, stream: bool) -> Result<(), Failure> {
    let mut socket = TcpStream::connect(addr).await?;
    socket.set_nodelay(true)?;
    let mut buffer = vec![0; 256 << 10];
    for call in 0..CALLS / CONNECTIONS {
        let prompt = format!("{:0PROMPT_BYTES$}", number * CALLS + call);
        let body = format!(
            r#"{{"model":"m","messages":[{{"role":"user","content":"{prompt}"}}],"seed":{call},"stream":{stream}}}"#
        );
        let length = body.len();
        let request = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: sim\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        socket.write_all(request.as_bytes()).await?;
        let mut filled = 0;
        while !complete(&buffer[..filled]) {
            let read = socket.read(&mut buffer[filled..]).await?;
            if read == 0 {
                return Err("the server closed the connection".into());
            }
            filled += read;
        }
        if !buffer.starts_with(b"HTTP/1.1 200") {
            return Err(String::from_utf8_lossy(&buffer[..filled]).into());
        }
    }
    Ok(())
}

/// Whether a reply has ended: a chunked one with the empty chunk, another one by its length.
fn complete(reply: &[u8]) -> bool {
    const END: &[u8] = b"\r\n\r\n";
    let Some(head) = reply.windows(END.len()).position(|window| window == END) else { return false };
    let length = String::from_utf8_lossy(&reply[..head])
        .lines()
        .find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    length
        .map_or_else(|| reply.ends_with(b"\r\n0\r\n\r\n"), |length| reply.len() == head + END.len() + length)
}

/// Processor time of this thread so far.
fn thread_cpu() -> Result<Duration, Failure> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanos = text.split(' ').next().ok_or("an empty schedstat")?;
    Ok(Duration::from_nanos(nanos.parse()?))
}
