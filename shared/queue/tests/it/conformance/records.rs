//! Tickets and commits.

use super::*;

pub async fn tickets_rise_for_ever(bench: Bench) {
    let at = filled(&bench, 0).await;
    let first = bench.store.tickets(&at, 3).await.unwrap();
    assert_eq!(first.end - first.start, 3);
    let second = bench.store.tickets(&at, 1_000).await.unwrap();
    assert!(second.start >= first.end && second.end - second.start == 1_000);
    bench.time.advance(STEP).await;
    // Not even a queue that lost everything, and whose log ends early, goes back.
    bench.store.forget_run(&at.run).await.unwrap();
    let at = bench.store.create_run(&spec("r")).await.unwrap().at;
    let third = bench.store.tickets(&at, 1).await.unwrap();
    assert!(third.start >= second.end, "{third:?} after {second:?}");
    let ahead = RunSpec { ticket_floor: third.start * 2, ..spec("s") };
    let at = bench.store.create_run(&ahead).await.unwrap().at;
    assert_eq!(bench.store.tickets(&at, 1).await.unwrap().start, third.start * 2 + 1);
    assert_eq!(bench.store.tickets(&at, 1).await.unwrap().start, third.start * 2 + 2);
}

pub async fn the_winner_of_a_dialogue_does_not_depend_on_the_order_of_commits(bench: Bench) {
    let at = filled(&bench, 0).await;
    let record = |scored, ticket| Committed { scored, ticket };
    let commit =
        |iteration, scored, ticket| Commit { key: key("m", "t", iteration), record: record(scored, ticket) };
    let batch = [
        commit(0, false, 1),
        commit(1, true, 2),
        commit(0, true, 3),  // scored over failed
        commit(0, false, 1), // what was superseded stays so
        commit(1, true, 2),  // the same call again
        commit(1, true, 9),  // a later ticket
        commit(1, false, 0), // a failure never displaces a score
        commit(0, true, 2),  // an earlier ticket that was committed later
        commit(1_000_000, false, 7),
    ];
    let expected = [
        CommitEffect::First,
        CommitEffect::First,
        CommitEffect::Supersedes(record(false, 1)),
        CommitEffect::Loses(record(true, 3)),
        CommitEffect::Repeated,
        CommitEffect::Loses(record(true, 2)),
        CommitEffect::Loses(record(true, 2)),
        CommitEffect::Supersedes(record(true, 3)),
        CommitEffect::First,
    ];
    assert_eq!(bench.store.commit(&at, &batch).await.unwrap(), expected);
    let keys =
        [key("m", "t", 0), key("m", "t", 1), key("m", "t", 2), key("m", "t", 1_000_000), key("n", "t", 0)];
    let standing = bench.store.committed(&at, &keys).await.unwrap();
    let (a, b, c) = (record(true, 2), record(true, 2), record(false, 7));
    assert_eq!(standing, [Some(a), Some(b), None, Some(c), None]);
    let counts = bench.store.counts(&at).await.unwrap();
    assert_eq!((counts[0].scored, counts[0].failed), (2, 1));
}
