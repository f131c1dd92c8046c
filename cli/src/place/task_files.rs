//! Task files of this machine: compiled and proven once per process, whatever asks for them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use coordinator::configuration::{Configuration, ModelSpec};
use packs::task_files::CompiledFile;
use packs::{Pack, PackError, published_password};

use crate::kit::exit_code::{Exit, usage};

pub use packs::task_files::is_task_file;

/// Compiles a task file, and refuses one whose answers of known score do not get it.
///
/// # Errors
/// The mistakes of the file, or what could not be proven.
fn proven(path: &Path) -> anyhow::Result<Arc<CompiledFile>> {
    let compiled = packs::task_files::compile(path).map_err(Exit::usage)?;
    let proofs = compiled.prove()?;
    let failed: usize = proofs.iter().map(|proof| proof.failures.len()).sum();
    if failed > 0 {
        let path = path.display();
        return Err(usage!(
            "{path}: {failed} answers or cases are not what the file says; `kgfleet task check {path}` names them"
        ));
    }
    Ok(Arc::new(compiled))
}

/// The compiled task file of a path; `None` if it is none. Within a process it stays what it was when it was first read.
///
/// # Errors
/// It cannot be used.
pub fn compiled(path: &Path) -> anyhow::Result<Option<Arc<CompiledFile>>> {
    static COMPILED: LazyLock<Mutex<HashMap<PathBuf, Arc<CompiledFile>>>> = LazyLock::new(Mutex::default);
    let mut known = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(compiled) = known.get(path) {
        return Ok(Some(Arc::clone(compiled)));
    }
    if !is_task_file(path) {
        return Ok(None);
    }
    let compiled = proven(path)?;
    known.insert(path.to_owned(), Arc::clone(&compiled));
    Ok(Some(compiled))
}

/// The pack of a task file, sealed for the published password as all packs that are sent; `None` if it is no task file.
///
/// # Errors
/// It cannot be used.
pub fn sealed(path: &str) -> anyhow::Result<Option<Arc<[u8]>>> {
    let Some(compiled) = compiled(Path::new(path))? else { return Ok(None) };
    let sealed = packs::seal_quickly(compiled.pack.parts(), &published_password());
    Ok(Some(sealed.map_err(|error: PackError| Exit::usage(error))?.into()))
}

/// The pack of a task file; `None` if it is none.
///
/// # Errors
/// It cannot be used.
pub fn pack(path: &str) -> anyhow::Result<Option<Arc<Pack>>> {
    Ok(compiled(Path::new(path))?.map(|compiled| Arc::new(compiled.pack.clone())))
}

/// A configuration that asks these models every case of a task file as often as the file says; `None` if it is no task file.
///
/// # Errors
/// It cannot be used.
pub fn configuration(path: &Path, models: Vec<ModelSpec>) -> anyhow::Result<Option<Configuration>> {
    let Some(compiled) = compiled(path)? else { return Ok(None) };
    let name = compiled.pack.header().name.clone();
    Ok(Some(Configuration { pack: path.display().to_string(), ..Configuration::of_models(name, models) }))
}
