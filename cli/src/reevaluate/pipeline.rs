//! Reads on one thread and judges on several; results come in the order of the files.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

use results::llmkgbench::{Document, FileError, ReadRecord, RecordError};
use tasks::{CaseError, Effort};
use worker::evaluate::STACK_BYTES;

use crate::files::exercises::BuiltExercises;

use super::replay::{Rejudged, rejudge};

/// Maximum number of records between reading and reporting. It bounds the memory used while one slow record is judged.
const IN_FLIGHT_MAX: u64 = 256;

/// The result of a record or a file.
pub(super) enum ReplayEvent {
    /// Judged again.
    Judged {
        /// Index of the document.
        document: usize,
        read: ReadRecord,
        class: tasks::TaskClass,
        rejudged: Rejudged,
    },
    /// Readable, but its case cannot be used.
    Unusable {
        document: usize,
        read: ReadRecord,
        error: CaseError,
    },
    Unreadable(RecordError),
    /// The file cannot be read further.
    File(FileError),
}

enum Read {
    Record { document: usize, read: ReadRecord },
    Failed(ReplayEvent),
}

/// Judges all records of `documents` on `threads` threads; `sink` gets one event per record, in order. Ends early
/// if the sink fails.
pub(super) fn run<E>(
    documents: &[Document],
    exercises: &BuiltExercises,
    effort: &Effort,
    threads: NonZeroUsize,
    mut sink: impl FnMut(ReplayEvent) -> Result<(), E>,
) -> Result<(), E> {
    let (to_judges, queue) = mpsc::sync_channel::<(u64, Read)>(threads.get());
    let queue = Mutex::new(queue);
    let (to_sink, events) = mpsc::channel::<(u64, ReplayEvent)>(); // Bounded by the permits.
    thread::scope(|scope| {
        let (permit, permits) = mpsc::channel::<()>();
        (0..IN_FLIGHT_MAX).try_for_each(|_| permit.send(())).ok();
        scope.spawn(move || read_all(documents, &permits, &to_judges));
        for _ in 0..threads.get() {
            let (queue, to_sink) = (&queue, to_sink.clone());
            let judge = move || {
                let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                while let Ok((number, read)) = next() {
                    let event = match read {
                        Read::Failed(event) => event,
                        Read::Record { document, read } => judge(document, read, exercises, effort),
                    };
                    if to_sink.send((number, event)).is_err() {
                        break;
                    }
                }
            };
            thread::Builder::new()
                .stack_size(STACK_BYTES)
                .spawn_scoped(scope, judge)
                .expect("the operating system starts a handful of threads");
        }
        drop(to_sink);
        let mut waiting = BTreeMap::new();
        let mut next = 0;
        for (number, event) in &events {
            waiting.insert(number, event);
            while let Some(event) = waiting.remove(&next) {
                next += 1;
                // After an error there are no more permits, and the reader stops.
                sink(event)?;
                let _ = permit.send(());
            }
        }
        Ok(())
    })
}

/// Reads all documents, each record by a permit.
fn read_all(documents: &[Document], permits: &mpsc::Receiver<()>, to_judges: &mpsc::SyncSender<(u64, Read)>) {
    let mut number = 0;
    let mut send = |read: Read| {
        let open = permits.recv().is_ok() && to_judges.send((number, read)).is_ok();
        number += 1;
        if open { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    for (document, source) in documents.iter().enumerate() {
        let mut broken = false;
        let outcome = source.read(|read| {
            let flow = send(match read {
                Ok(read) => Read::Record { document, read },
                Err(error) => Read::Failed(ReplayEvent::Unreadable(error)),
            });
            broken = flow.is_break();
            flow
        });
        let failed = outcome.is_err_and(|error| send(Read::Failed(ReplayEvent::File(error))).is_break());
        if broken || failed {
            return;
        }
    }
}

fn judge(document: usize, read: ReadRecord, exercises: &BuiltExercises, effort: &Effort) -> ReplayEvent {
    match exercises.of(&read.record) {
        Ok(known) => {
            let rejudged = rejudge(&*known.exercise, &read.record, effort);
            ReplayEvent::Judged { document, read, class: known.class, rejudged }
        }
        Err(error) => ReplayEvent::Unusable { document, read, error },
    }
}
