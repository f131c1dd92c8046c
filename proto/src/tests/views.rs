//! Models as people see them.

use super::*;
use domain::Oddity;

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
            limit_reasons: vec!["growing".to_owned(); planned as usize % 3],
            calls: work::calls(planned % 9),
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

fn pool_wait() -> impl Strategy<Value = PoolWait> {
    let why = proptest::sample::select(WaitReason::ALL.to_vec());
    (why, timestamp(), option::of(timestamp())).prop_map(|(why, since, until)| PoolWait { why, since, until })
}

prop_compose! {
    pub(super) fn pool_state()(
        (pool, model) in (name(), name()),
        (gpus, failures) in any::<(u32, u32)>(),
        stage in proptest::sample::select(ServerStage::ALL.to_vec()),
        servers in option::of(1_u32..),
        wait in option::of(pool_wait()),
        is_given_up in any::<bool>(),
        (last_failure, not_starting) in (option::of(words()), option::of(words())),
        left in option::of(any::<u64>()),
        (hours, load_s, loading_s) in (any::<[f64; 4]>(), any::<u64>(), option::of(any::<u64>())),
    ) -> PoolState {
        let [load, work, idle, lost] = hours;
        let gpu_hours = UsageHours { load, work, idle, lost };
        let servers = servers.into_iter().map(|servers| ServersDoing { stage, servers }).collect();
        PoolState {
            pool, model, gpus, servers, wait, is_given_up, failures, last_failure, left, gpu_hours, load_s, loading_s,
            not_starting,
        }
    }
}

prop_compose! {
    pub(super) fn server_usage()(
        (release, pool, job, uid) in (words(), name(), name(), name()),
        (pool_uid, template, model) in (words(), words(), words()),
        (image, revision, why) in (words(), words(), words()),
        (gpus, idle_s, dialogues) in any::<(u32, u64, u64)>(),
        nodes in vec(words(), 0..3),
        (took_gpus_at, loaded_at, ended_at) in (option::of(timestamp()), option::of(timestamp()), timestamp()),
        end in proptest::sample::select(ServerEnd::ALL.to_vec()),
        fault in option::of(proptest::sample::select(ServerFault::ALL.to_vec())),
    ) -> ServerUsage {
        ServerUsage {
            release, pool, pool_uid, template, model, job, uid, image, revision, gpus, nodes, took_gpus_at, loaded_at,
            ended_at, idle_s, dialogues, end, fault, why,
        }
    }
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
    (name(), name(), any::<(u64, u64, u64)>(), option::of(any::<f64>()), any::<(u64, u64)>()).prop_map(
        |(task, model, (scored, failed, planned), mean, (missing, cut))| CellView {
            task: task.as_str().into(),
            model: model.as_str().into(),
            scored,
            failed,
            planned,
            mean,
            missing,
            odd: vec![(Oddity::ALL[(cut % 6) as usize], cut)],
        },
    )
}
