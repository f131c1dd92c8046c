//! Packs by hash: the built-in one, those in the sink, and files for runs of one process.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use packs::{Pack, published_password, seal_quickly};
use results::RunManifest;
use results::sink::SinkError;

use crate::errors::{Result, internal, invalid, not_found};
use crate::plan::configuration::Configuration;
use crate::records::store::Store;

/// The name of the built-in pack.
pub const CORE_PACK: &str = "core";

/// Maximum number of opened packs kept in memory.
const OPEN_MAX: usize = 4;

/// The packs of runs; recently used ones stay open.
pub(crate) struct Packs {
    store: Arc<Store>,
    open: Mutex<Vec<Arc<Pack>>>,
    /// The built-in pack as a sealed file, created when a worker of another version first asks for it.
    builtin: tokio::sync::OnceCell<Arc<[u8]>>,
}

impl Packs {
    pub(crate) fn new(store: Arc<Store>) -> Self {
        Self { store, open: Mutex::default(), builtin: tokio::sync::OnceCell::new() }
    }

    fn get(&self, hash: &str) -> Option<Arc<Pack>> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.iter().find(|pack| pack.hash().as_str() == hash).cloned()
    }

    fn remember(&self, pack: &Arc<Pack>) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() == OPEN_MAX {
            open.remove(0);
        }
        open.push(Arc::clone(pack));
    }

    /// The pack of a submission, with its file if it is not the built-in one.
    pub(crate) async fn submitted(
        &self,
        configuration: &Configuration,
        sealed: Option<Arc<[u8]>>,
    ) -> Result<(Arc<Pack>, Option<Arc<[u8]>>)> {
        let name = configuration.pack.clone();
        let sealed = match sealed {
            Some(sealed) => sealed,
            None if name == CORE_PACK => return Ok((builtin().await?, None)),
            None if self.store.is_shared() => {
                return Err(invalid(format!(
                    "pack `{name}` is a file that the coordinator does not have; send it with the submission"
                )));
            }
            None => read_file(&name).await?,
        };
        let pack = open(name, Arc::clone(&sealed)).await?;
        self.remember(&pack);
        Ok((pack, Some(sealed)))
    }

    /// The pack of a run that exists.
    pub(crate) async fn of_run(&self, manifest: &RunManifest) -> Result<Arc<Pack>> {
        let run = &manifest.run;
        let hash = manifest.packs.first().map(|pack| pack.hash.clone()).unwrap_or_default();
        let built_in = builtin().await?;
        if built_in.hash().as_str() == hash {
            return Ok(built_in);
        }
        if let Some(pack) = self.get(&hash) {
            return Ok(pack);
        }
        let name = manifest.configuration.get("pack").and_then(|pack| pack.as_str()).unwrap_or_default();
        let sealed = match self.kept_pack(&hash).await? {
            Some(sealed) => sealed,
            None if name == CORE_PACK => return Ok(built_in),
            None => return Err(not_found(format!("the pack {hash} of run {run} is not in the sink"))),
        };
        let pack = open(name.to_owned(), Arc::clone(&sealed)).await?;
        // Store it with the run from now on: workers ask for it by hash, and the file may be gone next time.
        self.store.sink.put_pack(pack.hash().as_str(), Bytes::from_owner(sealed)).await?;
        self.remember(&pack);
        Ok(pack)
    }

    /// A pack of the sink by its hash; `name` is for messages.
    pub(crate) async fn of_hash(&self, hash: &str, name: &str) -> Result<Arc<Pack>> {
        let built_in = builtin().await?;
        if built_in.hash().as_str() == hash {
            return Ok(built_in);
        }
        if let Some(pack) = self.get(hash) {
            return Ok(pack);
        }
        let pack = open(name.to_owned(), self.sealed(hash).await?).await?;
        self.remember(&pack);
        Ok(pack)
    }

    /// Stores the built-in pack in the sink: a later version of the program may have another one and must continue with the
    /// one from which a run was planned. Packs submitted as files are stored already.
    pub(crate) async fn keep(&self, hash: &str) -> Result<()> {
        if self.kept_pack(hash).await?.is_none() {
            let sealed = self.sealed(hash).await?;
            self.store.sink.put_pack(hash, Bytes::from_owner(sealed)).await?;
        }
        Ok(())
    }

    /// A pack that the sink has.
    async fn kept_pack(&self, hash: &str) -> Result<Option<Arc<[u8]>>> {
        match self.store.sink.pack(hash).await {
            Ok(pack) => Ok(pack.map(|sealed| Arc::from(&*sealed))),
            // Not a hash, so not a pack.
            Err(SinkError::PackHash(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// A pack as a sealed file.
    pub(crate) async fn sealed(&self, hash: &str) -> Result<Arc<[u8]>> {
        let built_in = builtin().await?;
        if built_in.hash().as_str() == hash {
            let sealed = self.builtin.get_or_try_init(|| seal_again(built_in)).await?;
            return Ok(Arc::clone(sealed));
        }
        let sealed = self.kept_pack(hash).await?;
        sealed.ok_or_else(|| not_found(format!("there is no pack {hash}")))
    }
}

async fn builtin() -> Result<Arc<Pack>> {
    service_kit::aside::run(Pack::shared_builtin).await.map_err(internal)?.map_err(internal)
}

/// Seals the built-in pack again: the bytes differ, the hash is the same. Quickly, because the first run of a folder waits for
/// it.
async fn seal_again(pack: Arc<Pack>) -> Result<Arc<[u8]>> {
    let seal = move || -> Result<Arc<[u8]>> {
        let password = published_password();
        seal_quickly(pack.parts(), &password).map(Into::into).map_err(internal)
    };
    service_kit::aside::run(seal).await.map_err(internal)?
}

async fn open(name: String, sealed: Arc<[u8]>) -> Result<Arc<Pack>> {
    let open = move || -> Result<Arc<Pack>> {
        let password = published_password();
        let pack = Pack::open_bytes(&name, &sealed, &password);
        pack.map(Arc::new).map_err(|error| invalid(error.to_string()))
    };
    service_kit::aside::run(open).await.map_err(internal)?
}

async fn read_file(name: &str) -> Result<Arc<[u8]>> {
    if let Some(sealed) = packs::bundled(name) {
        return Ok(sealed.into());
    }
    let path = Path::new(name).to_owned();
    let read = move || service_kit::named_files::read(&path, packs::SEALED_BYTES_MAX);
    let bytes = service_kit::aside::run(read).await.map_err(internal)?;
    bytes.map(Into::into).map_err(|error| invalid(format!("pack `{name}`: {error}")))
}
