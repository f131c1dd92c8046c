//! The state of the full screen of `kgfleet watch`, as plain data: the last views, the open list, the selection.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use domain::ModelLabel;
use domain::control::{BenchmarkView, ModelView, WorkerView};
use domain::ranking::{Contender, ranked};

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

/// The order of models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ModelOrder {
    /// That of the plan.
    #[default]
    Planned,
    /// Who takes longest for the rest first; who stands still takes longer than anybody.
    Slowest,
    /// Most failures first.
    Failed,
    /// The best first; below them those that cover less of their plan.
    Best,
    Name,
}

impl ModelOrder {
    /// All orders, as a key goes through them.
    pub const ALL: [Self; 5] = [Self::Planned, Self::Slowest, Self::Failed, Self::Best, Self::Name];

    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Planned => "as planned",
            Self::Slowest => "slowest first",
            Self::Failed => "most failed first",
            Self::Best => "best first",
            Self::Name => "by name",
        }
    }

    fn next(self) -> Self {
        Self::ALL[(self as usize + 1) % Self::ALL.len()]
    }

    fn put(self, models: &mut Vec<&ModelView>) {
        let time_left = |model: &ModelView| match model.remaining() {
            0 => 0.0,
            _ => model.pace.eta_s.unwrap_or(f64::INFINITY),
        };
        match self {
            Self::Planned => {}
            Self::Slowest => models.sort_by(|a, b| time_left(b).total_cmp(&time_left(a))),
            Self::Failed => models.sort_by_key(|model| std::cmp::Reverse(model.failed)),
            Self::Name => models.sort_by(|a, b| a.model.cmp(&b.model)),
            Self::Best => {
                let contender = |model: &&ModelView| Contender {
                    value: model.mean.value,
                    covered: model.scored,
                    planned: model.planned,
                    bounds: None,
                };
                let contenders: Vec<Contender> = models.iter().map(contender).collect();
                let places = ranked(&contenders, domain::control::Better::Higher);
                *models = places.into_iter().map(|place| models[place.contender]).collect();
            }
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
    pub order: ModelOrder,
    heard: Duration,
    chosen: [usize; List::ALL.len()],
}

impl WatchState {
    /// Takes a new view of the run.
    pub fn told(&mut self, view: BenchmarkView, now: Duration) {
        let chosen = self.chosen_model();
        self.view = Some(view);
        self.heard = now;
        self.choose_again(chosen);
        self.keep_choices();
    }

    /// The models in their order.
    pub fn models(&self) -> Vec<&ModelView> {
        let mut models: Vec<&ModelView> = self.view.iter().flat_map(|view| &view.models).collect();
        self.order.put(&mut models);
        models
    }

    fn chosen_model(&self) -> Option<ModelLabel> {
        self.models().get(self.chosen[List::Models as usize]).map(|model| model.model.clone())
    }

    /// Keeps a model selected, wherever it stands now.
    fn choose_again(&mut self, chosen: Option<ModelLabel>) {
        let Some(chosen) = chosen else { return };
        if let Some(place) = self.models().iter().position(|model| model.model == chosen) {
            self.chosen[List::Models as usize] = place;
        }
    }

    /// Selects the next model that is blocked or parked, from the beginning again after the last one.
    fn find_blocked(&mut self) {
        self.list = List::Models;
        let models = self.models();
        let is_blocked = |model: &ModelView| model.blocked.is_some() || model.parked.is_some();
        let from = self.chosen() + 1;
        let found =
            (0..models.len()).map(|step| (from + step) % models.len()).find(|at| is_blocked(models[*at]));
        if let Some(found) = found {
            self.chosen[List::Models as usize] = found;
        }
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
            KeyCode::Char('s') => {
                let chosen = self.chosen_model();
                (self.list, self.order) = (List::Models, self.order.next());
                self.choose_again(chosen);
            }
            KeyCode::Char('b') => self.find_blocked(),
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
    fn models_are_sorted_and_the_chosen_one_stays_chosen() {
        let mut board = WatchState::default();
        let slow = |name: &str, eta_s, failed| {
            let mut model = model(name, 5);
            (model.pace.eta_s, model.failed) = (eta_s, failed);
            model
        };
        let models = vec![
            slow("b", Some(5.0), 9),
            slow("c", Some(90.0), 0),
            slow("a", None, 1),
            slow("d", Some(7.0), 0),
        ];
        board.told(run(models.clone()), Duration::ZERO);
        let names = |board: &WatchState| -> String {
            board.models().iter().map(|model| model.model.as_str()).collect()
        };
        press(&mut board, KeyCode::Down);
        let mut seen = vec![names(&board)];
        for _ in 1..ModelOrder::ALL.len() {
            press(&mut board, KeyCode::Char('s'));
            seen.push(names(&board));
            assert_eq!(board.models()[board.chosen()].model.as_str(), "c");
        }
        assert_eq!(seen, ["bcad", "acdb", "bacd", "bcad", "abcd"]);
        press(&mut board, KeyCode::Char('s'));
        press(&mut board, KeyCode::Char('s'));
        // It has become the fastest of all.
        let mut models = models;
        models[1].pace.eta_s = Some(1.0);
        board.told(run(models), Duration::ZERO);
        assert_eq!((names(&board).as_str(), board.chosen()), ("adbc", 3));
    }

    #[test]
    fn a_key_goes_from_one_blocked_model_to_the_next() {
        let mut board = WatchState::default();
        let blocked = |name: &str| crate::kit::view::tests::blocked_by("no worker serves it", model(name, 0));
        board.told(run(vec![model("a", 1), blocked("b"), model("c", 1), blocked("d")]), Duration::ZERO);
        press(&mut board, KeyCode::Char('3'));
        let mut seen = Vec::new();
        for _ in 0..3 {
            press(&mut board, KeyCode::Char('b'));
            seen.push((board.list, board.chosen()));
        }
        assert_eq!(seen, [(List::Models, 1), (List::Models, 3), (List::Models, 1)]);
        board.told(run(vec![model("a", 1)]), Duration::ZERO);
        press(&mut board, KeyCode::Char('b'));
        assert_eq!(board.chosen(), 0, "there is none");
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
