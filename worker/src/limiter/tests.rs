use proptest::prelude::*;

use super::*;

mod knee;

const BOUNDS: InFlightBounds = InFlightBounds { start: 4, min: 2, max: 16, measured_max: 64 };

fn busy(running: u32, waiting: u32) -> Occupancy {
    Occupancy { running: f64::from(running), waiting: f64::from(waiting), is_full: false }
}

/// A limiter that has come so far at a server that tells its load.
fn measured(limit: u32) -> Limiter {
    let mut limiter = at_an_idle_server(InFlightBounds { measured_max: 512, ..BOUNDS });
    limiter.limit = f64::from(limit);
    limiter.settle();
    limiter
}

/// A limiter of a server that said it was idle.
fn at_an_idle_server(bounds: InFlightBounds) -> Limiter {
    let mut limiter = Limiter::new(bounds);
    limiter.told(Occupancy::default(), 0);
    limiter
}

#[test]
fn without_load_it_grows_while_used_and_shrinks_once_per_refusal() {
    let mut limiter = Limiter::new(BOUNDS);
    for _ in 0..20 {
        limiter.ended(false, 0);
    }
    assert_eq!(limiter.limit(), 4, "an unused limit does not grow");
    for _ in 0..20 {
        let in_flight = limiter.limit() - 1;
        limiter.ended(false, in_flight);
    }
    assert_eq!(limiter.limit(), 16);
    assert_eq!(limiter.look(16), None, "nobody would answer");
    for _ in 0..5 {
        limiter.ended(true, 15);
    }
    assert_eq!(limiter.limit(), 11, "refusals of one burst count once");
    for _ in 0..200 {
        limiter.ended(true, 3);
    }
    assert_eq!(limiter.limit(), 2);
    limiter.ended(false, 1);
    assert_eq!(limiter.limit(), 2, "growth is slow after a refusal");
}

#[test]
fn it_grows_by_what_may_wait_while_nothing_waits() {
    let mut limiter = at_an_idle_server(InFlightBounds { start: 32, measured_max: 512, ..BOUNDS });
    assert_eq!((limiter.limit(), limiter.look(3), limiter.look(4)), (4, None, Some(LoadLook::Soon)));
    limiter.ended(false, 3);
    assert_eq!(limiter.limit(), 4, "what the server tells counts, not what ends");
    let mut all_run = || {
        let in_flight = limiter.limit() as u32;
        limiter.told(busy(in_flight, 0), in_flight);
        limiter.limit()
    };
    let limits: Vec<usize> = (0..12).map(|_| all_run()).collect();
    assert_eq!(limits, [5, 6, 7, 9, 12, 15, 19, 23, 29, 37, 39, 42], "fast up to its start");
    limiter.told(busy(160, 0), 20);
    assert_eq!(limiter.limit(), 42, "an unused limit does not grow");
    limiter.told(busy(41, 2), 42);
    assert_eq!((limiter.limit(), limiter.look(42)), (42, None));
    // After a queue it feels its way.
    let mut all_run = || {
        let in_flight = limiter.limit() as u32;
        limiter.told(busy(in_flight, 0), in_flight);
        limiter.limit()
    };
    assert_eq!([all_run(), all_run(), all_run()], [43, 45, 47]);
}

#[test]
fn what_waits_beyond_a_few_is_taken_back_once() {
    let mut limiter = measured(272);
    limiter.told(busy(256, 16), 272);
    assert_eq!(limiter.limit(), 258);
    limiter.told(busy(256, 12), 268);
    assert_eq!(limiter.limit(), 258, "what was begun before still runs");
    limiter.told(busy(256, 2), 258);
    assert_eq!(limiter.limit(), 258);
    // The server takes less than before, and later as much again.
    limiter.told(busy(200, 58), 258);
    assert_eq!(limiter.limit(), 202);
    limiter.told(busy(256, 0), 256);
    assert_eq!(limiter.limit(), 257, "what the server took was not too much");
}

#[test]
fn workers_at_one_server_correct_their_shares() {
    let (mut large, mut small) = (measured(230), measured(66));
    large.told(busy(256, 40), 230);
    small.told(busy(256, 40), 66);
    assert_eq!((large.limit(), small.limit()), (201, 59));
    // Nothing of the smaller one waits: it takes a place, and the larger one makes room for it.
    let (mut large, mut small) = (measured(242), measured(20));
    small.told(busy(256, 6), 20);
    large.told(busy(256, 6), 242);
    assert_eq!((large.limit(), small.limit()), (238, 21));
    assert_eq!((large.look(238), small.look(21)), (None, None));
    // Both grow by their shares, and look more seldom: what is on its way is not theirs alone.
    let (mut one, mut other) = (measured(100), measured(28));
    one.told(busy(128, 0), 100);
    other.told(busy(128, 0), 28);
    assert_eq!((one.limit, other.limit), (100.78125, 28.21875));
    assert_eq!((one.look(100), other.look(28)), (Some(LoadLook::Soon), Some(LoadLook::Shared)));
    // One of its own may wait, however many others do.
    let mut polite = measured(40);
    (0..20).for_each(|_| polite.told(busy(256, 1000), polite.limit() as u32));
    assert_eq!(polite.limit(), 2);
}

#[test]
fn a_newcomer_begins_with_what_may_wait() {
    let begun = |occupancy| {
        let mut limiter = Limiter::new(InFlightBounds::OWN_SERVER);
        limiter.told(occupancy, 0);
        limiter.limit()
    };
    let occupancies = [busy(0, 0), busy(256, 0), busy(256, 14), busy(256, 300)];
    assert_eq!(occupancies.map(begun), [4, 4, 2, 1]);
    // One that had no work meanwhile is a newcomer too, unless it is alone.
    let mut limiter = measured(200);
    limiter.told(Occupancy::default(), 0);
    assert_eq!(limiter.limit(), 200);
    limiter.told(busy(64, 2), 0);
    assert_eq!(limiter.limit(), 2);
}

#[test]
fn dialogues_on_their_way_are_not_taken_for_room() {
    let mut limiter = measured(32);
    limiter.told(busy(32, 0), 32);
    limiter.stride = 8.0;
    limiter.told(busy(33, 0), 33);
    assert_eq!(limiter.limit(), 35);
    for _ in 0..DELAYS_MAX {
        limiter.told(busy(33, 0), 35);
        assert_eq!((limiter.limit(), limiter.look(35)), (35, Some(LoadLook::Soon)), "two are on their way");
    }
    limiter.told(busy(33, 0), 35);
    assert_eq!(limiter.limit(), 37, "they are elsewhere");
    limiter.told(busy(35, 0), 37);
    assert_eq!(limiter.limit(), 39);
}

#[test]
fn a_server_that_nobody_waits_for_gets_no_more_than_one_that_tells_nothing() {
    let mut limiter = at_an_idle_server(InFlightBounds::OWN_SERVER);
    limiter.limit = 16.0;
    limiter.told(busy(0, 0), 16);
    assert_eq!(limiter.limit(), 16, "they may be on their way");
    (0..16).for_each(|_| limiter.ended(false, 15));
    limiter.told(busy(0, 0), 16);
    assert_eq!(limiter.limit(), 20, "all have ended since");
    let mut limiter = measured(16);
    limiter.told(busy(7, 0), 16);
    assert_eq!((limiter.limit(), limiter.reason(16), limiter.look(16)), (16, LimitReason::Maximum, None));
    limiter.told(busy(14, 0), 16);
    assert_eq!(limiter.limit(), 17);
    limiter.told(busy(5, 0), 17);
    assert_eq!(limiter.limit(), 17, "what it has it keeps");
}

#[test]
fn a_full_cache_counts_as_a_queue() {
    let mut limiter = measured(4);
    limiter.told(Occupancy { is_full: true, ..busy(4, 0) }, 4);
    assert_eq!((limiter.limit(), limiter.reason(4)), (4, LimitReason::ServerQueue));
}

#[test]
fn a_queue_of_the_server_replaces_its_refusals() {
    let mut limiter = measured(10);
    limiter.ended(true, 9);
    assert_eq!(limiter.limit(), 7);
    limiter.told(busy(4, 0), 7);
    assert_eq!((limiter.limit(), limiter.look(7)), (7, None), "it was refused a moment ago");
    (0..7).for_each(|_| limiter.ended(false, 6));
    limiter.told(busy(7, 0), 7);
    assert_eq!(limiter.limit(), 7, "only refusals tell that it is full");
    limiter.ended(false, 6);
    assert!(limiter.limit > 7.1, "then answers raise it slowly");
    limiter.told(busy(6, 1), 7);
    limiter.told(busy(7, 0), 7);
    assert_eq!(limiter.limit(), 8);
}

#[test]
fn a_server_that_falls_silent_is_asked_as_one_that_never_spoke() {
    let mut limiter = measured(40);
    limiter.untold();
    assert_eq!((limiter.limit(), limiter.look(40)), (16, None));
    limiter.ended(false, 15);
    assert_eq!((limiter.limit(), limiter.reason(16)), (16, LimitReason::Maximum));
}

#[test]
fn a_look_is_due_when_so_many_ended_that_too_many_might_wait() {
    let mut limiter = measured(50);
    limiter.told(busy(48, 2), 50);
    for _ in 0..2 {
        limiter.ended(false, 49);
        assert_eq!(limiter.look(50), None);
    }
    limiter.ended(false, 49);
    assert_eq!((limiter.look(50), limiter.look(49)), (Some(LoadLook::Settled), None));
    limiter.told(busy(48, 2), 50);
    assert_eq!(limiter.look(50), None);
}

#[test]
fn a_limit_says_why_it_stands_where_it_does() {
    let mut limiter = Limiter::new(InFlightBounds { max: 5, measured_max: 6, ..BOUNDS });
    assert_eq!([3, 4].map(|n| limiter.reason(n)), [LimitReason::Unused, LimitReason::Growing]);
    limiter.ended(false, 3);
    assert_eq!(limiter.reason(5), LimitReason::Maximum);
    limiter.told(busy(4, 1), 5);
    assert_eq!(limiter.reason(5), LimitReason::ServerQueue);
    limiter.told(busy(6, 0), 6);
    assert_eq!((limiter.limit(), limiter.reason(6)), (6, LimitReason::Maximum));
    limiter.ended(true, 4);
    assert_eq!(limiter.reason(3), LimitReason::Refused);
    assert_eq!(Limiter::new(InFlightBounds::fixed(8)).reason(8).as_str(), "fixed");
}

#[test]
fn other_bounds_move_the_limit_as_far_as_they_must() {
    let mut limiter = Limiter::new(InFlightBounds::OWN_SERVER);
    limiter.set_bounds(InFlightBounds { start: 8, max: 64, ..InFlightBounds::OWN_SERVER });
    assert_eq!(limiter.limit(), 4);
    limiter.set_bounds(InFlightBounds::fixed(128));
    assert_eq!(limiter.limit(), 128);
}

#[test]
fn a_fixed_limit_stays() {
    let mut limiter = Limiter::new(InFlightBounds::fixed(8));
    for refused in [true, false, true, false] {
        for waiting in 0..30 {
            limiter.ended(refused, 7);
            limiter.told(busy(8, waiting), 8);
        }
    }
    assert_eq!((limiter.limit(), limiter.look(8)), (8, None));
}

/// Anything that may happen to a limit.
#[derive(Clone, Debug)]
enum LimiterEvent {
    Ended { refused: bool },
    Told(Occupancy),
    Untold,
}

fn limiter_event() -> impl Strategy<Value = LimiterEvent> {
    let occupancy = (0.0..1e6, 0.0..1e6, any::<bool>());
    let occupancy = occupancy.prop_map(|(running, waiting, is_full)| Occupancy { running, waiting, is_full });
    prop_oneof![
        4 => any::<bool>().prop_map(|refused| LimiterEvent::Ended { refused }),
        4 => occupancy.prop_map(LimiterEvent::Told),
        1 => Just(LimiterEvent::Untold),
    ]
}

proptest! {
    #[test]
    fn the_limit_stays_within_its_bounds(events in prop::collection::vec((limiter_event(), 0_u32..100), 0..200)) {
        let mut limiter = Limiter::new(BOUNDS);
        for (event, in_flight) in events {
            let before = limiter.limit();
            match event {
                LimiterEvent::Ended { refused } => limiter.ended(refused, in_flight as usize),
                LimiterEvent::Told(occupancy) => {
                    limiter.told(occupancy, in_flight);
                    prop_assert!(!occupancy.queues() || limiter.limit() <= before + 1);
                }
                LimiterEvent::Untold => limiter.untold(),
            }
            prop_assert!((2..=64).contains(&limiter.limit()), "{limiter:?}");
            prop_assert!(limiter.told.is_some() || limiter.limit() <= 16, "{limiter:?}");
        }
    }
}
