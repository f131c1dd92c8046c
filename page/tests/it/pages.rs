//! What is shown.

use benchmarks::kinds;
use benchmarks::testing::FIXTURE;
use domain::control::{Control, Submission};
use serde_json::json;

use super::world::*;

#[tokio::test]
async fn a_run_shows_its_progress_its_means_and_its_failures() {
    let empty = World::open();
    empty.visit().get("/").await.expect(200).shows(&["There are no benchmarks."]);
    empty.visit().get("/workers").await.expect(200).shows(&["There are no workers."]);
    let world = World::open();
    let run = world.submit(4).await.run;
    let mut worker = Played::start(&world.access, "w").await;
    worker.take(&world.access, 100).await;
    worker
        .answer(&world.access, |key| match (key.model.as_str(), key.iteration) {
            ("a", 0) => (failed("no <answer> in time"), String::new()),
            ("a", n) => (scored(f64::from(n) / 4.0), "Ann".into()),
            _ => (scored(1.0), "Bo".into()),
        })
        .await;
    world
        .visit()
        .get("/")
        .await
        .expect(200)
        .shows(&[&format!("href=\"{}\"", path(&run)), "two &lt;by&gt; two"]);
    let page = world.visit().get(&path(&run)).await.expect(200);
    page.shows(&[
        "16/16 dialogues, 2 failed",
        "max=\"16\" value=\"16\"",
        "no &lt;answer&gt; in time",
        "12.5 %",
        "h20",
    ]);
    let (b, a) = (page.body.find(">b</th>").unwrap(), page.body.find(">a</th>").unwrap());
    assert!(b < a, "the better model stands on top");
    let link = format!("{}/dialogues?model=a&amp;task=RdfFriendCount-turtle-1", path(&run));
    page.shows(&[&link]);
    let list = world.visit().get(&link.replace("&amp;", "&")).await.expect(200);
    list.shows(&["timeout", ">0.250<", "/dialogue?model=a&amp;task=RdfFriendCount-turtle-1&amp;iteration=3"]);
    let dialogue = |iteration: u32| {
        format!("{}/dialogue?model=a&task=RdfFriendCount-turtle-1&iteration={iteration}", path(&run))
    };
    world.visit().get(&dialogue(3)).await.expect(200).shows(&[
        "Who knows whom?",
        ">Ann<",
        "&quot;f1&quot;: 0.75",
    ]);
    world
        .visit()
        .get(&dialogue(0))
        .await
        .expect(200)
        .shows(&["no &lt;answer&gt; in time", "no score: timeout"]);
    let last = world.visit().get(&dialogue(3)).await;
    assert!(last.body.contains(">previous</a>") && !last.body.contains(">next</a>"), "there is no next one");
    world.visit().get(&dialogue(4)).await.expect(404);
    world.visit().get(&format!("{}/dialogues?model=a&task=x", path(&run))).await.expect(404);
    world.visit().get(&format!("{}/dialogue?model=a", path(&run))).await.expect(400);
    world
        .visit()
        .get("/workers")
        .await
        .expect(200)
        .shows(&["1 worker, 0 dialogues in flight", "host &lt;b&gt;"]);
}

#[tokio::test]
async fn a_judged_benchmark_that_cannot_be_read_is_listed_with_its_trouble_beside_the_others() {
    let world = World::open();
    let run = world.submit(1).await.run;
    world.write("pipelines/bad-0a1b2c.manifest-1.json", b"{\xff");
    let page = world.visit().get("/").await.expect(200);
    page.shows(&[&format!("href=\"{}\"", path(&run)), "bad-0a1b2c", "manifest-1.json cannot be read"]);
    let page = world.visit().get("/runs/bad-0a1b2c").await.expect(200);
    page.shows(&["manifest-1.json cannot be read"]);
}

#[tokio::test]
async fn hostile_texts_are_texts_and_long_ones_are_cut() {
    let world = World::open();
    let run = world.submit(1).await.run;
    let hostile = "</pre><script>alert(1)</script><img src=x onerror=alert(2)>\u{1b}[2J\u{202e}evil";
    let long = "x".repeat(10 << 20);
    let mut worker = Played::start(&world.access, "w").await;
    worker.take(&world.access, 100).await;
    worker
        .answer(&world.access, |key| match key.model.as_str() {
            "a" => (
                json!({"state": "scored", "scores": {"f1": 1.0}, "infos": {hostile: hostile}}),
                hostile.to_owned(),
            ),
            _ => (failed(hostile), long.clone()),
        })
        .await;
    let dialogue = |model: &str| {
        format!("{}/dialogue?model={model}&task=RdfFriendCount-turtle-1&iteration=0", path(&run))
    };
    let pages = [
        world.visit().get(&dialogue("a")).await.expect(200),
        world.visit().get(&dialogue("b")).await.expect(200),
        world.visit().get(&path(&run)).await.expect(200),
    ];
    for page in &pages {
        let harm = ["<script>", "<img", "\u{1b}", "\u{202e}"];
        assert!(!harm.iter().any(|part| page.body.contains(part)), "{}", page.body);
        assert!(page.body.len() < 1 << 20, "{}", page.body.len());
    }
    pages[0].shows(&["&lt;/pre&gt;&lt;script&gt;alert(1)", "⟦U+001B⟧[2J⟦U+202E⟧evil"]);
    pages[1].shows(&["The first 100000 of 10485760 characters (10485760 bytes) are shown."]);
    // What comes from the address is shown nowhere.
    let echoed = world.visit().get(&format!("{}?done=%3Cscript%3Ealert(3)", path(&run))).await.expect(200);
    assert!(!echoed.body.contains("alert(3)"));
}

#[tokio::test]
async fn readers_see_lengths_of_protected_texts_and_operators_the_texts() {
    let world = World::guarded();
    let run = world.submit_protected().await.run;
    let mut worker = Played::start(&world.access, "w").await;
    worker.take(&world.access, 100).await;
    let infos = json!({"quoted": "Ann of the marsh"});
    worker
        .answer(&world.access, |_| {
            (json!({"state": "scored", "scores": {"f1": 1.0}, "infos": infos}), "Ann of the marsh".to_owned())
        })
        .await;
    let dialogue = format!("{}/dialogue?model=a&task=Text2AnswerListOrganizational&iteration=0", path(&run));
    let page = |token: &'static str| {
        let (world, dialogue) = (&world, dialogue.clone());
        async move {
            let cookie = world.log_in(token).await;
            world.visit().with("cookie", cookie).get(&dialogue).await.expect(200)
        }
    };
    let readers = page(BOB).await;
    readers.shows(&["[15 characters]", "[16 characters]", "The exercises of this run are protected"]);
    assert!(!readers.body.contains("Ann of") && !readers.body.contains("Who knows"), "{}", readers.body);
    page(ALICE).await.shows(&["Ann of the marsh", "Who knows whom?"]);
}

#[tokio::test]
async fn readers_do_not_see_what_a_server_repeated_of_a_protected_exercise() {
    let world = World::guarded();
    let run = world.submit_protected().await.run;
    let mut worker = Played::start(&world.access, "w").await;
    worker.take(&world.access, 100).await;
    worker.answer(&world.access, |_| (failed("cannot answer: Who knows whom?"), String::new())).await;
    let page = async |token| {
        let cookie = world.log_in(token).await;
        world.visit().with("cookie", cookie).get(&path(&run)).await.expect(200)
    };
    // One after the other: what is kept for operators is kept for nobody else.
    page(ALICE).await.shows(&["cannot answer: Who knows whom?"]);
    let readers = page(BOB).await;
    readers.shows(&["[30 characters]"]);
    assert!(!readers.body.contains("Who knows"), "{}", readers.body);
}

#[tokio::test]
async fn a_kind_of_a_test_is_shown_by_its_line_in_the_list_of_kinds_alone() {
    kinds::add_for_test(&FIXTURE);
    let world = World::open();
    let configuration = json!({
        "name": "liked", "seed": 7, "iterations": 1, "pipeline": FIXTURE.name, "tasks": ["FactExtractStatic"],
        "models": [{"label": "a", "connector": "openai-compatible", "model": MODEL}],
        "judges": {"taste": {"label": "t", "connector": "openai-compatible"}},
    });
    let submission = Submission { configuration, pack: None };
    let run = world.access.submit(submission).await.unwrap().run;
    let mut worker = Played::serving(&world.access, "w", &[MODEL, "t"]).await;
    worker.take(&world.access, 100).await;
    worker.answer(&world.access, |_| (scored(1.0), "Ann".to_owned())).await;
    worker.take(&world.access, 0).await;
    // Once a model has answered, its judges are asked, and it is known what comes of it.
    for _ in 0..3 {
        world.coordinator.tend().await.unwrap();
    }
    world.visit().get(&path(&run)).await.expect(200).shows(&["liking", "= liked"]);
}
