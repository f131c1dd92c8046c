//! What moves by itself.

use std::time::Duration;

use axum::body::BodyDataStream;
use domain::control::{Control, RunPhase};
use futures::StreamExt;

use super::world::*;

/// Longer than any tick; passed only where nothing moves.
const PATIENCE: Duration = Duration::from_secs(30);

/// Reads events until one holds this text; what was read. `None` at the end of the stream.
async fn until(stream: &mut BodyDataStream, text: &str) -> Option<String> {
    let read = async {
        let mut seen = String::new();
        while let Some(piece) = stream.next().await {
            seen.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
            if seen.contains(text) {
                return Some(seen);
            }
        }
        None
    };
    tokio::time::timeout(PATIENCE, read).await.expect("an event")
}

#[tokio::test]
async fn a_page_gets_what_changed_until_the_run_is_over() {
    let world = World::open();
    let run = world.submit(2).await.run;
    let live = format!("{}/live", path(&run));
    let mut stream = world.visit().stream(&live).await;
    let first = until(&mut stream, "\"progress\"").await.unwrap();
    assert!(first.contains("0/8 dialogues") && first.contains("\"grid\""), "{first}");
    let mut worker = Played::start(&world.access, "w").await;
    worker.take(&world.access, 100).await;
    worker.answer(&world.access, |_| (scored(0.5), "a".into())).await;
    let second = until(&mut stream, "8/8 dialogues").await.unwrap();
    assert!(!second.contains("\"history\""), "what did not change is not sent: {second}");
    worker.take(&world.access, 0).await;
    world.coordinator.tend().await.unwrap();
    assert_eq!(world.access.view(&run).await.unwrap().phase, RunPhase::Finished);
    let last = until(&mut stream, "event: over").await.unwrap();
    assert!(last.contains("finished") || last.contains("event: over"));
    assert!(stream.next().await.is_none(), "the stream ends with its run");
    world.visit().get("/runs/none/live").await.expect(404);
}

#[tokio::test]
async fn streams_are_bounded_and_end_with_session_and_process() {
    let world = World::guarded();
    let cookie = world.log_in(BOB).await;
    let mut streams = Vec::new();
    for _ in 0..64 {
        streams.push(world.visit().with("cookie", &cookie).stream("/live").await);
    }
    let full = world.visit().with("cookie", &cookie).get("/live").await.expect(503);
    assert_eq!(full.headers["retry-after"], "30");
    drop(streams.drain(1..));
    let mut second = world.visit().with("cookie", &cookie).stream("/live").await;
    assert!(until(&mut second, "There are no benchmarks").await.is_some());

    let page = world.visit().with("cookie", &cookie).get("/").await;
    let logout = [("form_token", page.form_token())];
    let logout: Vec<(&str, &str)> = logout.iter().map(|(name, value)| (*name, value.as_str())).collect();
    world.visit().with("cookie", &cookie).post("/logout", &logout).await.expect(303);
    assert!(until(&mut second, "event: leave").await.is_some());
    assert!(second.next().await.is_none());

    let cookie = world.log_in(BOB).await;
    let mut third = world.visit().with("cookie", &cookie).stream("/live").await;
    assert!(until(&mut third, "There are no benchmarks").await.is_some());
    world.page.close();
    assert!(until(&mut third, "never").await.is_none(), "it ends with the process");
}
