//! Hands the bytes of libFuzzer to `sparql` in `tests/fuzz`, which reads them as a query in each of the grammars, and checks
//! what it read. fuzz/README.md says how to run it.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::sparql(bytes));
