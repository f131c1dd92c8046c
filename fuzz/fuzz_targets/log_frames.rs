//! Hands the bytes of libFuzzer to `log_frames` in `tests/fuzz`, which reads them as lines, frames and segments of the record
//! log, and checks what it read. fuzz/README.md says how to run it.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::log_frames(bytes));
