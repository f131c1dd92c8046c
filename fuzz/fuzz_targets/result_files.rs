//! Hands the bytes of libFuzzer to `result_files` in `tests/fuzz`, which reads them as a result file of LLM-KG-Bench, or an
//! archive of some, and checks what it read. fuzz/README.md says how to run it.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::result_files(bytes));
