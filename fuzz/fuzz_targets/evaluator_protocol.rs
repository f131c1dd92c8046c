//! Hands the bytes of libFuzzer to `evaluator_protocol` in `tests/fuzz`, which reads them as a message between a worker and its
//! evaluation processes, and checks what it read. fuzz/README.md says how to run it.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::evaluator_protocol(bytes));
