//! The memory model under the conformance suite, its invariants checked after every operation.

use queue::testing::Bench;

use crate::conformance::conformance_suite;

async fn open() -> Option<Bench> {
    Some(Bench::memory())
}

conformance_suite!(open);
