//! Hands the bytes of libFuzzer to `sse` in `tests/fuzz`, which reads them as a stream of events, and checks what it read.
//! fuzz/README.md says how to run it.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::sse(bytes));
