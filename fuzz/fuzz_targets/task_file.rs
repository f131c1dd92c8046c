//! Hands the bytes of libFuzzer to `task_file` in `tests/fuzz`, which reads them as a task file, and checks what it read.
//! fuzz/README.md says how to run it.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::task_file(bytes));
