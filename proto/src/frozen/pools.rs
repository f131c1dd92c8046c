//! What conductors say.

use domain::pools::{
    PoolState, PoolStates, PoolWait, ServerEnd, ServerFault, ServerStage, ServerUsage, ServersDoing,
    UsageHours, WaitReason,
};

use super::*;

fn pool() -> PoolState {
    let at = |text: &str| text.parse().unwrap();
    PoolState {
        pool: "r1".into(),
        model: "org/R1".into(),
        gpus: 16,
        servers: ServerStage::ALL.map(|stage| ServersDoing { stage, servers: 1 + stage as u32 }).to_vec(),
        wait: Some(PoolWait {
            why: WaitReason::Retry,
            since: at("2026-11-25T22:00:00Z"),
            until: Some(at("2026-11-25T22:15:00.5Z")),
        }),
        is_given_up: false,
        failures: 2,
        last_failure: Some("no such model".into()),
        left: Some(1300),
        gpu_hours: UsageHours { load: 1.0, work: 2.5, idle: 0.5, lost: 0.25 },
        load_s: 1200,
        loading_s: Some(725),
    }
}

#[test]
fn pools() {
    let waiting = |why| PoolState {
        servers: Vec::new(),
        wait: Some(PoolWait { why, since: "2026-11-25T22:00:00Z".parse().unwrap(), until: None }),
        is_given_up: why == WaitReason::GivenUp,
        left: None,
        last_failure: None,
        ..pool()
    };
    frozen::<_, wire::PoolStates>(
        "v2/pool_states",
        PoolStates {
            release: "bench".into(),
            pools: std::iter::once(pool()).chain(WaitReason::ALL.map(waiting)).collect(),
            gpu_hours: 41.25,
            gpu_hours_planned: Some(52.0),
            gpu_hours_budget: Some(150.0),
            plan_ends_at: Some("2026-11-26T03:40:00Z".parse().unwrap()),
        },
    );
    let usage = |end: ServerEnd| {
        let at = |text: &str| text.parse().unwrap();
        let has_served = end != ServerEnd::NoNodes;
        ServerUsage {
            release: "bench".into(),
            pool: "r1".into(),
            pool_uid: "cron-1".into(),
            template: "00ff".into(),
            model: "org/R1".into(),
            job: "bench-r1-7".into(),
            uid: "job-1".into(),
            image: "vllm@sha256:00".into(),
            revision: "main".into(),
            gpus: 16,
            nodes: vec!["h100-3".into(), "h100-4".into()],
            took_gpus_at: has_served.then(|| at("2026-11-25T22:00:00Z")),
            loaded_at: has_served.then(|| at("2026-11-25T22:12:00Z")),
            ended_at: at("2026-11-25T23:00:00.25Z"),
            idle_s: 60,
            dialogues: 1300,
            end,
            fault: None,
            why: end.to_string(),
        }
    };
    for end in ServerEnd::ALL {
        frozen::<_, wire::ServerUsage>(&format!("v2/server_usage_{end}"), usage(end));
    }
    let of_fault = |fault: ServerFault| ServerUsage { fault: Some(fault), ..usage(fault.end()) };
    let usages = ServerFault::ALL.map(of_fault).to_vec();
    let message = wire::ServerUsages { servers: every(usages.clone()) };
    let servers = thawed("v2/server_usages_with_faults", message).servers;
    assert_eq!(all::<_, ServerUsage>(servers).unwrap(), usages);
    let view = BenchmarkView { run: "2026-autumn".into(), pools: vec![pool()], ..BenchmarkView::default() };
    frozen::<_, wire::RunView>("v2/run_view_with_pools", view);
}
