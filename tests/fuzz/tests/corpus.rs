//! Every input of the corpus, and damaged copies of each, go through their target.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::path::Path;
use std::time::{Duration, Instant};

use domain::seed::SplitMix64;
use fuzz_targets::{TARGETS, Target};

/// Damaged copies of an input in a short run. `KGFLEET_FUZZ_SECONDS` goes on for so long with each target, and
/// `KGFLEET_FUZZ_SEED` sets what is damaged: for machines without a nightly compiler.
const COPIES: u64 = 16;

/// Longest input: what is longer costs more than it finds.
const INPUT_BYTES_MAX: u64 = 4 << 10;

/// A copy with some bytes changed, left out or repeated.
fn damaged(input: &[u8], random: &mut SplitMix64) -> Vec<u8> {
    let mut copy = input.to_vec();
    for _ in 0..=random.next_u64() % 4 {
        if copy.is_empty() {
            break;
        }
        let at = random.next_u64() as usize % copy.len();
        match random.next_u64() % 4 {
            0 => copy[at] = random.next_u64() as u8,
            1 => copy[at] ^= 1 << (random.next_u64() % 8),
            2 => drop(copy.drain(at..(at + 1 + random.next_u64() as usize % 8).min(copy.len()))),
            _ => copy.extend_from_within(at..(at + 64).min(copy.len())),
        }
    }
    copy
}

/// Runs the inputs of a target; how many there were.
fn replay(name: &str, target: Target) -> usize {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let inputs: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
    for (input, file) in inputs.iter().zip(&files) {
        assert!(input.len() as u64 <= INPUT_BYTES_MAX, "{} has {} bytes", file.display(), input.len());
        target(input);
    }
    let length = Duration::from_secs(setting("KGFLEET_FUZZ_SECONDS", 0));
    let (mut random, begin, mut tried) =
        (SplitMix64::new(setting("KGFLEET_FUZZ_SEED", 1)), Instant::now(), 0_u64);
    while tried < COPIES * inputs.len() as u64 || begin.elapsed() < length {
        let mut copy = damaged(&inputs[random.next_u64() as usize % inputs.len()], &mut random);
        if random.next_u64().is_multiple_of(4) {
            // The end of another one behind it.
            let other = &inputs[random.next_u64() as usize % inputs.len()];
            copy.extend_from_slice(&other[random.next_u64() as usize % (other.len() + 1)..]);
        }
        let kept = copy.clone();
        if std::panic::catch_unwind(|| target(&copy)).is_err() {
            let found = std::env::temp_dir().join(format!("{name}-{:016x}", random.next_u64()));
            std::fs::write(&found, kept).unwrap();
            panic!("{name} breaks on {}: put it into the corpus", found.display());
        }
        tried += 1;
    }
    println!(
        "{name}: {} inputs, {tried} damaged copies in {:.0} s",
        inputs.len(),
        begin.elapsed().as_secs_f64()
    );
    files.len()
}

/// A number from the environment.
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn no_input_of_the_corpus_breaks_its_target() {
    for (name, target) in TARGETS {
        let inputs = replay(name, target);
        assert!(inputs > 3, "{name} has {inputs} inputs");
    }
}

#[test]
fn every_target_has_its_wrapper_for_the_fuzzer() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let manifest = std::fs::read_to_string(fuzz.join("Cargo.toml")).unwrap();
    for (name, _) in TARGETS {
        let path = format!("fuzz_targets/{name}.rs");
        assert!(manifest.contains(&format!("path = \"{path}\"")), "{path} is built");
        let wrapper = std::fs::read_to_string(fuzz.join(&path)).unwrap();
        assert!(wrapper.contains(&format!("fuzz_targets::{name}(bytes)")), "{path} calls its target");
    }
}
