//! What workers and coordinators tell each other, drawn at random.

use std::collections::BTreeMap;

use domain::Connector;
use domain::exchange::{
    Calls, Grant, LeaseEnd, LeaseId, ModelCalls, ModelLimit, NameTaken, NotAsked, Offer, Orders, Outlook,
    Parking, Report, Retries, Serves, Until, WorkerPhase, WorkerStatus,
};
use domain::reach::{KeyReach, Place, Reach};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::{connector, duration, name, words};

pub(super) fn lease() -> impl Strategy<Value = LeaseId> {
    (name(), any::<u64>(), name(), any::<u64>(), 1..=u32::MAX).prop_map(
        |(run, generation, model, unit, attempt)| LeaseId {
            run: run.as_str().into(),
            generation,
            model: model.as_str().into(),
            unit,
            attempt,
        },
    )
}

fn offer() -> impl Strategy<Value = Offer> {
    let serves = prop_oneof![name().prop_map(Serves::Model), connector().prop_map(Serves::Connector)];
    (serves, any::<u32>()).prop_map(|(serves, room)| Offer { serves, room })
}

fn parking() -> impl Strategy<Value = Parking> {
    (name(), name(), duration(), words()).prop_map(|(run, model, parked_for, reason)| Parking {
        run: run.as_str().into(),
        model: model.as_str().into(),
        parked_for,
        reason,
    })
}

prop_compose! {
    pub(super) fn status()(
        texts in (words(), words(), vec(words(), 0..3), option::of(words())),
        numbers in any::<(u32, u32, u64, u64)>(),
    ) -> WorkerStatus {
        let (kgfleet, host, serves, trouble) = texts;
        let (in_flight, limit, dialogues, unacknowledged) = numbers;
        let place = Place::parse("https://h.example.org:8443/v1").expect("an address");
        let key = KeyReach { name: "house".into(), connector: Connector::Gemini, places: vec![place.clone()] };
        let reach = (limit % 2 == 0).then(|| Reach { keys: vec![key], places: vec![place] });
        let (lacks, sandbox, expects) = (serves.clone(), serves.clone(), serves.clone());
        let not_asked = |model: &String| NotAsked {
            run: "r".into(),
            model: format!("m{model}").as_str().into(),
            reason: model.clone(),
            waits: model.len().is_multiple_of(2),
        };
        let not_asked = serves.iter().map(not_asked).collect();
        let reasons = || serves.clone();
        let of_model = |model: &String| ModelLimit { model: format!("m{model}"), limit, reasons: reasons() };
        let limits = serves.iter().map(of_model).collect();
        let of_run = |model: &String| ModelCalls {
            run: "r".into(),
            model: format!("m{model}").as_str().into(),
            calls: calls(dialogues % 9),
        };
        let calls = serves.iter().map(of_run).collect();
        WorkerStatus {
            kgfleet, host, serves, expects, in_flight, limit, dialogues, unacknowledged, trouble,
            parked_records: unacknowledged / 2,
            reach,
            lacks,
            sandbox,
            not_asked,
            pool: if limit % 3 == 0 { "large".to_owned() } else { String::new() },
            node: if limit % 3 == 0 { "node-1".to_owned() } else { String::new() },
            gpus: in_flight % 17,
            phase: WorkerPhase::ALL.get(dialogues as usize % 5).copied(),
            phase_s: dialogues,
            loaded_s: (unacknowledged % 2 == 0).then_some(unacknowledged),
            limits,
            calls,
        }
    }
}

pub(super) fn calls(waiting: u64) -> Calls {
    let retry = |why: u64| Retries {
        why: format!("cause {why}"),
        calls: why,
        since: "2026-11-21T16:00:00.123Z".parse().expect("a time"),
        attempt: 5,
    };
    Calls { in_flight: 3 * waiting, waiting, retries: (0..waiting % 3).map(retry).collect() }
}

prop_compose! {
    pub(super) fn report()(
        worker in name(),
        instance in words(),
        offers in vec(offer(), 0..3),
        leases in (vec(lease(), 0..3), vec(lease(), 0..3), vec(lease(), 0..3)),
        parked in vec(parking(), 0..3),
        draining in any::<bool>(),
        wait in duration(),
        status in status(),
        expects in option::of(vec(words(), 0..3)),
    ) -> Report {
        let (held, finished, released) = leases;
        let mut ended: BTreeMap<_, _> = released.into_iter().map(|lease| (lease, LeaseEnd::Released)).collect();
        ended.extend(finished.into_iter().map(|lease| (lease, LeaseEnd::Finished)));
        let instance = instance.as_str().into();
        let until = expects.map(|expects| Until { expects });
        let worker = worker.as_str().into();
        Report { worker, instance, offers, held, ended, parked, draining, wait, status, until }
    }
}

fn grant() -> impl Strategy<Value = Grant> {
    (lease(), name(), vec(any::<u32>(), 1..5), duration(), option::of(any::<u64>())).prop_map(
        |(lease, task, iterations, lease_for, retry)| Grant {
            lease,
            task: task.as_str().into(),
            iterations,
            lease_for,
            retry,
        },
    )
}

pub(super) fn orders() -> impl Strategy<Value = Orders> {
    let outlook = option::of(proptest::sample::select(Outlook::ALL.to_vec()));
    let told = (any::<bool>(), any::<bool>(), option::of(name_taken()), outlook);
    (vec(grant(), 0..3), vec(lease(), 0..3), told).prop_map(
        |(grants, lost, (noted, drain, superseded, outlook))| Orders {
            grants,
            lost,
            noted,
            drain,
            superseded,
            outlook,
        },
    )
}

pub(super) fn name_taken() -> impl Strategy<Value = NameTaken> {
    (words(), words(), duration(), duration()).prop_map(|(instance, host, silent_for, free_in)| NameTaken {
        instance: instance.as_str().into(),
        host,
        silent_for,
        free_in,
    })
}
