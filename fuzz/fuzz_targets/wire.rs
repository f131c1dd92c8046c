//! Hands the bytes of libFuzzer to `wire` in `tests/fuzz`, which reads them as every message of the wire, and checks what it
//! read. fuzz/README.md says how to run it.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::wire(bytes));
