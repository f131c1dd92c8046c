//! The pack `authoring`: five tasks that are declared in a task file, which the pack itself holds. `KGFLEET_AUTHORING=FILE` seals a
//! changed file in its place, if it proves itself.

use std::path::{Path, PathBuf};

use packs::task_files::{CompiledFile, compile};
use packs::{Pack, published_password};

fn sealed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../task-data/authoring.kgpack")
}

/// Proves every task, and what the pack promises of it.
fn prove(compiled: &CompiledFile) {
    for proof in compiled.prove().unwrap() {
        let failures: Vec<&String> = proof.failures.iter().map(|(_, message)| message).collect();
        assert!(failures.is_empty(), "{}: {failures:#?}", proof.label);
        assert_eq!((proof.cases, proof.references), (10, 10), "{}: {:?}", proof.label, proof.notes);
        assert_eq!(proof.tests, proof.tests_passed, "{}", proof.label);
        if proof.label == "ShapesWrite" {
            assert_eq!(proof.mutants_right, 0, "every constraint is measured: {:?}", proof.notes);
            assert!(proof.mutants > 30, "{}", proof.mutants);
        }
        if proof.label == "SparqlNested" {
            assert_eq!(proof.tests, 30, "three slips for each case");
        }
    }
    let slips = compiled.tasks.iter().filter(|task| task.data.label.as_str() == "SparqlNested");
    for slip in slips.flat_map(|task| &task.tests) {
        assert!(slip.scores.iter().all(|(_, score)| *score < 0.7), "{}: {:?}", slip.case, slip.scores);
    }
    let report = packs::verify(&compiled.pack);
    assert!(report.is_clean(), "{:?}", report.findings);
}

#[test]
fn the_pack_is_what_its_own_file_compiles_to_and_proves_itself() {
    let password = published_password();
    if let Some(file) = std::env::var_os("KGFLEET_AUTHORING") {
        let compiled = compile(Path::new(&file)).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        prove(&compiled);
        packs::seal_file(compiled.pack.parts(), &password, &sealed()).unwrap();
    }
    let pack = Pack::open(&sealed(), &password).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("authoring.toml");
    std::fs::write(&file, pack.parts().text("task-file.toml").unwrap()).unwrap();
    let compiled = compile(&file).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    assert_eq!(compiled.pack.hash(), pack.hash(), "the same file gives the same pack");
    assert_eq!(compiled.tasks.len(), 5);
    prove(&compiled);
}
