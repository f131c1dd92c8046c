//! The child's side: loads the tasks, drops all other rights, and judges until its input ends.

use std::io::{self, BufReader, BufWriter, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use tasks::{EvaluationStage, Exercise, GivenExercises, Task, Verdict};

use super::protocol::{self, Judged, Ready, Request, Setup};
use crate::evaluate::STACK_BYTES;

/// Loads the tasks that the parent requests. It must read everything it needs from disk now, because afterwards the
/// process cannot open anything.
pub type Loader = fn(&serde_json::Value) -> Result<Vec<Arc<Task>>, String>;

/// The main function of an evaluation process: serves the parent over standard input and output until the input ends.
pub fn serve(load: Loader) -> io::Result<()> {
    ignore_requests_to_end()?;
    // A judgement may outlive the requesting thread by seconds; its verdict would be lost.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    std::thread::Builder::new()
        .name("judge".into())
        .stack_size(STACK_BYTES)
        .spawn(move || judge_all(load))?
        .join()
        .map_err(|_| io::Error::other("the judging thread panicked"))?
}

/// Ignores signals that are sent to a whole service or session: they are meant for the parent, which judges the
/// answers in flight and then closes this process's input.
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
            protocol::write(&mut output, &Ready::Err(message))?;
            return output.flush();
        }
    };
    protocol::write(&mut output, &Ready::Ok(processor_time()))?;
    output.flush()?;
    let mut given = GivenExercises::default();
    while let Some(request) = protocol::read::<Request<'_>>(&mut input, &mut buffer)? {
        renew_cpu_budget(setup.cpu_seconds_max)?;
        let judged = match &request.given {
            Some(wanted) => match given.of(wanted, &request.effort.limits) {
                Ok(exercise) => judged(&*exercise, &request),
                Err(error) => refused(error.to_string()),
            },
            None => {
                let case = tasks.get(request.task).and_then(|task| task.cases().get(request.case));
                let lacking = || io::Error::other("the parent asks for a case that was not loaded");
                judged(&**case.ok_or_else(lacking)?.exercise(), &request)
            }
        };
        protocol::write(&mut output, &judged)?;
        output.flush()?;
    }
    Ok(())
}

fn judged(exercise: &dyn Exercise, request: &Request<'_>) -> Judged {
    let Request { answer, effort, .. } = request;
    let verdict = exercise.judge(answer, effort);
    // An answer that could not be parsed within the limits would hit them again.
    let compares = request.compares && !matches!(effort.stage, EvaluationStage::WithoutParsing(_));
    let compared = if compares { exercise.compared(answer, &verdict.infos, effort) } else { Vec::new() };
    Judged { verdict, compared, refused: None, spent: processor_time() }
}

fn refused(why: String) -> Judged {
    Judged { verdict: Verdict::default(), compared: Vec::new(), refused: Some(why), spent: processor_time() }
}

/// Drops, for the rest of this process's life, all rights that judging does not need: files, sockets, other
/// processes, and address space beyond `memory_bytes_max`. Resource limits always apply; for the kernel's other means
/// see [`confine`](super::confine).
///
/// # Errors
/// The kernel refuses a limit.
pub fn lock_down(memory_bytes_max: u64) -> rustix::io::Result<()> {
    let both = |value: u64| Rlimit { current: Some(value), maximum: Some(value) };
    setrlimit(Resource::Core, both(0))?;
    setrlimit(Resource::As, both(memory_bytes_max))?;
    super::confine::confine();
    // Only standard input, output and error stay usable: no file and no socket can be opened, so neither network nor
    // disk is reachable.
    setrlimit(Resource::Nofile, both(3))
}

/// Gives the next judgement its own budget: the kernel counts the CPU time of the whole process, so the limit is
/// raised. The kernel kills a process that exceeds it with SIGXCPU.
fn renew_cpu_budget(seconds: u64) -> io::Result<()> {
    // The kernel compares whole seconds; one more keeps the budget from shrinking to almost nothing.
    let end = processor_time().as_secs().saturating_add(seconds).saturating_add(1);
    Ok(setrlimit(Resource::Cpu, Rlimit { current: Some(end), maximum: None })?)
}

/// CPU time that this process has used.
fn processor_time() -> Duration {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    // Neither is ever negative, and there are fewer than 10^9 nanoseconds.
    Duration::new(used.tv_sec.unsigned_abs(), used.tv_nsec.unsigned_abs() as u32)
}
