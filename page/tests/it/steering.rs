//! What is done to runs and workers, by whom.

use domain::control::{Control, RunPhase};

use super::world::*;

#[tokio::test]
async fn operators_steer_by_the_same_path_and_stand_in_the_history() {
    let world = World::guarded();
    let run = world.submit(2).await.run;
    let mut worker = Played::start(&world.access, "w").await;
    worker.take(&world.access, 100).await;
    worker.answer(&world.access, |_| (failed("too slow"), "a".into())).await;
    let cookie = world.log_in(ALICE).await;
    let page = world.visit().with("cookie", &cookie).get(&path(&run)).await.expect(200);
    page.shows(&["value=\"pause\"", "value=\"retry\"", "value=\"cancel\"", "timeout (8)"]);
    let token = page.form_token();
    let command = format!("{}/command", path(&run));
    let act = |fields: Vec<(&'static str, &'static str)>| {
        let (world, cookie, token, command) = (&world, cookie.clone(), token.clone(), command.clone());
        async move {
            let mut fields = fields;
            fields.push(("form_token", ""));
            let fields: Vec<(&str, &str)> = fields
                .iter()
                .map(|(name, value)| (*name, if *name == "form_token" { token.as_str() } else { value }))
                .collect();
            world
                .visit()
                .with("cookie", cookie)
                .with("origin", "http://localhost:7701")
                .post(&command, &fields)
                .await
        }
    };
    let paused = act(vec![("action", "pause")]).await.expect(303);
    let told = paused.headers["location"].to_str().unwrap();
    assert!(told.starts_with(&format!("{}?done=", path(&run))) && !told.contains("pause"), "{told}");
    assert_eq!(world.access.view(&run).await.unwrap().phase, RunPhase::Paused);
    let page = world.visit().with("cookie", &cookie).get(told).await.expect(200);
    page.shows(&["The run is paused", "value=\"resume\"", "paused by alice"]);
    // An address of before, from a bookmark or the history, tells nothing that is past.
    let again = world.visit().with("cookie", &cookie).get(told).await.expect(200);
    assert!(!again.body.contains("The run is paused") && again.body.contains("value=\"resume\""));
    let retried = act(vec![("action", "retry"), ("cause", "timeout")]).await.expect(303);
    let told = retried.headers["location"].to_str().unwrap();
    world
        .visit()
        .with("cookie", &cookie)
        .get(told)
        .await
        .expect(200)
        .shows(&["8 failed dialogues are asked"]);
    act(vec![("action", "retry"), ("cause", "<b>")]).await.expect(400).shows(&["no such cause"]);
    act(vec![("action", "remove")]).await.expect(400).shows(&["no such command"]);
    act(vec![("action", "resume")]).await.expect(303);
    act(vec![("action", "cancel")]).await.expect(303);
    let view = world.access.view(&run).await.unwrap();
    assert_eq!(view.phase, RunPhase::Cancelled);
    let told: Vec<(&str, &str)> = view.history.iter().map(|e| (e.who.as_str(), e.what.as_str())).collect();
    let expected =
        [("alice", "paused"), ("alice", "retried 8 dialogues"), ("alice", "resumed"), ("alice", "cancelled")];
    assert_eq!(told, expected);

    let workers = world.visit().with("cookie", &cookie).get("/workers").await.expect(200);
    workers.shows(&["host &lt;b&gt;", "<option value=\"w\">w</option>"]);
    let drain = [("form_token", token.as_str()), ("worker", "w")];
    world.visit().with("cookie", &cookie).post("/workers/drain", &drain).await.expect(303);
    assert!(world.access.workers().await.unwrap()[0].draining);
    let nobody = [("form_token", token.as_str()), ("worker", "nobody")];
    world.visit().with("cookie", &cookie).post("/workers/drain", &nobody).await.expect(404);
}

#[tokio::test]
async fn nothing_is_done_for_readers_strangers_and_other_sites() {
    let world = World::guarded();
    let run = world.submit(1).await.run;
    let (alice, bob) = (world.log_in(ALICE).await, world.log_in(BOB).await);
    let token_of = |cookie: &str| {
        let visit = world.visit().with("cookie", cookie);
        async move { visit.get("/").await.expect(200).form_token() }
    };
    let (alices, bobs) = (token_of(&alice).await, token_of(&bob).await);
    assert_ne!(alices, bobs);
    let page = world.visit().with("cookie", &bob).get(&path(&run)).await.expect(200);
    assert!(!page.body.contains("value=\"pause\""), "a reader has no commands");
    assert!(!world.visit().with("cookie", &bob).get("/workers").await.body.contains("Drain"));

    let command = format!("{}/command", path(&run));
    let pause = |token: &str| {
        vec![("action".to_owned(), "pause".to_owned()), ("form_token".to_owned(), token.to_owned())]
    };
    let refuse =
        |cookie: Option<&str>, token: &str, more: Option<(&'static str, &'static str)>, status: u16| {
            let mut visit = world.visit();
            if let Some(cookie) = cookie {
                visit = visit.with("cookie", cookie);
            }
            if let Some((name, value)) = more {
                visit = visit.with(name, value);
            }
            let (fields, command) = (pause(token), command.clone());
            async move {
                let fields: Vec<(&str, &str)> =
                    fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
                visit.post(&command, &fields).await.expect(status);
            }
        };
    refuse(None, &alices, None, 401).await;
    refuse(Some(&bob), &bobs, None, 403).await;
    refuse(Some(&alice), "", None, 403).await;
    refuse(Some(&alice), &bobs, None, 403).await;
    refuse(Some(&alice), &alices, Some(("origin", "https://evil.example")), 403).await;
    refuse(Some(&alice), &alices, Some(("origin", "null")), 403).await;
    refuse(Some(&alice), &alices, Some(("sec-fetch-site", "cross-site")), 403).await;
    let drain = [("form_token", bobs.as_str()), ("worker", "w")];
    world.visit().with("cookie", &bob).post("/workers/drain", &drain).await.expect(403);
    // By a link nothing is done at all.
    world.visit().with("cookie", &alice).get(&command).await.expect(405);
    let view = world.access.view(&run).await.unwrap();
    assert!(view.phase != RunPhase::Paused && view.history.is_empty(), "{view:?}");

    // Without identities, too, a form must come from the page.
    let open = World::open();
    let run = open.submit(1).await.run;
    let command = format!("{}/command", path(&run));
    open.visit().post(&command, &[("action", "pause")]).await.expect(403);
    let token = open.visit().get(&path(&run)).await.form_token();
    open.visit().post(&command, &[("action", "pause"), ("form_token", &token)]).await.expect(303);
    assert_eq!(open.access.view(&run).await.unwrap().history[0].who, "anyone");
}
