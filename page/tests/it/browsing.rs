//! The page in a real browser.

use domain::control::{BenchmarkCommand, Control, RunPhase};
use harness::browser::{Browser, axe};
use proto::server::{BesideCalls, Security, Services};
use serde_json::json;
use tokio::net::TcpListener;

use super::world::*;

/// Serves the page on a port of this machine; its address.
async fn serve(world: &World) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let services = Services { exchange: world.access.clone(), control: world.access.clone() };
    let beside = BesideCalls { open: world.router.clone(), ..BesideCalls::default() };
    tokio::spawn(proto::server::serve(listener, services, Security::none(), beside, std::future::pending()));
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

/// What the focus is in, by the model of its row.
const FOCUSED: &str =
    "document.activeElement.closest('tr')?.cells[0].textContent ?? document.activeElement.nodeName";

#[tokio::test(flavor = "multi_thread")]
async fn somebody_without_a_mouse_goes_through_a_table_that_moves() {
    let Some(mut browser) = Browser::start() else { return };
    let world = World::open();
    let view = world.submit_many(4, 20).await;
    let run = view.run;
    let names: Vec<String> = view.models.iter().map(|model| model.model.to_string()).collect();
    let base = serve(&world).await;
    let served: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut worker = Played::serving(&world.access, "w", &served).await;
    // One dialogue of each model, so that there is something to go to; the first model is the best one.
    let score = |model: &str, names: &[String]| {
        1.0 - names.iter().position(|name| name == model).unwrap_or(0) as f64 / 10.0
    };
    worker.take(&world.access, 1).await;
    worker.answer(&world.access, |key| (scored(score(key.model.as_str(), &names)), "a".into())).await;
    browser.open(&format!("{base}{}", path(&run)));
    browser.until("document.getElementById('connection').textContent === 'live'");

    // By the tabulator to the heading of `done` in the board, and sorted by the key that presses buttons.
    let heading = "document.activeElement.closest('#leaders th')?.textContent";
    for _ in 0..80 {
        if browser.value(heading) == "done" {
            break;
        }
        browser.press("Tab");
    }
    assert_eq!(browser.value(heading), "done");
    browser.press("Enter");
    let sorted = "document.activeElement.closest('th').getAttribute('aria-sort')";
    assert_eq!(browser.value(sorted), "descending");

    // On to the first number of the grid that leads to dialogues.
    for _ in 0..80 {
        if browser.value("document.activeElement.matches('.grid td a')") == true {
            break;
        }
        browser.press("Tab");
    }
    let (model, link) = (browser.value(FOCUSED), browser.value("document.activeElement.href"));
    assert_eq!(model, names[0].as_str());
    browser.value("window.focused = document.activeElement; true");
    let place = "[...document.querySelectorAll('.grid tbody tr')].indexOf(window.focused.closest('tr'))";
    assert_eq!(browser.value(place), 0);
    // The others overtake it; the focus goes with its model and its number.
    let mut done = 1;
    while done < 240 {
        worker.take(&world.access, 100).await;
        let answered = worker
            .answer(&world.access, |key| {
                (scored(if key.model.as_str() == names[0] { 0.0 } else { 1.0 }), "a".into())
            })
            .await;
        if answered == 0 {
            break;
        }
        done += answered;
    }
    browser.until(&format!("{place} === 3"));
    assert_eq!(browser.value("document.activeElement === window.focused"), true);
    assert_eq!((browser.value(FOCUSED), browser.value("document.activeElement.href")), (model, link));
    assert_eq!(browser.value("document.querySelector('#leaders th[aria-sort]').textContent"), "done");

    // A filter stays, acts on every table of models, and says when nothing fits.
    let type_in = |text: &str| {
        format!(
            "document.querySelector('#find input').value = '{text}'; \
             document.querySelector('#find input').dispatchEvent(new Event('input', {{bubbles: true}})); \
             [...document.querySelectorAll('tr[data-model], .grid tbody tr')].filter((row) => !row.hidden) \
             .map((row) => row.dataset.model ?? row.cells[0].textContent)"
        )
    };
    assert_eq!(
        browser.value(&type_in("MODEL-03")),
        json!(["org/model-03", "org/model-03", "org/model-03", "org/model-03"])
    );
    assert_eq!(browser.value(&type_in("nobody")), json!([]));
    assert_eq!(browser.value("document.querySelector('#find output').value"), "No model fits.");
    browser.value(&type_in(""));
    // A choice of order is that of a heading.
    browser.value(
        "const order = document.querySelector('#find select[name=order]'); order.value = 'model ascending'; \
         order.dispatchEvent(new Event('input', {bubbles: true}))",
    );
    let first = browser.value("document.querySelector('#leaders tbody tr').dataset.model");
    assert_eq!(first, names[0].as_str());
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_under_the_fingers_is_not_exchanged_for_another() {
    let Some(mut browser) = Browser::start() else { return };
    let world = World::open();
    let run = world.submit(3).await.run;
    let base = serve(&world).await;
    browser.open(&format!("{base}{}", path(&run)));
    browser.until("document.getElementById('connection').textContent === 'live'");
    browser.value("document.querySelector('button[value=pause]').focus()");
    // Somebody else pauses it: where `Pause` was, `Resume` is now.
    world.access.command(&run, BenchmarkCommand::Pause).await.unwrap();
    browser.until("document.querySelector('button[value=resume]') !== null");
    assert_eq!(browser.value("document.activeElement.id"), "controls", "the reader goes on from there");
    // The cause that somebody has chosen stays chosen, whatever other causes come before it.
    let mut worker = Played::start(&world.access, "w").await;
    world.access.command(&run, BenchmarkCommand::Resume).await.unwrap();
    worker.take(&world.access, 1).await;
    worker.answer(&world.access, |_| (failed("too slow"), String::new())).await;
    browser.until("document.querySelector('option[value=timeout]') !== null");
    browser.value("document.querySelector('select[name=cause]').value = 'timeout'");
    worker.take(&world.access, 1).await;
    let refused = json!({"state": "failed", "cause": "connection", "message": "refused"});
    worker.answer(&world.access, |_| (refused.clone(), String::new())).await;
    browser.until("document.querySelector('option[value=connection]') !== null");
    assert_eq!(browser.value("document.querySelector('select[name=cause]').value"), "timeout");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_models_fit_every_screen() {
    let Some(axe) = axe() else { return };
    let Some(mut browser) = Browser::start() else { return };
    for models in [3, 10, 41] {
        let world = World::open();
        let view = world.submit_many(models, 4).await;
        let (run, base) = (view.run, serve(&world).await);
        // Nobody serves the last one; the second has begun only.
        let served = view.models.iter().map(|model| model.model.as_str()).take(models - 1);
        let mut worker = Played::serving(&world.access, "w", &served.collect::<Vec<_>>()).await;
        let slow = view.models[1].model.clone();
        for _ in 0..40 {
            worker.take(&world.access, 8).await;
            worker
                .answer(&world.access, |key| match (key.model == slow, key.iteration) {
                    (true, 1..) => (failed("HTTP 500: the server has an internal error"), String::new()),
                    (_, n) => (scored(f64::from(n % 3) / 2.0), "Ann".into()),
                })
                .await;
        }
        for (width, dark) in [1440, 768, 390].into_iter().flat_map(|width| [(width, false), (width, true)]) {
            browser.set_appearance(width, dark);
            browser.open(&format!("{base}{}", path(&run)));
            browser.until("document.querySelectorAll('#leaders tbody tr').length > 0");
            browser.until("document.getElementById('connection').textContent === 'live'");
            let look = if dark { "dark" } else { "light" };
            browser.keep_picture(&format!("page-{models}-{width}-{look}"));
            let wide = browser.value("document.documentElement.scrollWidth");
            assert!(wide.as_u64().unwrap() <= u64::from(width), "{models} models: {wide} wide on {width}");
            // Name and mean stand side by side, without scrolling.
            let end = browser.value(
                "document.querySelector('#leaders tbody td:nth-child(3)').getBoundingClientRect().right",
            );
            assert!(
                end.as_f64().unwrap() <= f64::from(width),
                "{models} models: the mean ends at {end} on {width}"
            );
            let faults = browser.barriers(&axe);
            assert_eq!(faults, json!([]), "{models} models, {width} wide, dark: {dark}");
        }
    }
}
