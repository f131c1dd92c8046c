//! Hands the bytes of libFuzzer to `turtle` in `tests/fuzz`, which reads them as a Turtle document, and checks what it read.
//! fuzz/README.md says how to run it.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::turtle(bytes));
