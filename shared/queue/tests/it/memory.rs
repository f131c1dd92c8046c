//! The memory model under the conformance suite, its invariants checked after every operation.

use queue::testing::Bench;

async fn open() -> Option<Bench> {
    Some(Bench::memory())
}

queue::conformance_suite!(open);
