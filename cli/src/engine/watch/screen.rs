//! The full screen: the loop that keeps it up to date, and a terminal that is always restored.

use std::io::{self, IsTerminal};
use std::time::Duration;

use crossterm::event::{Event, EventStream};
use domain::RunId;
use domain::control::{Control, WorkerView};
use domain::exchange::Reply;
use futures::StreamExt;
use futures::future::BoxFuture;
use ratatui::DefaultTerminal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use super::board::{WatchState, Wish};
use super::draw::draw;
use super::end;
use super::follow::ViewFeed;
use crate::engine::ending::exit_code;
use crate::kit::exit_code::{ExitCode, explained};
use crate::kit::view;

/// Time between two queries of the workers.
const WORKERS_EVERY: Duration = Duration::from_secs(2);

/// Redraw interval without events: the screen counts the seconds of a silence.
const DRAWN_EVERY: Duration = Duration::from_secs(1);

/// Whether standard input and output are a terminal.
pub fn is_there() -> bool {
    io::stdout().is_terminal() && io::stdin().is_terminal()
}

/// The alternate screen without echo. Dropping it restores the terminal, and so does a panic before its message is
/// printed.
struct Screen(DefaultTerminal);

impl Screen {
    fn enter() -> io::Result<Self> {
        ratatui::try_init().map(Self)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.0.show_cursor();
        ratatui::restore();
    }
}

enum Ended {
    Over,
    Left,
    Interrupted,
}

/// Shows a run until it ends or the watcher leaves.
pub async fn follow(control: &dyn Control, run: &RunId) -> anyhow::Result<ExitCode> {
    // If the run cannot be followed at all, the error is printed on the normal screen.
    let mut views = ViewFeed::of(control, run);
    let first = views.next().await.map_err(explained)?;
    let mut board = WatchState::default();
    board.told(first, Duration::ZERO);
    let ended = {
        let mut screen = Screen::enter()?;
        show(&mut screen.0, control, &mut views, &mut board).await?
    };
    let Some(last) = &board.view else { return Ok(ExitCode::Success) };
    let mut out = io::stdout().lock();
    use std::io::Write;
    writeln!(out, "{}", view::headline(last))?;
    match ended {
        Ended::Over => {
            end(last, &mut out)?;
            Ok(exit_code(last, false))
        }
        Ended::Left => Ok(ExitCode::Success),
        Ended::Interrupted => Ok(ExitCode::Interrupted),
    }
}

async fn show(
    terminal: &mut DefaultTerminal,
    control: &dyn Control,
    views: &mut ViewFeed<'_>,
    board: &mut WatchState,
) -> anyhow::Result<Ended> {
    let (mut interrupt, mut terminate, mut hangup) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
    let began = Instant::now();
    let mut keys = Some(EventStream::new());
    let mut ticks = tokio::time::interval(DRAWN_EVERY);
    let mut looks = tokio::time::interval(WORKERS_EVERY);
    let mut asking: Option<BoxFuture<'_, Reply<Vec<WorkerView>>>> = None;
    loop {
        if board.view.as_ref().is_some_and(|view| view.phase.is_over()) {
            return Ok(Ended::Over);
        }
        // The size is queried each time, so that a resize is an ordinary redraw.
        terminal.draw(|frame| draw(frame, board, began.elapsed()))?;
        tokio::select! {
            view = views.next() => board.told(view.map_err(explained)?, began.elapsed()),
            workers = answer(&mut asking) => {
                // A failed query is repeated later.
                if let Ok(workers) = workers {
                    board.told_workers(workers);
                }
            }
            event = next_event(&mut keys) => match event {
                Some(Ok(Event::Key(key))) => match board.press(key) {
                    Wish::Stay => {}
                    Wish::Leave => return Ok(Ended::Left),
                    Wish::Interrupt => return Ok(Ended::Interrupted),
                },
                Some(Ok(_)) => {}
                // Without keys the screen still works; signals end it.
                Some(Err(_)) | None => keys = None,
            },
            _ = looks.tick() => {
                if asking.is_none() {
                    asking = Some(control.workers());
                }
            }
            _ = ticks.tick() => {}
            _ = interrupt.recv() => return Ok(Ended::Interrupted),
            _ = terminate.recv() => return Ok(Ended::Interrupted),
            _ = hangup.recv() => return Ok(Ended::Interrupted),
        }
    }
}

async fn next_event(keys: &mut Option<EventStream>) -> Option<io::Result<Event>> {
    match keys {
        Some(keys) => keys.next().await,
        None => std::future::pending().await,
    }
}

/// The pending answer; pends forever if there is none.
async fn answer<T>(asking: &mut Option<BoxFuture<'_, Reply<T>>>) -> Reply<T> {
    let Some(call) = asking else { return std::future::pending().await };
    let answer = call.as_mut().await;
    *asking = None;
    answer
}
