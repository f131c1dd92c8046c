//! A changed configuration: refused with the differences, or accepted as an extension.

use domain::DialogueKey;

use crate::harness::{Data, Finished, NT_TASK, RunOnDisk, TURTLE_TASK};

/// Simulated models of these labels.
fn config(iterations: u32, tasks: &[&str], models: &[&str]) -> String {
    let mut text = format!("name = 'growing'\nseed = 3\niterations = {iterations}\ntasks = {tasks:?}\n");
    for label in models {
        text.push_str(&format!("[[models]]\nlabel = '{label}'\nconnector = 'simulated'\n"));
    }
    text
}

struct Growing {
    data: Data,
    file: String,
    run: RunOnDisk,
}

impl Growing {
    fn start() -> Self {
        let data = Data::new();
        let file = data.write("growing.toml", config(2, &[NT_TASK], &["a"])).to_str().unwrap().to_owned();
        data.kgfleet(&["run", &file, "--no-sandbox"]).expect(0);
        let run = data.run();
        assert_eq!(run.records().len(), 2);
        Self { data, file, run }
    }

    fn resume(&self, config: String, options: &[&str]) -> Finished {
        std::fs::write(&self.file, config).unwrap();
        let arguments = [&["run", &self.file, "--resume", self.run.name(), "--no-sandbox"], options].concat();
        self.data.kgfleet(&arguments)
    }

    /// Extends; the keys that are new. Old records must stay as they are.
    fn extend(&self, config: String) -> Vec<DialogueKey> {
        let before = self.run.records();
        self.resume(config, &["--extend"]).expect(0);
        let after = self.run.records();
        assert!(before.iter().all(|(key, entry)| after.get(key) == Some(entry)));
        self.data.kgfleet(&["verify", self.run.name()]).expect(0);
        after.into_keys().filter(|key| !before.contains_key(key)).collect()
    }
}

#[test]
fn a_changed_configuration_is_refused_with_its_differences() {
    let growing = Growing::start();
    let before = growing.run.dir.manifest().unwrap();
    let changed = config(4, &[NT_TASK], &["a"]).replace("seed = 3", "seed = 4");
    let refused = growing.resume(changed, &[]).expect(2);
    let lines = ["- seed = 3", "+ seed = 4", "- iterations = 2", "+ iterations = 4", "pass --extend"];
    refused.says(&lines).says(&[growing.run.name()]);
    assert_eq!(growing.run.dir.manifest().unwrap(), before);
    assert_eq!(growing.run.records().len(), 2);
    // The same configuration is no change.
    growing.resume(config(2, &[NT_TASK], &["a"]), &[]).expect(0);
}

#[test]
fn an_extension_asks_only_what_is_new() {
    let growing = Growing::start();
    let new = growing.extend(config(5, &[NT_TASK], &["a"]));
    assert_eq!(new.iter().map(|key| key.iteration).collect::<Vec<_>>(), [2, 3, 4]);
    let new = growing.extend(config(5, &[NT_TASK, TURTLE_TASK], &["a"]));
    assert_eq!(new.len(), 5);
    assert!(new.iter().all(|key| key.task.as_str() == TURTLE_TASK));
    let new = growing.extend(config(5, &[NT_TASK, TURTLE_TASK], &["a", "b"]));
    assert_eq!(new.len(), 10);
    assert!(new.iter().all(|key| key.model.as_str() == "b"));
    // The run is now what it was extended to.
    growing.data.kgfleet(&["resume", growing.run.name()]).expect(0).says(&["20 dialogues scored"]);
    assert_eq!(growing.run.records().len(), 20);
}

#[test]
fn an_extension_takes_nothing_away() {
    let growing = Growing::start();
    let fewer = growing.resume(config(1, &[NT_TASK], &["a"]), &["--extend"]).expect(2);
    fewer.says(&["--extend only adds", NT_TASK]);
    let other_seed = config(3, &[NT_TASK], &["a"]).replace("seed = 3", "seed = 4");
    growing.resume(other_seed, &["--extend"]).expect(2).says(&["--extend keeps seed and pack"]);
    growing.data.kgfleet(&["run", &growing.file, "--extend"]).expect(2).says(&["--resume"]);
    assert_eq!(growing.run.records().len(), 2);
}
