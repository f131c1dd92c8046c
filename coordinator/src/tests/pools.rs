//! What conductors tell of pools is shown to people as long as it is fresh, by every coordinator.

use domain::ErrorCode;
use domain::caller::{Caller, CallerRole};
use domain::control::Control;
use domain::pools::{PoolState, PoolStates, PoolWait, ServerEnd, ServerUsage, UsageHours, WaitReason};
use jiff::Timestamp;

use super::ground::{Ground, another_pack, submission};

fn pool(name: &str, model: &str, why: WaitReason) -> PoolState {
    PoolState {
        pool: name.to_owned(),
        model: model.to_owned(),
        gpus: 8,
        servers: Vec::new(),
        wait: Some(PoolWait { why, since: Timestamp::UNIX_EPOCH, until: None }),
        is_given_up: why == WaitReason::GivenUp,
        failures: 4,
        last_failure: Some("it said: the prompt".to_owned()),
        left: Some(8),
        gpu_hours: UsageHours::default(),
        load_s: 60,
        loading_s: None,
        not_starting: None,
    }
}

fn states(release: &str, pools: Vec<PoolState>) -> PoolStates {
    PoolStates { release: release.to_owned(), pools, gpu_hours: 1.5, ..PoolStates::default() }
}

#[tokio::test]
async fn a_view_says_what_the_pools_of_its_models_do_and_nothing_that_is_a_minute_old() {
    let ground = Ground::new();
    let (coordinator, other) = ground.two_users();
    let run = coordinator.submit(submission(2)).await.unwrap().run;
    let blocked = async || {
        let view = other.view(&run).await.unwrap();
        let of_model = |at: usize| (view.models[at].blocked.clone().unwrap(), view.models[at].loading);
        (of_model(0), of_model(1))
    };
    other.tend().await.unwrap();
    let nothing = ("no worker serves it; workers serve nothing".to_owned(), false);
    assert_eq!(blocked().await, (nothing.clone(), nothing.clone()));
    let waits = pool("large", "org/a", WaitReason::Gpus);
    let told = states("bench", vec![waits.clone(), pool("elsewhere", "org/else", WaitReason::Gpus)]);
    coordinator.note_pools(told).await.unwrap();
    let waiting = ("no worker serves it yet: its pool waits for GPUs".to_owned(), true);
    let no_pool = ("no worker serves it, and no pool is for it".to_owned(), false);
    assert_eq!(blocked().await, (waiting.clone(), no_pool));
    assert_eq!(other.view(&run).await.unwrap().pools, [waits]);
    assert_eq!(other.list().await.unwrap()[0].pools, [], "lists are brief");
    // A second conductor has a pool for the other model.
    coordinator.note_pools(states("more", vec![pool("b", "b", WaitReason::GivenUp)])).await.unwrap();
    let (first, (second, comes)) = blocked().await;
    assert_eq!((first, comes), (waiting, false));
    assert!(second.starts_with("its pool was given up; ") && second.ends_with("--retry b"), "{second}");
    // Both are gone.
    ground.clock.advance_ms(61_000);
    assert_eq!(blocked().await, (nothing.clone(), nothing));
    assert_eq!(other.view(&run).await.unwrap().pools, []);
}

#[tokio::test]
async fn what_a_server_said_is_for_operators_where_a_run_is_protected() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let mut sealed = submission(2);
    sealed.configuration["pack"] = "another".into();
    sealed.pack = Some(another_pack(|header| header.protected = true));
    let run = coordinator.submit(sealed).await.unwrap().run;
    coordinator.note_pools(states("bench", vec![pool("large", "org/a", WaitReason::Gpus)])).await.unwrap();
    let said = async |role: CallerRole| {
        let access = coordinator.access(&Caller::new("somebody", [role], None));
        access.view(&run).await.unwrap().pools[0].last_failure.clone().unwrap()
    };
    assert_eq!(said(CallerRole::Operator).await, "it said: the prompt");
    assert_eq!(said(CallerRole::Reader).await, "[19 characters]");
}

fn usage(job: &str, uid: &str, ended_s: i64) -> ServerUsage {
    ServerUsage {
        release: "bench".to_owned(),
        pool: "large".to_owned(),
        pool_uid: "cron-1".to_owned(),
        template: "00ff".to_owned(),
        model: "org/a".to_owned(),
        job: job.to_owned(),
        uid: uid.to_owned(),
        image: String::new(),
        revision: String::new(),
        gpus: 8,
        nodes: vec!["n1".to_owned()],
        took_gpus_at: Some(Timestamp::UNIX_EPOCH),
        loaded_at: None,
        ended_at: Timestamp::from_second(ended_s).unwrap(),
        idle_s: 0,
        dialogues: 0,
        end: ServerEnd::Failed,
        fault: None,
        why: "no such model".to_owned(),
    }
}

#[tokio::test]
async fn what_servers_left_is_kept_once_and_told_by_every_coordinator() {
    let mut ground = Ground::new();
    let coordinator = ground.coordinator();
    assert_eq!(coordinator.server_usage().await.unwrap(), []);
    let (first, second) = (usage("bench-large-1", "uid-1", 90), usage("bench-large-2", "uid-2", 60));
    coordinator.note_server_usage(vec![first.clone(), second.clone()]).await.unwrap();
    // Told again, by a conductor that knows less.
    coordinator.note_server_usage(vec![usage("bench-large-1", "uid-1", 999)]).await.unwrap();
    // A Job of the same name, of a release that was installed anew.
    let third = usage("bench-large-1", "uid-3", 120);
    coordinator.note_server_usage(vec![third.clone()]).await.unwrap();
    ground.lose_queue();
    let other = ground.coordinator();
    assert_eq!(other.server_usage().await.unwrap(), [second, first.clone(), third.clone()]);
    // What another version wrote is left out; what leads elsewhere is refused.
    let folder = ground.data.path().join("usage");
    std::fs::write(folder.join("bench-large-2.uid-2.json"), "{").unwrap();
    assert_eq!(other.server_usage().await.unwrap(), [first.clone(), third]);
    for job in ["../runs/x", "", "A", "a/b"] {
        let refused = other.note_server_usage(vec![usage(job, "uid-9", 1)]).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::Invalid, "{job}");
    }
    other.tend().await.unwrap();
    assert!(other.ready().is_ok(), "the sink is well");
}
