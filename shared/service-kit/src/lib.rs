//! What every process needs and nothing about benchmarks.
