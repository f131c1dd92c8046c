//! Reads on one thread and judges on several; results come in the order of the files.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::{Condvar, Mutex, PoisonError, mpsc};
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
    let window = Window::default();
    let (to_judges, queue) = mpsc::sync_channel::<(u64, Read)>(threads.get());
    let queue = Mutex::new(queue);
    let (to_sink, events) = mpsc::channel::<(u64, ReplayEvent)>(); // Bounded by the window.
    thread::scope(|scope| {
        let window = &window;
        scope.spawn(move || read_all(documents, window, &to_judges));
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
                if let Err(error) = sink(event) {
                    window.close();
                    return Err(error);
                }
                window.advance(next);
            }
        }
        Ok(())
    })
}

fn read_all(documents: &[Document], window: &Window, to_judges: &mpsc::SyncSender<(u64, Read)>) {
    let mut number = 0;
    let mut send = |read: Read| {
        let open = window.wait_for(number) && to_judges.send((number, read)).is_ok();
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

/// Keeps the reader at most [`IN_FLIGHT_MAX`] records ahead of the sink.
#[derive(Default)]
struct Window {
    state: Mutex<WindowState>,
    moved: Condvar,
}

#[derive(Default)]
struct WindowState {
    done: u64,
    closed: bool,
}

impl Window {
    /// Waits until record `number` may be read; false if reading should stop.
    fn wait_for(&self, number: u64) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self
            .moved
            .wait_while(state, |state| !state.closed && number >= state.done + IN_FLIGHT_MAX)
            .unwrap_or_else(PoisonError::into_inner);
        !state.closed
    }

    fn advance(&self, done: u64) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).done = done;
        self.moved.notify_one();
    }

    fn close(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        self.moved.notify_one();
    }
}
