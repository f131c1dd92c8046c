//! The state of the full screen of `kgfleet watch`, as plain data: the last views, the open list, the selection.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use domain::control::{BenchmarkView, WorkerView};

/// Silence after which the screen says that it may be stale.
pub const SILENCE: Duration = Duration::from_secs(5);

/// Rows that a page key moves by.
const PAGE: usize = 10;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum List {
    /// The models of the run.
    #[default]
    Models,
    /// The workers of the fleet.
    Workers,
    /// Why dialogues failed.
    Failures,
}

impl List {
    /// All lists, in the order of their keys.
    pub const ALL: [Self; 3] = [Self::Models, Self::Workers, Self::Failures];

    /// Its title.
    pub fn title(self) -> &'static str {
        match self {
            Self::Models => "Models",
            Self::Workers => "Workers",
            Self::Failures => "Failures",
        }
    }
}

/// The effect of a key on the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    Stay,
    /// Leave; the run continues.
    Leave,
    /// Leave as if by a signal.
    Interrupt,
}

/// The screen. Times are those since it began.
#[derive(Clone, Debug, Default)]
pub struct WatchState {
    /// The last view of the run.
    pub view: Option<BenchmarkView>,
    /// The last list of workers.
    pub workers: Vec<WorkerView>,
    pub list: List,
    heard: Duration,
    chosen: [usize; List::ALL.len()],
}

impl WatchState {
    /// Takes a new view of the run.
    pub fn told(&mut self, view: BenchmarkView, now: Duration) {
        self.view = Some(view);
        self.heard = now;
        self.keep_choices();
    }

    /// Takes a new list of workers.
    pub fn told_workers(&mut self, workers: Vec<WorkerView>) {
        self.workers = workers;
        self.keep_choices();
    }

    /// How long the coordinator has been silent, if that is too long.
    pub fn silence(&self, now: Duration) -> Option<Duration> {
        Some(now.saturating_sub(self.heard)).filter(|silence| *silence >= SILENCE)
    }

    pub fn rows(&self, list: List) -> usize {
        let view = self.view.as_ref();
        match list {
            List::Models => view.map_or(0, |view| view.models.len()),
            List::Workers => self.workers.len(),
            List::Failures => view.map_or(0, |view| view.refusals.len()),
        }
    }

    /// The selected row of the open list.
    pub fn chosen(&self) -> usize {
        self.chosen[self.list as usize]
    }

    /// Handles a key.
    pub fn press(&mut self, key: KeyEvent) -> Wish {
        if key.kind == KeyEventKind::Release {
            return Wish::Stay;
        }
        let last = self.rows(self.list).saturating_sub(1);
        let chosen = &mut self.chosen[self.list as usize];
        match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Wish::Interrupt,
            KeyCode::Char('q') | KeyCode::Esc => return Wish::Leave,
            KeyCode::Tab | KeyCode::Right => self.turn(1),
            KeyCode::BackTab | KeyCode::Left => self.turn(List::ALL.len() - 1),
            KeyCode::Char(digit @ '1'..='3') => self.list = List::ALL[digit as usize - '1' as usize],
            KeyCode::Down | KeyCode::Char('j') => *chosen = (*chosen + 1).min(last),
            KeyCode::Up | KeyCode::Char('k') => *chosen = chosen.saturating_sub(1),
            KeyCode::PageDown => *chosen = (*chosen + PAGE).min(last),
            KeyCode::PageUp => *chosen = chosen.saturating_sub(PAGE),
            KeyCode::Home | KeyCode::Char('g') => *chosen = 0,
            KeyCode::End | KeyCode::Char('G') => *chosen = last,
            _ => {}
        }
        Wish::Stay
    }

    fn turn(&mut self, by: usize) {
        self.list = List::ALL[(self.list as usize + by) % List::ALL.len()];
    }

    /// Moves selections back into their lists, which may have become shorter.
    fn keep_choices(&mut self) {
        for list in List::ALL {
            let last = self.rows(list).saturating_sub(1);
            let chosen = &mut self.chosen[list as usize];
            *chosen = (*chosen).min(last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::view::tests::{model, run};

    fn press(board: &mut WatchState, code: KeyCode) -> Wish {
        board.press(KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn keys_move_between_lists_and_within_them() {
        let mut board = WatchState::default();
        board.told(run((0..41).map(|n| model(&format!("m{n}"), 1)).collect()), Duration::ZERO);
        press(&mut board, KeyCode::Down);
        press(&mut board, KeyCode::PageDown);
        assert_eq!((board.list, board.chosen()), (List::Models, 11));
        press(&mut board, KeyCode::End);
        press(&mut board, KeyCode::Down);
        assert_eq!(board.chosen(), 40);
        press(&mut board, KeyCode::Tab);
        assert_eq!((board.list, board.chosen()), (List::Workers, 0));
        press(&mut board, KeyCode::Down);
        assert_eq!(board.chosen(), 0, "an empty list has nowhere to go");
        press(&mut board, KeyCode::Char('3'));
        assert_eq!(board.list, List::Failures);
        press(&mut board, KeyCode::Tab);
        assert_eq!((board.list, board.chosen()), (List::Models, 40), "a list keeps its place");
        board.told(run(vec![model("only", 1)]), Duration::ZERO);
        assert_eq!(board.chosen(), 0);
        assert_eq!(press(&mut board, KeyCode::Char('q')), Wish::Leave);
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(board.press(interrupt), Wish::Interrupt);
    }

    #[test]
    fn silence_is_noticed_after_five_seconds() {
        let mut board = WatchState::default();
        let at = Duration::from_secs;
        board.told(run(Vec::new()), at(10));
        assert_eq!(board.silence(at(14)), None);
        assert_eq!(board.silence(at(17)), Some(at(7)));
        board.told(run(Vec::new()), at(18));
        assert_eq!(board.silence(at(19)), None);
    }
}
