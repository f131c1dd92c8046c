//! Draws the board: three fixed lines, the open list, the selected entry in full, and the keys.

use std::time::Duration;

use domain::control::{ModelView, RefusalView, WorkerView};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Row, Table, TableState, Wrap};
use report::tables::fleet;

use super::board::{List, ModelOrder, WatchState};
use crate::kit::output::{duration, figure, printable};
use crate::kit::view;

/// The keys, as in `--help`.
pub const KEYS: &str = "Tab 1 2 3 lists  ↑ ↓ PgUp PgDn Home End move  s order  b next blocked  q leave";

/// Lines for the selected entry.
const DETAIL_LINES: u16 = 3;

/// Minimum width for all columns of a list.
const WIDE: u16 = 110;

/// A column: its title, whether it is a number, whether only a wide screen shows it, and its width; 0 for the
/// remaining width.
type Column = (&'static str, bool, bool, u16);

/// Draws everything.
pub fn draw(frame: &mut Frame<'_>, board: &WatchState, now: Duration) {
    let [head, pace, trouble, tabs, list, detail, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(DETAIL_LINES),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let (title, counts) = match &board.view {
        None => ("waiting for the coordinator".to_owned(), String::new()),
        Some(view) => {
            let name = printable(&view.name);
            (format!("run {} {}: {name}", view.run, view.phase), view::counts_and_pace(view))
        }
    };
    frame.render_widget(Line::styled(title, bold), head);
    frame.render_widget(Line::raw(counts), pace);
    let note = match (board.silence(now), &board.view) {
        (Some(silence), _) => {
            let seconds = silence.as_secs();
            Some(format!("no answer for {seconds} s; showing the last view"))
        }
        (None, Some(view)) => view::trouble(view),
        (None, None) => None,
    };
    frame.render_widget(Line::styled(note.unwrap_or_default(), bold.fg(Color::Red)), trouble);
    frame.render_widget(titles(board), tabs);
    let (columns, rows, full) = match board.list {
        List::Models => {
            let models = board.models();
            (MODELS, models.into_iter().map(of_model).collect(), chosen_model(board))
        }
        List::Workers => (WORKERS, board.workers.iter().map(of_worker).collect(), chosen_worker(board)),
        List::Failures => {
            let refusals = board.view.iter().flat_map(|view| &view.refusals);
            (FAILURES, refusals.map(of_refusal).collect(), chosen_refusal(board))
        }
    };
    draw_list(frame, list, columns, rows, board.chosen());
    frame.render_widget(Paragraph::new(full).wrap(Wrap { trim: true }).dim(), detail);
    frame.render_widget(Line::raw(KEYS).reversed(), keys);
}

fn titles(board: &WatchState) -> Line<'static> {
    let title = |(number, list): (usize, List)| {
        let order = match board.order {
            ModelOrder::Planned => String::new(),
            order => format!(", {}", order.words()),
        };
        let order = if list == List::Models { order } else { String::new() };
        let text = format!(" {} {} {}{order} ", number + 1, list.title(), board.rows(list));
        if list == board.list { Span::raw(text).reversed() } else { Span::raw(text) }
    };
    Line::from_iter(List::ALL.into_iter().enumerate().map(title))
}

fn draw_list(frame: &mut Frame<'_>, area: Rect, columns: &[Column], rows: Vec<Vec<String>>, chosen: usize) {
    let shown = |wide: bool| !wide || area.width >= WIDE;
    let keep = |cells: Vec<String>| -> Vec<Line<'static>> {
        let cells = cells.into_iter().zip(columns).filter(|(_, (_, _, wide, _))| shown(*wide));
        cells
            .map(|(cell, (_, number, ..))| {
                let line = Line::raw(cell);
                if *number { line.right_aligned() } else { line }
            })
            .collect()
    };
    let widths = columns.iter().filter(|(_, _, wide, _)| shown(*wide)).map(|(.., width)| match width {
        0 => Constraint::Fill(1),
        width => Constraint::Length(*width),
    });
    let widths: Vec<Constraint> = widths.collect();
    let head = keep(columns.iter().map(|(name, ..)| (*name).to_owned()).collect());
    let mut state = TableState::new();
    if !rows.is_empty() {
        state.select(Some(chosen));
    }
    // What does not fit is counted on the last line.
    let (count, room) = (rows.len(), usize::from(area.height.saturating_sub(1)));
    let [area, rest] =
        Layout::vertical([Constraint::Min(1), Constraint::Length(u16::from(count > room))]).areas(area);
    let rows: Vec<Row<'_>> = rows.into_iter().map(|cells| Row::new(keep(cells))).collect();
    let table = Table::new(rows, widths)
        .header(Row::new(head).underlined())
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    frame.render_stateful_widget(table, area, &mut state);
    let above = state.offset();
    let below = count.saturating_sub(above + usize::from(area.height.saturating_sub(1)));
    let told = [(above, "above"), (below, "below")].into_iter().filter(|(count, _)| *count > 0);
    let told: Vec<String> = told.map(|(count, place)| format!("{count} more {place}")).collect();
    frame.render_widget(Line::raw(told.join(", ")).right_aligned().dim(), rest);
}

const MODELS: &[Column] = &[
    ("model", false, false, 0),
    ("done", true, false, 13),
    ("failed", true, false, 7),
    ("per s", true, false, 7),
    ("tokens/s", true, true, 8),
    ("ETA", true, false, 8),
    ("waiting", true, true, 7),
    ("held", true, true, 5),
    ("workers", true, false, 7),
    ("mean", true, true, 22),
    ("", false, false, 9),
];

fn of_model(model: &ModelView) -> Vec<String> {
    let state = match (&model.blocked, model.remaining()) {
        (_, 0) => "done",
        (Some(_), _) => "blocked",
        (None, _) if model.pace.rate > 0.0 => "",
        (None, _) if model.units_leased > 0 => "asked",
        (None, _) => "waiting",
    };
    vec![
        printable(model.model.as_str()),
        format!("{}/{}", model.scored + model.failed, model.planned),
        model.failed.to_string(),
        figure(model.pace.rate),
        figure(model.pace.tokens_per_second),
        view::eta(model.pace.eta_s),
        model.units_pending.to_string(),
        model.units_leased.to_string(),
        model.workers.to_string(),
        view::mean_of_model(model),
        state.to_owned(),
    ]
}

fn chosen_model(board: &WatchState) -> String {
    let models = board.models();
    models.get(board.chosen()).map_or_else(String::new, |model| {
        let name = printable(model.model.as_str());
        let why = model.blocked.as_deref().or(model.parked.as_deref()).map(printable);
        let mean = view::mean_of_model(model);
        format!("{name}: mean {mean}{}", why.map(|why| format!("; {why}")).unwrap_or_default())
    })
}

const WORKERS: &[Column] = &[
    ("worker", false, false, 0),
    ("host", false, true, 20),
    ("serves", false, false, 22),
    ("in flight", true, false, 9),
    ("limit", true, false, 5),
    ("dialogues", true, false, 9),
    ("undelivered", true, true, 11),
    ("seen", true, false, 10),
    ("", false, true, 20),
];

fn of_worker(worker: &WorkerView) -> Vec<String> {
    let status = &worker.status;
    vec![
        printable(worker.worker.as_str()),
        printable(&status.host),
        printable(&fleet::shortened(&status.serves)),
        status.in_flight.to_string(),
        status.limit.to_string(),
        status.dialogues.to_string(),
        status.unacknowledged.to_string(),
        format!("{} ago", duration(worker.seen_ms_ago as f64 / 1e3)),
        fleet::remark(worker),
    ]
}

fn chosen_worker(board: &WatchState) -> String {
    board.workers.get(board.chosen()).map_or_else(String::new, |worker| {
        let (serves, remark) = (printable(&worker.status.serves.join(", ")), fleet::remark(worker));
        format!("{}: serves {serves}; {remark}", printable(worker.worker.as_str()))
    })
}

const FAILURES: &[Column] = &[
    ("dialogues", true, false, 9),
    ("model", false, false, 24),
    ("cause", false, false, 17),
    ("message", false, false, 0),
];

fn of_refusal(refusal: &RefusalView) -> Vec<String> {
    vec![
        refusal.dialogues.to_string(),
        printable(refusal.model.as_str()),
        refusal.cause.to_string(),
        printable(&refusal.message),
    ]
}

fn chosen_refusal(board: &WatchState) -> String {
    let refusal = board.view.as_ref().and_then(|view| view.refusals.get(board.chosen()));
    refusal.map_or_else(String::new, |refusal| printable(&refusal.message))
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::kit::view::tests::{blocked_by, model, run};

    /// The lines of a screen of this size.
    fn screen(board: &WatchState, now: u64, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, board, Duration::from_secs(now))).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..height).map(line).collect()
    }

    fn board(models: usize) -> WatchState {
        let mut board = WatchState::default();
        let of = |n: usize| match n {
            0..=9 => blocked_by("no worker serves it", model(&format!("model-{n}"), 0)),
            _ => model(&format!("model-{n}"), 9),
        };
        board.told(run((0..models).map(of).collect()), Duration::ZERO);
        board
    }

    #[test]
    fn the_head_stays_and_everything_fits_whatever_the_size() {
        for (width, height) in [(80, 24), (120, 40), (200, 50), (40, 12), (20, 9), (1, 1)] {
            let mut board = board(41);
            for chosen in [0, 40] {
                let lines = screen(&board, 1, width, height);
                assert!(
                    "run 20261122-120000-abcdef01 active: name".starts_with(lines[0].as_str()),
                    "{lines:?}"
                );
                assert!(lines.iter().all(|line| line.chars().count() <= width as usize));
                if width >= 80 {
                    assert!(
                        lines[1].contains("dialogues, 0 failed") && lines[1].contains("ETA 14s"),
                        "{lines:?}"
                    );
                    assert!(lines[2].starts_with("blocked: 10 models"), "{lines:?}");
                    assert!(
                        lines[3].contains("1 Models 41") && lines[3].contains("3 Failures 0"),
                        "{lines:?}"
                    );
                    let name = format!("model-{chosen} ");
                    assert!(lines.iter().any(|line| line.starts_with(&name)), "{name} in {lines:?}");
                    assert_eq!(lines.last().unwrap(), KEYS);
                }
                board.press(crossterm::event::KeyCode::End.into());
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let mut board = board(41);
        let shown = |board: &WatchState| {
            let lines = screen(board, 1, 80, 24);
            let of_models = lines.iter().filter(|line| line.starts_with("model-")).count() - 1;
            (of_models, lines[19].trim().to_owned())
        };
        // Of 24 lines, 14 are left for models; the model that is shown in full is one more that begins so.
        assert_eq!(shown(&board), (14, "27 more below".to_owned()));
        board.press(crossterm::event::KeyCode::End.into());
        assert_eq!(shown(&board), (14, "27 more above".to_owned()));
        (0..20).for_each(|_| {
            board.press(crossterm::event::KeyCode::Up.into());
        });
        assert!(shown(&board).1.contains(" more above, "), "{:?}", shown(&board));
        assert!(!screen(&self::board(3), 1, 80, 24).iter().any(|line| line.contains("more below")));
    }

    #[test]
    fn a_coordinator_that_is_silent_is_told_and_forgotten_when_it_is_back() {
        let mut board = board(2);
        assert!(screen(&board, 7, 80, 24)[2].starts_with("no answer for 7 s"));
        board.told(run(vec![model("m", 9)]), Duration::from_secs(8));
        assert_eq!(screen(&board, 9, 80, 24)[2], "");
    }

    #[test]
    fn every_list_shows_what_is_chosen_in_full() {
        let mut board = board(2);
        let words =
            "HTTP 400: the value of temperature is not one that this server takes, and it says so at length";
        let mut view = board.view.clone().unwrap();
        view.refusals = vec![RefusalView {
            model: "model-0".into(),
            cause: domain::FailureCause::BadRequest,
            message: words.to_owned(),
            dialogues: 20,
        }];
        board.told(view, Duration::ZERO);
        board.list = List::Failures;
        let lines = screen(&board, 0, 80, 24);
        assert!(lines[5].contains("20 model-0"), "{lines:?}");
        assert_eq!(lines[20..23].join(" ").trim(), words);
        board.list = List::Workers;
        assert!(screen(&board, 0, 80, 24)[4].starts_with("worker"));
        board.list = List::Models;
        let lines = screen(&board, 0, 80, 24);
        assert_eq!(lines[20], "model-0: mean -; no worker serves it");
    }
}
