//! What a benchmark leaves behind: reading and writing of dialogues that were held.
//!
//! [`llmkgbench`] reads and writes the result files of LLM-KG-Bench, whoever made them.

pub mod llmkgbench;
