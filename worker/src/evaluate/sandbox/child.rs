//! The child's side: load the tasks, give up everything else, judge until the input ends.

use std::io::{self, BufReader, BufWriter, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use tasks::Task;

use super::protocol::{self, Judged, Ready, Request, Setup};
use crate::evaluate::STACK_BYTES;

/// Loads the tasks that a parent asks for. What it needs from disk it must read now: afterwards the process
/// cannot open anything.
pub type Loader = fn(&serde_json::Value) -> Result<Vec<Arc<Task>>, String>;

/// Serves a parent over standard input and output until the input ends. This is the whole life of an evaluation
/// process.
pub fn serve(load: Loader) -> io::Result<()> {
    ignore_requests_to_end()?;
    // A judgement may run for seconds after the end of the thread that asked for it; nobody would hear its verdict.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    std::thread::Builder::new()
        .name("judge".into())
        .stack_size(STACK_BYTES)
        .spawn(move || judge_all(load))?
        .join()
        .map_err(|_| io::Error::other("the judging thread panicked"))?
}

/// Who asks a whole service or session to end means the parent, which goes on judging what is in flight and then closes
/// this process's input.
fn ignore_requests_to_end() -> io::Result<()> {
    let unheard = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&unheard))?;
    }
    Ok(())
}

fn judge_all(load: Loader) -> io::Result<()> {
    let mut input = BufReader::with_capacity(64 << 10, io::stdin().lock());
    let mut output = BufWriter::with_capacity(64 << 10, io::stdout().lock());
    let mut buffer = Vec::new();
    let Some(setup) = protocol::read::<Setup>(&mut input, &mut buffer)? else { return Ok(()) };
    let loaded = load(&setup.tasks).and_then(|tasks| {
        lock_down(setup.memory_bytes_max).map_err(|error| format!("cannot set resource limits: {error}"))?;
        Ok(tasks)
    });
    let tasks = match loaded {
        Ok(tasks) => tasks,
        Err(message) => {
            protocol::write(&mut output, &Ready::Failed(message))?;
            return output.flush();
        }
    };
    protocol::write(&mut output, &Ready::Ready { spent: processor_time() })?;
    output.flush()?;
    while let Some(request) = protocol::read::<Request<'_>>(&mut input, &mut buffer)? {
        renew_cpu_budget(setup.cpu_seconds_max)?;
        let case = tasks
            .get(request.task)
            .and_then(|task| task.cases().get(request.case))
            .ok_or_else(|| io::Error::other("the parent asks for a case that was not loaded"))?;
        let verdict = case.exercise().judge(&request.answer, &request.effort);
        protocol::write(&mut output, &Judged { verdict, spent: processor_time() })?;
        output.flush()?;
    }
    Ok(())
}

/// Takes away from this process what judging does not need, for the rest of its life: to open files and sockets, and
/// address space beyond `memory_bytes_max`.
///
/// # Errors
/// The kernel refuses a limit.
pub fn lock_down(memory_bytes_max: u64) -> rustix::io::Result<()> {
    let both = |value: u64| Rlimit { current: Some(value), maximum: Some(value) };
    setrlimit(Resource::Core, both(0))?;
    setrlimit(Resource::As, both(memory_bytes_max))?;
    // Only standard input, output and error stay usable: no file and no socket can be opened, so there is no
    // network to reach and nothing on disk to read.
    setrlimit(Resource::Nofile, both(3))
}

/// Gives the next judgement its own budget: the kernel counts the processor time of the whole process, so the limit
/// moves along. The kernel ends a process that exceeds it with SIGXCPU.
fn renew_cpu_budget(seconds: u64) -> io::Result<()> {
    // The kernel compares whole seconds; one more keeps the budget from shrinking to almost nothing.
    let end = processor_time().as_secs().saturating_add(seconds).saturating_add(1);
    Ok(setrlimit(Resource::Cpu, Rlimit { current: Some(end), maximum: None })?)
}

/// Processor time that this process has used.
fn processor_time() -> Duration {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    // Neither is ever negative, and there are fewer than 10^9 nanoseconds.
    Duration::new(used.tv_sec.unsigned_abs(), used.tv_nsec.unsigned_abs() as u32)
}
