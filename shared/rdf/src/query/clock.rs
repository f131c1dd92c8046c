//! The deadline of the query that runs on this thread.
//!
//! Oxigraph can be cancelled only where it reads the graph. Sorting, products of solutions already in memory and the
//! filtering of such products go on for minutes in between, and errors inside expressions are swallowed. What all of
//! these do is to copy terms. So every copy and every read of a term is a tick of a clock, and when the time is over
//! the tick unwinds the stack up to [`with_deadline`], as rust-analyzer does to cancel its queries. `resume_unwind`
//! calls no panic hook, and nothing of the evaluation is used after it.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Instant;

/// Ticks between two looks at the time. A tick costs a few nanoseconds, the work around it well below a microsecond.
const TICKS_PER_LOOK: u32 = 1024;

thread_local! {
    static DEADLINE: Cell<Option<Instant>> = const { Cell::new(None) };
    static TICKS: Cell<u32> = const { Cell::new(0) };
}

/// The deadline has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OutOfTime;

/// Runs `work` on this thread until it is done or the deadline has passed. `None` means no deadline.
///
/// # Errors
/// [`OutOfTime`] when `work` was cut off.
pub(super) fn with_deadline<T>(deadline: Option<Instant>, work: impl FnOnce() -> T) -> Result<T, OutOfTime> {
    let outer = DEADLINE.replace(deadline);
    let result = catch_unwind(AssertUnwindSafe(work));
    DEADLINE.set(outer);
    result.map_err(|payload| {
        if payload.is::<OutOfTime>() {
            return OutOfTime;
        }
        // Any other panic is a defect of the program and goes on.
        resume_unwind(payload)
    })
}

/// Counts a tick and leaves [`with_deadline`] if its time is over.
pub(super) fn tick() {
    let ticks = TICKS.get().wrapping_add(1);
    TICKS.set(ticks);
    if ticks.is_multiple_of(TICKS_PER_LOOK) {
        look();
    }
}

#[cold]
fn look() {
    if DEADLINE.get().is_some_and(|deadline| Instant::now() >= deadline) {
        // Whatever is dropped on the way out may tick, and must not unwind again.
        DEADLINE.set(None);
        resume_unwind(Box::new(OutOfTime));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn work_is_cut_off_at_its_deadline_and_only_there() {
        let endless = || -> () {
            loop {
                tick();
            }
        };
        assert_eq!(with_deadline(Some(Instant::now()), endless), Err(OutOfTime));
        let short = || (0..3 * TICKS_PER_LOOK).for_each(|_| tick());
        assert_eq!(with_deadline(None, short), Ok(()));
        assert_eq!(with_deadline(Some(Instant::now() + Duration::from_secs(3600)), short), Ok(()));
    }

    #[test]
    fn other_panics_go_on() {
        let caught = catch_unwind(|| with_deadline(None, || -> () { std::panic::panic_any(7_u8) }));
        assert!(caught.unwrap_err().is::<u8>());
    }
}
