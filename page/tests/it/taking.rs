//! What visitors take along, and where the page leads them.

use serde_json::{Value, json};

use super::world::*;

#[tokio::test]
async fn scores_are_taken_as_a_table_and_records_as_lines() {
    let world = World::open();
    let run = world.submit(2).await.run;
    let mut worker = Played::start(&world.access, "w").await;
    worker.take(&world.access, 100).await;
    worker
        .answer(&world.access, |key| match key.iteration {
            0 => (scored(0.5), "Ann".into()),
            _ => (failed("too slow"), String::new()),
        })
        .await;
    let page = world.visit().get(&path(&run)).await.expect(200);
    let (scores, records) = (format!("{}/scores.csv", path(&run)), format!("{}/records.jsonl", path(&run)));
    page.shows(&[&scores, &records, &format!("https://grafana.example/d/kgfleet-run?var-run={run}")]);
    let table = world.visit().get(&scores).await.expect(200);
    assert_eq!(table.headers["content-disposition"], format!("attachment; filename=\"{run}.csv\""));
    assert_eq!(table.body.lines().next(), Some("model,task,score,mean,scored,failed,planned"));
    assert_eq!(table.body.lines().filter(|line| line.ends_with(",0.5,1,1,2")).count(), 4, "{}", table.body);
    let taken = world.visit().get(&records).await.expect(200);
    let lines: Vec<Value> = taken.body.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 8);
    assert!(lines.iter().all(|record| record["rounds"][0]["prompt"]["text"] == "Who knows whom?"));
    for none in ["/runs/none/scores.csv", "/runs/none/records.jsonl"] {
        world.visit().get(none).await.expect(404);
    }
}

#[tokio::test]
async fn readers_take_protected_texts_as_lengths_and_strangers_nothing() {
    let world = World::guarded();
    let run = world.submit_protected().await.run;
    let mut worker = Played::start(&world.access, "w").await;
    worker.take(&world.access, 100).await;
    let infos = json!({"quoted": "Ann of the marsh"});
    let outcome = json!({"state": "scored", "scores": {"f1": 1.0}, "infos": infos});
    worker.answer(&world.access, |_| (outcome.clone(), "Ann of the marsh".to_owned())).await;
    let records = format!("{}/records.jsonl", path(&run));
    world.visit().get(&records).await.expect(401);
    world.visit().get(&format!("{}/scores.csv", path(&run))).await.expect(401);
    let taken = async |token| {
        let cookie = world.log_in(token).await;
        world.visit().with("cookie", cookie).get(&records).await.expect(200).body
    };
    let (readers, operators) = (taken(BOB).await, taken(ALICE).await);
    assert!(!readers.contains("Ann of") && !readers.contains("Who knows"), "{readers}");
    assert!(operators.contains("Ann of the marsh") && operators.contains("Who knows whom?"), "{operators}");
}

#[tokio::test]
async fn a_page_says_what_models_use_and_how_long_they_took() {
    let world = World::open();
    let run = world.submit(2).await.run;
    let mut worker = Played::start(&world.access, "w").await;
    worker.take(&world.access, 100).await;
    worker.answer(&world.access, |_| (scored(0.5), "a".into())).await;
    let page = world.visit().get(&path(&run)).await.expect(200);
    // Answers took a second each. Of one model the server counted no tokens: their number is unknown.
    page.shows(&["Speed and cost", ">1.00<", ">2800<", ">1040<", "No model has a price.", " so far"]);
    assert_eq!(page.body.matches(">2800<").count(), 1, "{}", page.body);
}
