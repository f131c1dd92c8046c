//! Reads on one thread and judges on several; results come in the order of the files.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, Sender, SyncSender};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

use results::llmkgbench::{Document, FileError, ReadRecord, RecordError};
use tasks::{CaseError, Effort};
use worker::evaluate::STACK_BYTES;

use crate::files::exercises::BuiltExercises;

use super::replay::{Rejudged, rejudge};

/// Maximum number of records between reading and reporting. It bounds the memory used while one slow record is judged.
const IN_FLIGHT_MAX: usize = 256;

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

/// A record that waits for a judge, and where its result is expected.
struct Waiting {
    document: usize,
    read: ReadRecord,
    result: Sender<ReplayEvent>,
}

/// Judges all records of `documents` on `threads` threads; `sink` gets one event per record, in order. Ends early
/// if the sink fails.
pub(super) fn run<E>(
    documents: &[Document],
    exercises: &BuiltExercises,
    effort: &Effort,
    threads: NonZeroUsize,
    sink: impl FnMut(ReplayEvent) -> Result<(), E>,
) -> Result<(), E> {
    let (to_judges, queue) = mpsc::sync_channel(threads.get());
    let queue: Mutex<Receiver<Waiting>> = Mutex::new(queue);
    // Every result has a channel of its own, and these channels come in the order of the files.
    let (in_order, results) = mpsc::sync_channel(IN_FLIGHT_MAX);
    thread::scope(|scope| {
        scope.spawn(move || read_all(documents, &in_order, &to_judges));
        for _ in 0..threads.get() {
            let queue = &queue;
            let judge = move || {
                let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                while let Ok(Waiting { document, read, result }) = next() {
                    // Nobody expects it any more after an error of the sink.
                    let _ = result.send(judge(document, read, exercises, effort));
                }
            };
            thread::Builder::new()
                .stack_size(STACK_BYTES)
                .spawn_scoped(scope, judge)
                .expect("the operating system starts a handful of threads");
        }
        // After an error nobody takes further results, and the reader stops.
        let mut results = results.into_iter().filter_map(|result: Receiver<ReplayEvent>| result.recv().ok());
        results.try_for_each(sink)
    })
}

/// Reads all documents for as long as somebody takes the results.
fn read_all(
    documents: &[Document],
    in_order: &SyncSender<Receiver<ReplayEvent>>,
    to_judges: &SyncSender<Waiting>,
) {
    let next = || {
        let (result, expected) = mpsc::channel();
        in_order.send(expected).ok().map(|()| result)
    };
    for (document, source) in documents.iter().enumerate() {
        let mut is_open = true;
        let outcome = source.read(|read| {
            is_open = next().is_some_and(|result| match read {
                Ok(read) => to_judges.send(Waiting { document, read, result }).is_ok(),
                Err(error) => result.send(ReplayEvent::Unreadable(error)).is_ok(),
            });
            if is_open { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        if let (true, Err(error)) = (is_open, outcome) {
            is_open = next().is_some_and(|result| result.send(ReplayEvent::File(error)).is_ok());
        }
        if !is_open {
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
