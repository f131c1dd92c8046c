//! The progress of a run: rate and remaining time of each model and of the whole run. Screens, metrics and JSON all use
//! these numbers.

use domain::control::{ModelView, Pace};

use crate::records::rate::Speed;

/// The pace of a model with this many dialogues left. If nobody can ask it, there is no estimate, whatever its rate was.
pub(crate) fn pace(speed: Speed, remaining: u64, can_go_on: bool) -> Pace {
    let moves = can_go_on && remaining > 0 && speed.records > 0.0;
    Pace {
        rate: speed.records,
        tokens_per_second: speed.tokens,
        eta_s: moves.then(|| remaining as f64 / speed.records),
    }
}

/// The pace of a run with these models, all together: its time left is that of the slowest one that progresses.
pub(crate) fn of_run(models: &[ModelView]) -> Pace {
    let mut progress = Pace::default();
    for model in models {
        progress.rate += model.pace.rate;
        progress.tokens_per_second += model.pace.tokens_per_second;
        progress.eta_s = match (progress.eta_s, model.pace.eta_s) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        };
    }
    progress
}

/// When all of a run ends, in seconds, at the present pace; `None` where nobody can say, because a model with dialogues
/// left does not move. A number cannot say that it leaves out a model.
pub(crate) fn time_left(models: &[ModelView]) -> Option<f64> {
    let mut left = models.iter().filter(|model| model.remaining() > 0).map(|model| model.pace.eta_s);
    let first = left.next()??;
    left.try_fold(first, |latest, eta_s| eta_s.map(|eta_s| latest.max(eta_s)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(records: f64, remaining: u64, blocked: bool) -> ModelView {
        ModelView {
            model: "m".into(),
            planned: remaining,
            scored: 0,
            failed: 0,
            units_pending: 0,
            units_leased: 0,
            units_dead: 0,
            units_suspect: 0,
            workers: 0,
            parked: None,
            pace: pace(Speed { records, tokens: 10.0 * records }, remaining, !blocked),
            blocked: blocked.then(|| "no worker serves it".to_owned()),
            mean: Default::default(),
            ..ModelView::default()
        }
    }

    #[test]
    fn a_run_ends_with_the_slowest_model_that_moves() {
        let models = [model(10.0, 100, false), model(1.0, 200, false), model(0.0, 500, false)];
        let progress = of_run(&models);
        assert_eq!(progress, Pace { rate: 11.0, tokens_per_second: 110.0, eta_s: Some(200.0) });
        assert_eq!(models[2].pace.eta_s, None, "one that does not move has no end in sight");
    }

    #[test]
    fn a_run_has_no_end_in_sight_while_one_of_its_models_does_not_move() {
        let (quick, slow) = (model(10.0, 100, false), model(1.0, 200, false));
        let (done, still) = (model(3.0, 0, false), model(0.0, 500, false));
        assert_eq!(time_left(&[quick.clone(), slow.clone(), done.clone()]), Some(200.0));
        assert_eq!(time_left(&[quick.clone(), still]), None, "a model that has no pace yet");
        assert_eq!(time_left(&[model(5.0, 10, true), slow]), None, "a model that nobody can ask");
        assert_eq!((time_left(&[done]), time_left(&[])), (None, None));
    }

    #[test]
    fn nothing_is_promised_of_what_nobody_can_ask() {
        // It moved until a moment ago.
        let blocked = model(5.0, 5200, true);
        assert_eq!(of_run(std::slice::from_ref(&blocked)).eta_s, None);
        assert_eq!(of_run(&[blocked, model(2.0, 10, false)]).eta_s, Some(5.0));
        assert_eq!(of_run(&[model(0.0, 16, false)]).eta_s, None, "a server that hangs");
        assert_eq!(of_run(&[model(3.0, 0, false)]).eta_s, None, "nothing is left");
    }
}
