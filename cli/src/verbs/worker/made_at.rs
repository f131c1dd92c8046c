//! What a worker knows of the place where its records are made.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// Where the driver tells of the GPUs of a machine.
const GPUS: &str = "/proc/driver/nvidia/gpus";

/// The largest description of a GPU that is read, in bytes.
const GPU_BYTES_MAX: u64 = 64 << 10;

/// The digest of this program's file.
pub fn digest_of_this_program() -> Option<String> {
    let (_, digest) = results::archive::hashed(&std::env::current_exe().ok()?).ok()?;
    Some(format!("sha256:{digest}"))
}

/// The command of a server in one line. What follows an option about a key, a token or a password is left out.
pub fn without_keys(command: &[String]) -> String {
    let names_secret = |option: &str| {
        let option = option.to_ascii_lowercase();
        option.starts_with('-')
            && ["key", "token", "password", "secret"].iter().any(|word| option.contains(word))
    };
    let mut words: Vec<String> = Vec::with_capacity(command.len());
    let mut is_secret = false;
    for word in command {
        let shown = match word.split_once('=') {
            _ if is_secret && !word.starts_with('-') => "***".to_owned(),
            Some((option, _)) if names_secret(option) => format!("{option}=***"),
            _ => word.clone(),
        };
        // Numbers of tokens are no tokens, and have values that are numbers.
        let counts = word.contains("tokens");
        is_secret = names_secret(word) && !word.contains('=') && !counts;
        words.push(if counts { word.clone() } else { shown });
    }
    words.join(" ")
}

/// The kind of the GPUs of this machine, if all are alike, and their number: those that this process may use, if it is told
/// so.
pub fn gpus_of_this_machine() -> (Option<String>, Option<u32>) {
    gpus_in(Path::new(GPUS), std::env::var("CUDA_VISIBLE_DEVICES").ok().as_deref())
}

fn gpus_in(folder: &Path, visible: Option<&str>) -> (Option<String>, Option<u32>) {
    let model = |entry: io::Result<std::fs::DirEntry>| {
        let mut text = String::new();
        let file = File::open(entry.ok()?.path().join("information")).ok()?;
        file.take(GPU_BYTES_MAX).read_to_string(&mut text).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("Model:"))?;
        Some(line.trim().to_owned())
    };
    let Ok(entries) = std::fs::read_dir(folder) else { return (None, None) };
    let models: Vec<String> = entries.filter_map(model).collect();
    let first = models.first().cloned();
    let kind = first.filter(|first| models.iter().all(|model| model == first));
    let counted = visible.map(|list| list.split(',').filter(|device| !device.trim().is_empty()).count());
    let gpus = counted.unwrap_or(models.len());
    (kind, u32::try_from(gpus).ok().filter(|gpus| *gpus > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(command: &str) -> String {
        without_keys(&command.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn keys_of_a_server_stand_in_no_record() {
        assert_eq!(
            shown("vllm serve m --api-key hunter2 --port {port}"),
            "vllm serve m --api-key *** --port {port}"
        );
        assert_eq!(shown("vllm serve m --api-key=hunter2"), "vllm serve m --api-key=***");
        assert_eq!(shown("s --hf-token x --tp 2"), "s --hf-token *** --tp 2");
        let counts = "vllm serve m --max-num-batched-tokens 8192 --max-model-len 4096";
        assert_eq!(shown(counts), counts);
    }

    #[test]
    fn gpus_are_what_the_driver_says_and_the_process_may_use() {
        let folder = tempfile::tempdir().unwrap();
        for (gpu, model) in [("0", "NVIDIA H100 80GB HBM3"), ("1", "NVIDIA H100 80GB HBM3")] {
            let place = folder.path().join(gpu);
            std::fs::create_dir(&place).unwrap();
            std::fs::write(place.join("information"), format!("Model: \t {model}\nIRQ: 1\n")).unwrap();
        }
        let kind = Some("NVIDIA H100 80GB HBM3".to_owned());
        assert_eq!(gpus_in(folder.path(), None), (kind.clone(), Some(2)));
        assert_eq!(gpus_in(folder.path(), Some("1")), (kind, Some(1)));
        assert_eq!(gpus_in(&folder.path().join("none"), Some("0")), (None, None));
    }

    #[test]
    fn the_digest_is_that_of_the_file() {
        let digest = digest_of_this_program().unwrap();
        assert!(digest.starts_with("sha256:") && digest.len() == 71, "{digest}");
    }
}
