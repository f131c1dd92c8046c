//! Hands the bytes of libFuzzer to `fences` in `tests/fuzz`, which reads them as an answer with fenced blocks, and checks what
//! it read. fuzz/README.md says how to run it.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::fences(bytes));
