//! `kgfleet score`: judges answers that other programs send, as lines of JSON. The Python package is such a program.
//!
//! [`request`] says what a line may hold, [`opened`] keeps packs with their evaluation processes, [`scored`] judges the
//! answers of one line. Here lines are read, judged many at once, and answered in the order in which they are done.

mod opened;
mod request;
mod scored;

use std::io::{self, BufRead, BufReader, Read, Write};
use std::num::NonZeroUsize;
use std::sync::{Arc, mpsc};
use std::thread;

use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::engine::worker::threads;
use crate::kit::exit_code::ExitCode;
use opened::OpenedPacks;
use request::Refusal;

/// Longest line that is read, in bytes: an answer may have 16 MiB, and its graph 64 MiB, both with escapes.
const LINE_BYTES_MAX: u64 = 256 << 20;

/// Most lines that are judged or wait for it at a time; further ones stay in the pipe.
const IN_FLIGHT_MAX: usize = 256;

/// The version of the lines; raised when a program that knows the last one would misread them.
const LINES_VERSION: u32 = 1;

/// Judge answers that another program sends as JSON lines on standard input.
///
/// A line names a task and a case of a pack, or gives a reference, with the answers of one dialogue; a line on standard output
/// has its scores. The Python package sends such lines; docs/python.md describes them. Answers are judged in the sandbox, and
/// nothing is remembered. A line that cannot be used gets an error line, and the others are judged.
///
/// Exit codes: 0 the input ended; 2 no evaluation process can be found; 3 standard input cannot be read.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Serve lines until standard input ends.
    #[arg(long, required = true)]
    serve: bool,
    /// Number of evaluation processes of each pack. Default: one per CPU.
    #[arg(long, value_name = "N")]
    evaluators: Option<NonZeroUsize>,
}

/// `kgfleet score`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    debug_assert!(arguments.serve, "the command line demands it");
    let packs = Arc::new(OpenedPacks::new(threads(arguments.evaluators))?);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (said, says) = mpsc::channel::<Value>();
    let writer = thread::spawn(move || write_all(&says));
    // A channel without bound is bounded by the lines in flight, each of which sends one.
    let hello = json!({ "kgfleet": env!("CARGO_PKG_VERSION"), "lines": LINES_VERSION });
    let _ = said.send(hello);
    let places = Arc::new(Semaphore::new(IN_FLIGHT_MAX));
    let mut input = BufReader::with_capacity(1 << 16, io::stdin().lock());
    let mut line = Vec::new();
    let read = loop {
        let (id, request) = match next_line(&mut input, &mut line) {
            Ok(Some(Ok(()))) => request::read(&line),
            Ok(Some(Err(refusal))) => (Value::Null, Err(refusal)),
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        };
        // Closed never, and a writer that has ended ends this loop below.
        let Ok(place) = runtime.block_on(Arc::clone(&places).acquire_owned()) else { break Ok(()) };
        if writer.is_finished() {
            break Ok(());
        }
        let (packs, said) = (Arc::clone(&packs), said.clone());
        runtime.spawn(async move {
            let mut reply = match request {
                Ok(wanted) => scored::reply(wanted, &packs).await.unwrap_or_else(Refusal::into_line),
                Err(refusal) => refusal.into_line(),
            };
            reply["id"] = id;
            let _ = said.send(reply);
            drop(place);
        });
    };
    // What was read is judged before the end.
    let all = u32::try_from(IN_FLIGHT_MAX).unwrap_or(u32::MAX);
    let _ = runtime.block_on(places.acquire_many(all));
    drop(said);
    let written = writer.join().map_err(|_| io::Error::other("the thread that writes ended"))?;
    read.and(written)?;
    Ok(ExitCode::Success)
}

/// Reads the next line that is not blank; `None` at the end of the input. A line that is too long is passed over and refused.
fn next_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Option<Result<(), Refusal>>> {
    loop {
        line.clear();
        if input.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', line)? == 0 {
            return Ok(None);
        }
        if line.len() as u64 == LINE_BYTES_MAX && !line.ends_with(b"\n") {
            line.clear();
            line.shrink_to_fit();
            input.skip_until(b'\n')?;
            let message = format!("a line has more than {} MiB", LINE_BYTES_MAX >> 20);
            return Ok(Some(Err(Refusal::of_request(message))));
        }
        if !line.trim_ascii().is_empty() {
            return Ok(Some(Ok(())));
        }
    }
}

/// Writes replies, and flushes whenever none waits: who waits for one reply gets it, and many are written at once.
fn write_all(says: &mpsc::Receiver<Value>) -> io::Result<()> {
    let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
    while let Ok(first) = says.recv() {
        for reply in std::iter::once(first).chain(says.try_iter()) {
            serde_json::to_writer(&mut out, &reply)?;
            out.write_all(b"\n")?;
        }
        out.flush()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_whatever_ends_them() {
        let mut input = b"{}\r\n\n  \n[1]".as_slice();
        let mut line = Vec::new();
        assert!(matches!(next_line(&mut input, &mut line), Ok(Some(Ok(())))));
        assert_eq!(line.trim_ascii(), b"{}");
        assert!(matches!(next_line(&mut input, &mut line), Ok(Some(Ok(())))));
        assert_eq!(line, b"[1]");
        assert!(matches!(next_line(&mut input, &mut line), Ok(None)));
    }
}
