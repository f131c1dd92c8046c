//! The workspace as cargo and the file system see it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Folders that hold nothing written by hand, beside those whose names begin with a dot.
const NOT_OURS: [&str; 2] = ["target", "kgfleet-data"];

/// The folder of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A package of the workspace.
pub struct Member {
    pub name: String,
    /// Its folder, relative to the workspace's.
    pub folder: String,
    /// What it depends on, in whatever way: names of packages.
    pub dependencies: Vec<String>,
    /// What its library and binary depend on: not its tests, benchmarks or build script.
    pub dependencies_of_code: Vec<String>,
    /// Its features, and those that are on unless somebody turns them off.
    pub features: Vec<String>,
    pub features_by_default: Vec<String>,
    /// The features that its library and binary ask of others.
    pub features_of_others: Vec<String>,
    /// The root files of its libraries, binaries, tests, benchmarks and examples.
    pub roots: Vec<PathBuf>,
}

/// All members, as cargo lists them.
pub fn members() -> Vec<Member> {
    let root = root();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["metadata", "--format-version", "1", "--no-deps", "--offline"];
    let output = Command::new(cargo).args(arguments).current_dir(&root).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let member = |package: &Value| {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let list = |field: &str| package[field].as_array().unwrap().clone();
        let manifest = PathBuf::from(text(&package["manifest_path"]));
        let folder = manifest.parent().unwrap().strip_prefix(&root).unwrap();
        Member {
            name: text(&package["name"]),
            folder: folder.to_str().unwrap().to_owned(),
            dependencies: list("dependencies").iter().map(|dependency| text(&dependency["name"])).collect(),
            dependencies_of_code: list("dependencies")
                .iter()
                .filter(|dependency| dependency["kind"].is_null())
                .map(|dependency| text(&dependency["name"]))
                .collect(),
            features: package["features"].as_object().unwrap().keys().cloned().collect(),
            features_by_default: match package["features"]["default"].as_array() {
                Some(features) => features.iter().map(text).collect(),
                None => Vec::new(),
            },
            features_of_others: list("dependencies")
                .iter()
                .filter(|dependency| dependency["kind"].is_null())
                .flat_map(|dependency| dependency["features"].as_array().unwrap().iter().map(text))
                .collect(),
            roots: list("targets").iter().map(|target| text(&target["src_path"]).into()).collect(),
        }
    };
    let members: Vec<Member> = metadata["packages"].as_array().unwrap().iter().map(member).collect();
    assert!(members.len() > 10, "cargo lists the members");
    members
}

/// The text files of the repository, relative to its folder, with their content.
pub fn text_files() -> Vec<(PathBuf, String)> {
    let root = root();
    let mut found = Vec::new();
    collect(&root, &root, &mut found);
    assert!(found.len() > 100, "the repository has files");
    found
}

fn collect(root: &Path, folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let hidden = name.starts_with('.') && name != ".ci";
        if hidden || NOT_OURS.contains(&name.as_str()) {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            collect(root, &path, found);
        } else if let Ok(text) = fs::read_to_string(&path) {
            found.push((path.strip_prefix(root).unwrap().to_owned(), text));
        }
    }
}
