//! Hands the bytes of libFuzzer to `shapes` in `tests/fuzz`, which reads them as a graph of SHACL shapes, and checks what it read.
//! fuzz/README.md says how to run it.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::shapes(bytes));
