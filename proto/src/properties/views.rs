//! Models as people see them.

use super::*;

prop_compose! {
    pub(super) fn model_view()(
        model in name(),
        dialogues in any::<(u64, u64, u64)>(),
        units in any::<(u64, u64, u64, u64)>(),
        workers in any::<u64>(),
        reasons in (option::of(words()), option::of(words())),
        pace in pace(),
        mean in mean(),
        billed in (option::of(words()), usage(), any::<u64>()),
    ) -> ModelView {
        let ((planned, scored, failed), (units_pending, units_leased, units_dead, units_suspect)) =
            (dialogues, units);
        let (model, (parked, blocked)) = (model.as_str().into(), reasons);
        let (billed_as, usage, limit) = billed;
        ModelView {
            model, planned, scored, failed, units_pending, units_leased, units_dead, units_suspect, workers, parked, pace,
            blocked, mean, billed_as, usage, limit, loading: planned % 2 == 1,
        }
    }
}

fn usage() -> impl Strategy<Value = ModelUsage> {
    (any::<[u64; 4]>(), any::<[u64; 4]>()).prop_map(|(of_dialogues, of_answers)| {
        let [dialogues, uncounted, prompt_tokens, cached_tokens] = of_dialogues;
        let [completion_tokens, answers, answer_ms, failed_calls] = of_answers;
        ModelUsage {
            dialogues,
            uncounted,
            prompt_tokens,
            cached_tokens,
            completion_tokens,
            answers,
            answer_ms,
            failed_calls,
        }
    })
}

pub(super) fn pace() -> impl Strategy<Value = Pace> {
    (any::<f64>(), any::<f64>(), option::of(any::<f64>())).prop_map(|(rate, tokens_per_second, eta_s)| Pace {
        rate,
        tokens_per_second,
        eta_s,
    })
}

fn mean() -> impl Strategy<Value = Mean> {
    (option::of(any::<f64>()), any::<u64>(), any::<u64>()).prop_map(|(value, covered, planned)| Mean {
        value,
        covered,
        planned,
    })
}

pub(super) fn refusal() -> impl Strategy<Value = RefusalView> {
    (name(), cause(), words(), any::<u64>()).prop_map(|(model, cause, message, dialogues)| RefusalView {
        model: model.as_str().into(),
        cause,
        message,
        dialogues,
    })
}

pub(super) fn cell() -> impl Strategy<Value = CellView> {
    (name(), name(), any::<(u64, u64, u64)>(), option::of(any::<f64>()), any::<u64>()).prop_map(
        |(task, model, (scored, failed, planned), mean, missing)| CellView {
            task: task.as_str().into(),
            model: model.as_str().into(),
            scored,
            failed,
            planned,
            mean,
            missing,
        },
    )
}
