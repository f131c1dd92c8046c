//! Runs: creating, rebuilding, forgetting, their states and what keeps them apart.

use super::*;

pub async fn creating_a_run_again_joins_it(bench: Bench) {
    let first = bench.store.create_run(&spec("r")).await.unwrap();
    assert_eq!((first.state, first.next_unit), (RunState::Active, UnitId(0)));
    assert_eq!((first.lease_for, first.max_strikes, first.plan_hash.as_str()), (LEASE, 3, "plan-1"));
    bench.store.add_units(&first.at, UnitId(0), &units("m", 2)).await.unwrap();
    let again = bench.store.create_run(&spec("r")).await.unwrap();
    assert_eq!((again.at, again.next_unit), (first.at.clone(), UnitId(2)));
    let other = RunSpec { plan_hash: "plan-2".into(), ..spec("r") };
    let refused = bench.store.create_run(&other).await.unwrap_err();
    assert!(
        matches!(&refused, Error::PlanMismatch { existing, given, .. } if existing == "plan-1" && given == "plan-2")
    );
    assert_eq!(bench.store.run(&"r".into()).await.unwrap().unwrap().next_unit, UnitId(2));
    assert_eq!(bench.store.run(&"unknown".into()).await.unwrap(), None);
    bench.store.create_run(&spec("a")).await.unwrap();
    let names: Vec<_> = bench.store.runs().await.unwrap().into_iter().map(|run| run.at.run).collect();
    assert_eq!(names, [RunId::new("a"), RunId::new("r")]);
}

pub async fn a_queue_belongs_to_one_place_of_records_until_it_is_given_to_another(bench: Bench) {
    let owner = |store: &str, generation| QueueOwner { store: store.into(), queue: "q".into(), generation };
    let earlier = QueueOwner { store: "one".into(), queue: String::new(), generation: 0 };
    assert_eq!(bench.store.owner().await.unwrap(), None);
    assert_eq!(bench.store.bind(None, &earlier).await.unwrap(), earlier);
    assert_eq!(bench.store.bind(None, &owner("two", 1)).await.unwrap(), earlier);
    assert_eq!(bench.store.owner().await.unwrap(), Some(earlier.clone()));
    assert_eq!(bench.store.bind(Some(&earlier), &owner("one", 1)).await.unwrap(), owner("one", 1));
    assert_eq!(bench.store.bind(Some(&earlier), &owner("two", 1)).await.unwrap(), owner("one", 1));
    assert_eq!(bench.store.bind(Some(&owner("one", 1)), &owner("two", 2)).await.unwrap(), owner("two", 2));
    assert_eq!(bench.store.owner().await.unwrap(), Some(owner("two", 2)));
}

pub async fn a_rebuilt_run_has_a_higher_generation_and_refuses_the_old_one(bench: Bench) {
    let old = filled(&bench, 1).await;
    let held = lease(&bench, &old, "w", 1).await;
    assert!(bench.store.forget_run(&old.run).await.unwrap());
    let next = RunSpec { generation: old.generation + 1, ..spec("r") };
    let new = bench.store.create_run(&next).await.unwrap().at;
    assert_eq!(new.generation, next.generation);
    let refused = bench.store.lease(&old, &ask("w", &["m"], 1)).await.unwrap_err();
    assert!(matches!(refused, Error::StaleGeneration { given, current, .. }
        if given == old.generation && current == new.generation));
    // The same unit, the same attempt, another generation: not the same lease.
    bench.store.add_units(&new, UnitId(0), &units("m", 1)).await.unwrap();
    assert_eq!(lease(&bench, &new, "w", 1).await.len(), 1);
    assert_eq!(bench.store.finish(&new, &fences(&held)).await.unwrap(), [Transition::Stale]);
    let renewal = bench.store.renew(&new, &"w".into(), &[], &fences(&held)).await.unwrap();
    assert_eq!((renewal.lost, renewal.unreported.len()), (fences(&held), 1));
    let far = RunSpec { generation: u64::MAX >> 12, ..spec("s") };
    assert_eq!(bench.store.create_run(&far).await.unwrap().at.generation, far.generation);
}

pub async fn a_run_of_a_lower_generation_is_replaced_and_one_of_a_higher_is_joined(bench: Bench) {
    let old = filled(&bench, 2).await;
    let held = lease(&bench, &old, "w", 1).await;
    let higher = |plan: &str| RunSpec { generation: 7, plan_hash: plan.into(), ..spec("r") };
    let new = bench.store.create_run(&higher("plan-1")).await.unwrap();
    assert_eq!((new.at.generation, new.next_unit, new.state), (7, UnitId(0), RunState::Active));
    bench.store.add_units(&new.at, UnitId(0), &units("m", 1)).await.unwrap();
    assert_eq!(lease(&bench, &new.at, "w", 1).await.len(), 1);
    assert_eq!(bench.store.finish(&new.at, &fences(&held)).await.unwrap(), [Transition::Stale]);
    for generation in [1, 7] {
        let joined = bench.store.create_run(&RunSpec { generation, ..spec("r") }).await.unwrap();
        assert_eq!((joined.at, joined.next_unit), (new.at.clone(), UnitId(1)));
    }
    let refused = bench.store.create_run(&higher("plan-2")).await.unwrap_err();
    assert!(matches!(refused, Error::PlanMismatch { .. }), "another plan joins nothing: {refused}");
    let extended = RunSpec { generation: 8, ..higher("plan-2") };
    let extended = bench.store.create_run(&extended).await.unwrap();
    assert_eq!((extended.at.generation, extended.plan_hash.as_str()), (8, "plan-2"));
    assert_eq!(extended.next_unit, UnitId(0));
}

pub async fn every_operation_on_a_forgotten_run_says_so(bench: Bench) {
    let at = filled(&bench, 1).await;
    let fence = lease(&bench, &at, "w", 1).await.remove(0).fence;
    bench.store.forget_run(&at.run).await.unwrap();
    assert!(!bench.store.forget_run(&at.run).await.unwrap());
    let (store, m) = (&bench.store, ModelLabel::new("m"));
    let errors = [
        store.set_state(&at, RunState::Paused).await.err(),
        store.add_units(&at, UnitId(0), &units("m", 1)).await.err(),
        store.lease(&at, &ask("w", &["m"], 1)).await.err(),
        store.renew(&at, &"w".into(), &[], std::slice::from_ref(&fence)).await.err(),
        store.release(&at, std::slice::from_ref(&fence)).await.err(),
        store.finish(&at, std::slice::from_ref(&fence)).await.err(),
        store.reap(&at, &Reap::Expired).await.err(),
        store.counts(&at).await.err(),
        store.suspects(&at, true, None, 1).await.err(),
        store.suspect(&at, UnitId(0)).await.err(),
        store.requeue(&at, &[UnitId(0)]).await.err(),
        store.park(&at, &m, LEASE, "quota").await.err(),
        store.unpark(&at, &m).await.err(),
    ];
    for (index, error) in errors.into_iter().enumerate() {
        assert!(matches!(error, Some(Error::RunGone { .. })), "operation {index}: {error:?}");
    }
    // Nothing of the run's first life is left in its second.
    let again = store.create_run(&spec("r")).await.unwrap().at;
    assert_eq!(store.counts(&again).await.unwrap(), []);
    assert_eq!(lease(&bench, &again, "w", 1).await, []);
}

pub async fn only_an_active_run_leases_and_states_follow_their_rules(bench: Bench) {
    let at = filled(&bench, 2).await;
    let held = lease(&bench, &at, "a", 1).await;
    for state in
        [RunState::Paused, RunState::Cancelled, RunState::Active, RunState::Finished, RunState::Active]
    {
        let before = bench.store.run(&at.run).await.unwrap().unwrap().state;
        assert_eq!(bench.store.set_state(&at, state).await.unwrap(), before);
        assert_eq!(bench.store.set_state(&at, state).await.unwrap(), state);
        let renewal = bench.store.renew(&at, &"a".into(), &[], &fences(&held)).await.unwrap();
        assert_eq!((renewal.state, renewal.lost.as_slice()), (state, [].as_slice()));
        let leases = lease(&bench, &at, "b", 1).await;
        assert_eq!(leases.len(), usize::from(state == RunState::Active));
        bench.store.release(&at, &fences(&leases)).await.unwrap();
    }
    bench.store.set_state(&at, RunState::Finished).await.unwrap();
    let refused = bench.store.set_state(&at, RunState::Paused).await.unwrap_err();
    assert!(matches!(refused, Error::IllegalState { from: RunState::Finished, to: RunState::Paused, .. }));
    // What was leased before still ends well.
    assert_eq!(bench.store.finish(&at, &fences(&held)).await.unwrap(), [Transition::Applied]);
}

pub async fn runs_do_not_touch_each_other(bench: Bench) {
    let at = filled(&bench, 2).await;
    let other = bench.store.create_run(&spec("r2")).await.unwrap().at;
    bench.store.add_units(&other, UnitId(0), &units("m", 1)).await.unwrap();
    let held = bench.store.lease(&other, &ask("a", &["m"], 9)).await.unwrap();
    assert_eq!(ids(&held), [0]);
    bench.store.set_state(&other, RunState::Paused).await.unwrap();
    bench.store.park(&other, &"m".into(), LEASE, "quota").await.unwrap();
    assert_eq!(lease(&bench, &at, "a", 9).await.len(), 2);
    bench.store.forget_run(&at.run).await.unwrap();
    assert_eq!(bench.store.finish(&other, &fences(&held)).await.unwrap(), [Transition::Applied]);
}

pub async fn names_and_payloads_of_any_shape_stay_apart(bench: Bench) {
    let odd = [
        "a:b",
        "a",
        "b",
        "1:a",
        "*",
        "{x}",
        "model with spaces",
        "模型",
        "a\u{200d}b",
        "'; DROP TABLE units",
    ];
    let at = bench.store.create_run(&spec("run: [1] *")).await.unwrap().at;
    let payload = |i: u8| vec![0, 255, b'\n', i];
    let unit =
        |(i, model): (u8, &&str)| NewUnit { model: (*model).into(), dialogues: 1, payload: payload(i) };
    let plan: Vec<_> = (0..).zip(&odd).map(unit).collect();
    bench.store.add_units(&at, UnitId(0), &plan).await.unwrap();
    for (i, model) in (0..).zip(odd) {
        let leases = bench.store.lease(&at, &ask(model, &[model], 9)).await.unwrap();
        assert_eq!(leases.len(), 1, "{model}");
        assert_eq!((leases[0].fence.model.as_str(), &leases[0].payload), (model, &payload(i)));
        let renewal = bench.store.renew(&at, &model.into(), &[], &fences(&leases)).await.unwrap();
        assert_eq!((renewal.lost.len(), renewal.unreported.len()), (0, 0));
    }
    assert_eq!(bench.store.counts(&at).await.unwrap().len(), odd.len());
    let worker = "said \"no\" \\ {}";
    let fence = Fence { generation: at.generation, model: "a".into(), unit: UnitId(1), attempt: 1 };
    bench.store.release(&at, &[fence]).await.unwrap();
    for _ in 0..5 {
        assert_eq!(bench.store.lease(&at, &ask(worker, &["a"], 1)).await.unwrap().len(), 1);
        die(&bench, &at, worker).await;
    }
    let letter = bench.store.suspect(&at, UnitId(1)).await.unwrap().unwrap();
    assert!(letter.dead && letter.deaths.iter().all(|death| death.worker.as_str() == worker));
}

pub async fn what_exceeds_a_limit_is_refused(bench: Bench) {
    let at = filled(&bench, 1).await;
    let store = &bench.store;
    let big = NewUnit { model: "m".into(), dialogues: 1, payload: vec![0; limits::PAYLOAD_BYTES_MAX + 1] };
    let empty = NewUnit { model: "m".into(), dialogues: 0, payload: vec![] };
    let nameless = NewUnit { model: "".into(), dialogues: 1, payload: vec![] };
    let many = units("m", limits::UNITS_PER_ADD_MAX as u64 + 1);
    let rate = RateLimit { per_minute: 60, burst: 2 };
    let none = Claim::default();
    let followed = Claim { predecessors: vec!["x".into(); limits::PREDECESSORS_MAX + 1], ..Claim::default() };
    let refused = [
        store.create_run(&spec("brace{d}")).await.err(),
        store.create_run(&RunSpec { lease_for: Duration::ZERO, ..spec("s") }).await.err(),
        store.create_run(&RunSpec { max_strikes: 0, ..spec("s") }).await.err(),
        store.add_units(&at, UnitId(1), &[big]).await.err(),
        store.add_units(&at, UnitId(1), &[empty]).await.err(),
        store.add_units(&at, UnitId(1), &[nameless]).await.err(),
        store.add_units(&at, UnitId(1), &many).await.err(),
        store.lease(&at, &ask("w", &["m"], limits::UNITS_PER_LEASE_MAX + 1)).await.err(),
        store.lease(&at, &ask("", &["m"], 1)).await.err(),
        store
            .finish(
                &at,
                &[Fence { generation: at.generation, model: "m".into(), unit: UnitId(u64::MAX), attempt: 1 }],
            )
            .await
            .err(),
        store.requeue(&at, &[UnitId(u64::MAX)]).await.err(),
        store.create_run(&RunSpec { generation: u64::MAX, ..spec("s") }).await.err(),
        store.suspects(&at, true, None, limits::DEAD_LETTERS_PER_PAGE_MAX + 1).await.err(),
        store.heartbeat(&"w".into(), &none, &[0; limits::WORKER_INFO_BYTES_MAX + 1], LEASE).await.err(),
        store.heartbeat(&"w".into(), &followed, b"", LEASE).await.err(),
        store.take_rate("b", rate, 3).await.err(),
        store.take_rate("b", RateLimit { per_minute: 0, ..rate }, 1).await.err(),
    ];
    for (index, error) in refused.into_iter().enumerate() {
        assert!(matches!(error, Some(Error::Invalid { .. })), "input {index}: {error:?}");
    }
    assert_eq!(store.run(&at.run).await.unwrap().unwrap().next_unit, UnitId(1));
}
