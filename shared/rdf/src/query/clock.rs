//! The time limit of the query that runs on this thread.
//!
//! Oxigraph can be cancelled only where it reads the graph. Sorting, products of solutions already in memory and the
//! filtering of such products can take minutes in between, and errors inside expressions are swallowed. But all of
//! these copy terms. So every copy and every read of a term is a tick of a clock, and when the time is over
//! the tick unwinds the stack up to [`with_time`], as rust-analyzer does to cancel its queries. `resume_unwind`
//! calls no panic hook, and nothing of the evaluation is used after it.
//!
//! The time is the thread's processor time. The wall clock also runs while other processes compute or while this
//! one is stopped, so a busy machine would change verdicts.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Ticks between two readings of the time. A tick costs a few nanoseconds, the work around it well below a microsecond.
const TICKS_PER_CHECK: u32 = 1024;

thread_local! {
    static BUDGET: Cell<Option<Budget>> = const { Cell::new(None) };
    static TICKS: Cell<u32> = const { Cell::new(0) };
}

#[derive(Debug, Clone, Copy)]
struct Budget {
    /// Processor time of the thread at which the limit is reached.
    end: Duration,
    /// The limit cannot be reached before this moment, because processor time never runs faster than the wall clock.
    /// Reading the wall clock is cheap; reading the processor time is a system call.
    check_at: Instant,
}

impl Budget {
    /// `None` if the end is beyond the range of the clock.
    fn new(time: Duration) -> Option<Self> {
        Some(Self { end: processor_time().checked_add(time)?, check_at: Instant::now().checked_add(time)? })
    }
}

/// Processor time used by this thread.
fn processor_time() -> Duration {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    // Neither is ever negative, and there are fewer than 10^9 nanoseconds.
    Duration::new(used.tv_sec.unsigned_abs(), used.tv_nsec.unsigned_abs() as u32)
}

/// Processor time that several queries on this thread share, so that many small checks of one answer take no longer than one
/// large one.
#[derive(Debug, Clone, Copy)]
pub struct TimeBudget {
    /// Processor time of the thread at which it is used up; `None` if that is beyond the range of the clock.
    end: Option<Duration>,
}

impl TimeBudget {
    /// So much processor time from now on.
    pub fn begin(time: Duration) -> Self {
        Self { end: processor_time().checked_add(time) }
    }

    /// Does other work than a query within what is left of it. The work ticks at every step.
    ///
    /// # Errors
    /// The work was cut off.
    pub fn run<T>(&self, work: impl FnOnce() -> T) -> Result<T, OutOfTime> {
        with_time(self.left(), work)
    }

    /// What is left of it; nothing once it is used up. `None` means no limit.
    pub fn left(&self) -> Option<Duration> {
        self.end.map(|end| end.saturating_sub(processor_time()))
    }
}

/// The time limit was reached. The message is that of the published records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("A time out occurred")]
pub struct OutOfTime;

/// Runs `work` on this thread until it is done or has used up its processor time. `None` means no limit.
///
/// # Errors
/// [`OutOfTime`] if `work` was cut off.
pub(super) fn with_time<T>(time: Option<Duration>, work: impl FnOnce() -> T) -> Result<T, OutOfTime> {
    let outer = BUDGET.replace(time.and_then(Budget::new));
    let result = catch_unwind(AssertUnwindSafe(work));
    BUDGET.set(outer);
    result.map_err(|payload| {
        if payload.is::<OutOfTime>() {
            return OutOfTime;
        }
        // Any other panic is a defect of the program and continues.
        resume_unwind(payload)
    })
}

/// Counts a tick; unwinds to [`with_time`] if the time is over. Long work beside queries calls it too, within
/// [`TimeBudget::run`].
pub fn tick() {
    let ticks = TICKS.get().wrapping_add(1);
    TICKS.set(ticks);
    if ticks.is_multiple_of(TICKS_PER_CHECK) {
        check_budget();
    }
}

#[cold]
fn check_budget() {
    let Some(budget) = BUDGET.get() else { return };
    let now = Instant::now();
    if now < budget.check_at {
        return;
    }
    let left = budget.end.saturating_sub(processor_time());
    if left.is_zero() {
        // Values dropped while unwinding may tick, and must not unwind again.
        BUDGET.set(None);
        resume_unwind(Box::new(OutOfTime));
    }
    BUDGET.set(Some(Budget { check_at: now + left, ..budget }));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endless() {
        loop {
            tick();
        }
    }

    fn short() {
        (0..3 * TICKS_PER_CHECK).for_each(|_| tick());
    }

    #[test]
    fn work_is_cut_off_when_its_time_is_used_up_and_only_then() {
        assert_eq!(with_time(Some(Duration::ZERO), endless), Err(OutOfTime));
        assert_eq!(with_time(Some(Duration::from_millis(20)), endless), Err(OutOfTime));
        for time in [None, Some(Duration::from_secs(3600)), Some(Duration::MAX)] {
            assert_eq!(with_time(time, short), Ok(()));
        }
    }

    #[test]
    fn time_in_which_the_thread_does_not_compute_does_not_count() {
        let time = Duration::from_millis(500);
        let starved = || {
            std::thread::sleep(2 * time);
            short();
        };
        assert_eq!(with_time(Some(time), starved), Ok(()));
        let starved = || {
            std::thread::sleep(2 * time);
            endless();
        };
        assert_eq!(with_time(Some(time), starved), Err(OutOfTime), "what is left of it counts all the same");
    }

    #[test]
    fn a_shared_budget_shrinks_while_the_thread_computes() {
        let time = Duration::from_millis(20);
        let budget = TimeBudget::begin(time);
        assert!(budget.left() <= Some(time));
        assert_eq!(with_time(budget.left(), endless), Err(OutOfTime));
        assert_eq!(budget.left(), Some(Duration::ZERO), "the next query finds nothing left");
        assert_eq!(budget.run(endless), Err(OutOfTime));
        assert_eq!(TimeBudget::begin(Duration::MAX).run(|| 7), Ok(7));
        assert_eq!(TimeBudget::begin(Duration::MAX).left(), None);
    }

    #[test]
    fn other_panics_go_on() {
        let caught = catch_unwind(|| with_time(None, || -> () { std::panic::panic_any(7_u8) }));
        assert!(caught.unwrap_err().is::<u8>());
    }
}
