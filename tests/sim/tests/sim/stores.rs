//! The queue and the sink of a simulation as one process sees them: every call waits its turn, and may fail.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use domain::RunId;
use queue::QueueStore;
use results::log::LogOptions;
use results::run_dir::FoundRun;
use results::sink::{OpenLog, SinkError, SinkReply, SinkReport};
use results::{RunDir, RunManifest, Sink};

use crate::world::{Process, World};

/// One call of so many fails while times are rough: half of these before they were carried out, half afterwards.
const FAILS_ONCE_IN: u64 = 400;

/// Whether a call fails.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    Before,
    After,
}

impl World {
    fn fault(&self) -> Fault {
        match self.below(2 * FAILS_ONCE_IN) {
            0 if self.rough.load(Ordering::Relaxed) => Fault::Before,
            1 if self.rough.load(Ordering::Relaxed) => Fault::After,
            _ => Fault::None,
        }
    }
}

/// The queue as a process reaches it.
pub struct QueueInTurn {
    pub world: Arc<World>,
    pub process: Arc<Process>,
    pub queue: Arc<dyn QueueStore>,
}

impl QueueInTurn {
    async fn turn<T>(&self, name: &str, call: impl Future<Output = queue::Result<T>>) -> queue::Result<T> {
        let fault = self.world.fault();
        let lost = || queue::Error::Unavailable { message: "the simulation cut the line".into() };
        self.world.before(&self.process, name, "").await;
        if fault == Fault::Before {
            return Err(lost());
        }
        let result = call.await;
        self.world.after(&self.process).await;
        if fault == Fault::After { Err(lost()) } else { result }
    }
}

/// Passes calls on in their turn.
macro_rules! in_turn {
    ($($call:ident($($argument:ident: $type:ty),*) -> $answer:ty;)+) => {
        #[async_trait::async_trait]
        impl QueueStore for QueueInTurn {
            fn address(&self) -> Option<&str> {
                self.queue.address()
            }

            $(async fn $call(&self, $($argument: $type),*) -> queue::Result<$answer> {
                self.turn(stringify!($call), self.queue.$call($($argument),*)).await
            })+
        }
    };
}

queue::for_each_call!(in_turn);

/// The sink as a process reaches it.
pub struct SinkInTurn {
    pub world: Arc<World>,
    pub process: Arc<Process>,
    pub sink: Arc<dyn Sink>,
}

impl fmt::Debug for SinkInTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {}", self.sink, self.process.name())
    }
}

impl fmt::Display for SinkInTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.sink.fmt(f)
    }
}

impl SinkInTurn {
    fn turn<'a, T: Send + 'a>(
        &'a self,
        name: &'static str,
        about: &'a str,
        call: SinkReply<'a, T>,
    ) -> SinkReply<'a, T> {
        Box::pin(async move {
            let fault = self.world.fault();
            self.world.before(&self.process, name, about).await;
            if fault == Fault::Before {
                return Err(SinkError::Ended);
            }
            let result = call.await;
            self.world.after(&self.process).await;
            if fault == Fault::After { Err(SinkError::Ended) } else { result }
        })
    }
}

impl Sink for SinkInTurn {
    fn folder(&self) -> &Path {
        self.sink.folder()
    }

    fn create_run<'a>(&'a self, manifest: &'a RunManifest) -> SinkReply<'a, RunDir> {
        self.turn("create_run", manifest.run.as_str(), self.sink.create_run(manifest))
    }

    fn runs(&self) -> SinkReply<'_, Vec<FoundRun>> {
        self.turn("runs", "", self.sink.runs())
    }

    fn existing<'a>(&'a self, run: &'a RunId) -> SinkReply<'a, RunDir> {
        self.turn("existing", run.as_str(), self.sink.existing(run))
    }

    fn read<'a>(&'a self, file: &'a str) -> SinkReply<'a, Option<Bytes>> {
        self.turn("read", file, self.sink.read(file))
    }

    fn replace<'a>(&'a self, file: &'a str, content: Bytes) -> SinkReply<'a, ()> {
        self.turn("replace", file, self.sink.replace(file, content))
    }

    fn create<'a>(&'a self, file: &'a str, content: Bytes) -> SinkReply<'a, bool> {
        self.turn("create", file, self.sink.create(file, content))
    }

    fn remove<'a>(&'a self, file: &'a str) -> SinkReply<'a, ()> {
        self.turn("remove", file, self.sink.remove(file))
    }

    fn list<'a>(&'a self, folder: &'a str) -> SinkReply<'a, Vec<String>> {
        self.turn("list", folder, self.sink.list(folder))
    }

    fn write_seal<'a>(&'a self, run: &'a RunId, name: &'a str, content: Bytes) -> SinkReply<'a, bool> {
        self.turn("write_seal", name, self.sink.write_seal(run, name, content))
    }

    fn remove_run<'a>(&'a self, run: &'a RunId) -> SinkReply<'a, ()> {
        self.turn("remove_run", run.as_str(), self.sink.remove_run(run))
    }

    fn open_log<'a>(&'a self, run: &'a RunId, options: LogOptions) -> SinkReply<'a, OpenLog> {
        self.turn("open_log", run.as_str(), self.sink.open_log(run, options))
    }

    fn check(&self) -> SinkReply<'_, SinkReport> {
        self.turn("check", "", self.sink.check())
    }
}
