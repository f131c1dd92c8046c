//! The page in a real browser.

use std::net::SocketAddr;

use domain::control::{Control, RunPhase};
use harness::browser::{Browser, axe};
use serde_json::json;
use tokio::net::TcpListener;

use super::world::*;

/// Serves the page on a port of this machine; its address.
async fn serve(world: &World) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let service = world.router.clone().into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, service).await });
    format!("http://localhost:{port}")
}

const HOSTILE: &str = "</pre><script>window.hacked = 1</script><img src=x onerror=\"window.hacked = 2\">\
                       <svg onload=\"window.hacked = 3\"></svg>\u{1b}[2J\u{202e}evil";

#[tokio::test(flavor = "multi_thread")]
async fn somebody_logs_in_sees_progress_move_pauses_and_reads_a_hostile_answer() {
    let Some(mut browser) = Browser::start() else { return };
    let world = World::guarded();
    let run = world.submit(3).await.run;
    let base = serve(&world).await;
    let mut worker = Played::start(&world.access, "w").await;

    browser.open(&format!("{base}{}", path(&run)));
    assert_eq!(browser.value("document.querySelector('h1').textContent"), "Log in");
    let enter = |token: &str| {
        format!(
            "document.getElementById('token').value = '{token}'; document.querySelector('form').requestSubmit()"
        )
    };
    browser.follow(&enter("wrong"));
    assert_eq!(browser.value("document.getElementById('refused').textContent"), "This token is unknown.");
    browser.follow(&enter(ALICE));
    assert_eq!(browser.value("document.querySelector('h1').textContent"), format!("Benchmark {run}"));
    assert_eq!(browser.value("document.cookie"), "", "scripts do not see the session");
    browser.until("document.getElementById('connection').textContent === 'live'");
    assert_eq!(browser.value("document.querySelector('progress').value"), 0);

    // Sorted by a reader, it stays sorted while the figures move.
    browser.value("document.querySelector('.grid thead button').focus(); document.activeElement.click()");
    worker.take(&world.access, 100).await;
    worker
        .answer(&world.access, |key| match key.model.as_str() {
            "a" => (
                json!({"state": "scored", "scores": {"f1": 0.5}, "infos": {"diff": HOSTILE}}),
                HOSTILE.to_owned(),
            ),
            _ => (failed(HOSTILE), "x".repeat(10 << 20)),
        })
        .await;
    browser.until("document.querySelector('progress').value > 0");
    browser.until("document.getElementById('spoken').textContent.includes('per cent done')");
    // The end of the interval below the mean follows the records.
    browser.until("Number(document.querySelector('#leaders tbody td:nth-child(4)').textContent) < 0.5");
    assert_eq!(browser.value("document.activeElement.closest('th').getAttribute('aria-sort')"), "ascending");

    browser.follow("document.querySelector('button[value=pause]').click()");
    assert_eq!(world.access.view(&run).await.unwrap().phase, RunPhase::Paused);
    browser.until("document.querySelector('.phase').textContent === 'paused'");
    browser.until("document.getElementById('history').textContent.includes('paused by alice')");
    browser.follow("document.querySelector('button[value=resume]').click()");
    browser.until("document.querySelector('.phase').textContent === 'active'");

    // From a number to its dialogues, and to one of them.
    browser.follow("document.querySelector('.grid td a').click()");
    browser.follow("document.querySelector('tbody a').click()");
    let text = browser.value("document.querySelector('article').innerText");
    assert!(text.as_str().unwrap().contains("<script>window.hacked = 1</script>"), "{text}");
    let dialogue = |model: &str| {
        format!("{base}{}/dialogue?model={model}&task=RdfFriendCount-turtle-1&iteration=0", path(&run))
    };
    for model in ["a", "b"] {
        browser.open(&dialogue(model));
        assert_eq!(
            browser.value("document.querySelectorAll('article script, article img, article svg').length"),
            0
        );
        assert_eq!(browser.value("typeof window.hacked"), "undefined");
    }
    let size = browser.value("document.querySelector('article').innerText.length");
    assert!(size.as_u64().unwrap() < 300_000, "{size}");
    let unexpected: Vec<String> =
        browser.complaints().into_iter().filter(|told| !told.contains("401 (Unauthorized)")).collect();
    assert_eq!(unexpected, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_can_be_used_by_everybody() {
    let Some(axe) = axe() else { return };
    let Some(mut browser) = Browser::start() else { return };
    let world = World::guarded();
    let run = world.submit(3).await.run;
    let base = serve(&world).await;
    let mut worker = Played::start(&world.access, "w").await;
    worker.take(&world.access, 3).await;
    worker
        .answer(&world.access, |key| match key.iteration {
            0 => (failed("HTTP 500"), String::new()),
            n => (scored(f64::from(n) / 3.0), "Ann".into()),
        })
        .await;
    let cell = "model=a&task=RdfFriendCount-turtle-1";
    let pages = [
        "/login".to_owned(),
        "/".to_owned(),
        path(&run),
        "/workers".to_owned(),
        format!("{}/dialogues?{cell}", path(&run)),
        format!("{}/dialogue?{cell}&iteration=1", path(&run)),
        "/runs/none".to_owned(),
    ];
    browser.open(&format!("{base}/login"));
    for (number, page) in pages.iter().enumerate() {
        if number == 1 {
            browser.follow(&format!(
                "document.getElementById('token').value = '{ALICE}'; document.querySelector('form').requestSubmit()"
            ));
        }
        for (width, dark) in [(1280, false), (1280, true), (390, false), (390, true)] {
            browser.set_appearance(width, dark);
            browser.open(&format!("{base}{page}"));
            let wide = browser.value("document.documentElement.scrollWidth");
            assert!(wide.as_u64().unwrap() <= u64::from(width), "{page} is {wide} wide on {width}");
            let faults = browser.barriers(&axe);
            assert_eq!(faults, json!([]), "{page}, {width} wide, dark: {dark}");
        }
    }
}
