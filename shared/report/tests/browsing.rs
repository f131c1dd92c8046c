//! A report in a real browser: on screens of all sizes, by keyboard, and on paper.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fs::File;
use std::io::BufWriter;

use domain::Infos;
use harness::browser::{Browser, axe};
use report::Dialogues;
use report::analysis::scheme::{bundled, named};
use report::details::{Details, DialogueDetail};
use report::dialogues::{Column, Exercises, NewDialogue, Origin};
use report::html::{ReportPage, write};
use results::llmkgbench::ResultRecord;
use serde_json::{Value, json};

const MODELS: usize = 10;

/// Width of A4 in landscape less its margins, in pixels of paper.
const PAPER: u32 = 1047;

const HOSTILE: &str =
    "</script><script>window.hacked = 1</script><img src=x onerror=\"window.hacked = 2\">\u{202e}";

/// A report of invented dialogues: models of rising skill on both formats of two tasks. One dialogue of each model on each task
/// has no score.
fn report(folder: &tempfile::TempDir) -> String {
    let (mut all, mut details) = (Dialogues::default(), Details::new(false));
    for model in 0..MODELS {
        let name = format!("a-rather-long-name-of-a-model-of-today-{model}-{}B", 1 << model);
        let column = all.column(Column {
            model: name.clone(),
            name,
            family: ["Llama", "Qwen"][model % 2].to_owned(),
            size: Some(f64::from(1 << model)),
            active: None,
            origin: Origin::Published,
            exercises: Exercises::Published,
        });
        for label in [
            "RdfFriendCount-turtle-1",
            "RdfFriendCount-jsonld-1",
            "RdfFriendCount-turtle-2",
            "RdfFriendCount-jsonld-2",
        ] {
            let task = all.task(label, "RdfFriendCount", &["f1"]);
            for iteration in 0..20_u32 {
                let score = (0.05 * model as f64 + 0.1 * f64::from(iteration % 5)).min(1.0);
                let scores = json!({ "f1": score });
                let answer = format!("{HOSTILE} needle-{model}-{iteration}-{label}");
                let record = json!({
                    "modelId": "GPT--m--m", "taskInfo": { "taskId": "RdfFriendCount", "version": "4.4" }, "scores": scores,
                    "info": Infos::new(), "interactions": [["prompt", "t", "Who?"], ["response", "t", answer]],
                });
                details
                    .push(DialogueDetail::of_result(&ResultRecord::from_value(record).unwrap()), false)
                    .unwrap();
                let scores = scores.as_object().unwrap();
                all.add(NewDialogue {
                    column,
                    task,
                    case: &(iteration % 5).to_string(),
                    iteration,
                    outcome: if iteration == 7 { Err("timeout".to_owned()) } else { Ok(scores) },
                    rounds: 1,
                    prompt_tokens: None,
                    cached_tokens: 0,
                    completion_tokens: Some(100 + 10 * model as u64),
                    seconds: Some(1.0),
                    attempt: 1,
                });
            }
        }
    }
    let (combined, compass) =
        (named(&bundled(), "sparql-b").unwrap(), named(&bundled(), "semantic").unwrap());
    let report = ReportPage {
        title: "An invented run",
        dialogues: &all,
        judged: &[],
        combined: &combined,
        compass: &compass,
    };
    let path = folder.path().join("report.html");
    write(&report, details, BufWriter::new(File::create(&path).unwrap())).unwrap();
    format!("file://{}", path.display())
}

/// How many elements that fit a selector can be seen.
fn seen(browser: &mut Browser, selector: &str) -> u64 {
    let count = format!(
        "[...document.querySelectorAll('{selector}')].filter((found) => found.checkVisibility()).length"
    );
    browser.value(&count).as_u64().unwrap()
}

#[test]
fn a_report_can_be_used_by_everybody_and_a_phone_shows_names_beside_means() {
    let Some(axe) = axe() else { return };
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = report(&folder);
    for (width, dark) in [(1440, false), (1440, true), (768, true), (390, false), (390, true)] {
        browser.set_appearance(width, dark);
        browser.open(&page);
        let wide = browser.value("document.documentElement.scrollWidth");
        assert!(wide.as_u64().unwrap() <= u64::from(width), "{wide} wide on {width}");
        assert_eq!(browser.barriers(&axe), json!([]), "{width} wide, dark: {dark}");
        for table in ["#models .dots", "#models table:not(.dots)", "#scores .grid"] {
            let ends = browser.value(&format!(
                "[...document.querySelector('{table}').tBodies[0].rows[0].cells].slice(0, 2)\
                 .flatMap((cell) => {{ const box = cell.getBoundingClientRect(); return [box.left, box.right]; }})"
            ));
            let ends: Vec<f64> = ends.as_array().unwrap().iter().map(|end| end.as_f64().unwrap()).collect();
            assert!(
                ends[0] >= 0.0 && ends[1] <= ends[2] + 1.0 && ends[3] <= f64::from(width),
                "{table} on {width}: {ends:?}"
            );
        }
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn filters_act_on_all_that_is_below_and_say_how_much_fits() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    browser.set_appearance(1440, false);
    browser.open(&report(&folder));
    let enter = |browser: &mut Browser, field: &str, text: &str| {
        browser.value(&format!(
            "(() => {{ const field = document.querySelector('#filters [name={field}]'); field.value = '{text}'; \
             field.dispatchEvent(new Event('input', {{ bubbles: true }})); }})()"
        ));
    };
    let rows = |browser: &mut Browser| {
        [
            "#models .dots tbody tr",
            "#models table:not(.dots) tbody tr",
            "#scores tbody tr",
            "#configuration tbody tr",
        ]
        .map(|selector| seen(browser, selector))
    };
    let before = rows(&mut browser);
    assert_eq!((before[0], before[2], before[3]), (10, 10, 10), "{before:?}");
    enter(&mut browser, "model", "-3-8B");
    assert_eq!(rows(&mut browser)[..1], [1]);
    assert!(rows(&mut browser).iter().all(|rows| *rows == 1), "{:?}", rows(&mut browser));
    let marks = "[...new Set([...document.querySelectorAll('svg [data-model]:not([hidden])')].map((mark) => mark.dataset.model))]";
    assert_eq!(browser.value(marks), json!(["a-rather-long-name-of-a-model-of-today-3-8B"]));
    let fits = browser.value("document.getElementById('fits').textContent");
    assert!(fits.as_str().unwrap().starts_with("1 of 10 models and 4 of 4 tasks fit."), "{fits}");
    browser.until("document.getElementById('found').textContent.startsWith('80 of 800')");
    enter(&mut browser, "format", "jsonld");
    assert_eq!(seen(&mut browser, "#scores thead th[data-task]"), 2);
    browser.until("document.getElementById('found').textContent.startsWith('40 of 800')");
    enter(&mut browser, "model", "nobody");
    assert!(rows(&mut browser).iter().all(|rows| *rows == 0));
    let fits = browser.value("document.getElementById('fits').textContent");
    assert!(fits.as_str().unwrap().starts_with("Nothing fits: no model"), "{fits}");
    browser.value("document.querySelector('#filters button[type=reset]').click()");
    browser.until("document.getElementById('fits').textContent === ''");
    assert_eq!(rows(&mut browser), before);
    // By keyboard: a heading sorts, and keeps the focus.
    browser.value("document.querySelector('#models .dots thead th:nth-child(2) button').focus()");
    let first =
        |browser: &mut Browser| browser.value("document.querySelector('#models .dots tbody td').textContent");
    let best = first(&mut browser);
    for turn in 0..2 {
        browser.press("Enter");
        assert_eq!(first(&mut browser) == best, turn == 0, "highest first, then lowest");
    }
    assert_eq!(browser.value("document.activeElement.closest('th').getAttribute('aria-sort')"), "ascending");
}

#[test]
fn dialogues_are_found_ordered_and_read_one_after_the_other() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    browser.open(&report(&folder));
    let found = |browser: &mut Browser, words: &str| {
        browser.until(&format!("document.getElementById('found').textContent.startsWith('{words}')"));
    };
    let enter = |browser: &mut Browser, field: &str, act: &str| {
        browser.value(&format!(
            "(() => {{ const field = document.querySelector('#choose [name={field}]'); {act}; \
             field.dispatchEvent(new Event('input', {{ bubbles: true }})); }})()"
        ));
    };
    found(&mut browser, "800 of 800");
    browser.value("document.querySelector('#scores tbody td a').click()");
    found(&mut browser, "20 of 800");
    enter(&mut browser, "order", "field.value = 'worst'");
    browser.until("document.querySelector('#list button').textContent.includes('timeout')");
    browser.value("document.querySelector('#list button').click()");
    browser.until("document.querySelectorAll('#viewer pre').length > 1");
    let place = "document.querySelector('#viewer .steps span').textContent";
    assert_eq!(browser.value(place), "1 of 20 in the list");
    let step = |number: u32| format!("document.querySelector('#viewer .steps button:nth-of-type({number})')");
    assert_eq!(browser.value(&format!("{}.disabled", step(1))), true, "nothing comes before the first");
    browser.value(&format!("{}.click()", step(2)));
    browser.until(&format!("{place} === '2 of 20 in the list'"));
    let address = browser.value("location.hash");
    assert!(address.as_str().unwrap().starts_with("#o/"), "{address}");
    enter(&mut browser, "only", "field.value = 'failed'");
    found(&mut browser, "1 of 800");
    browser.value("(() => { const form = document.getElementById('choose'); form.reset(); })()");
    enter(&mut browser, "words", "field.value = 'needle-9-19-RdfFriendCount-turtle-1'");
    found(&mut browser, "No dialogue fits.");
    enter(&mut browser, "texts", "field.checked = true");
    found(&mut browser, "1 of 800");
    browser.value("document.querySelector('#list button').click()");
    browser.until("document.querySelector('#viewer').textContent.includes('<script>window.hacked = 1')");
    assert_eq!(browser.value("typeof window.hacked"), "undefined");
    assert_eq!(browser.value("document.querySelectorAll('#viewer img, #viewer script').length"), 0);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn paper_cuts_no_column_and_is_white() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    browser.open(&report(&folder));
    browser.set_print(PAPER);
    browser.value("dispatchEvent(new Event('beforeprint'))");
    let cut = browser.value(
        "[...document.querySelectorAll('.scroll')].filter((box) => box.scrollWidth > document.documentElement.clientWidth)\
         .map((box) => box.getAttribute('aria-label'))",
    );
    assert_eq!(cut, json!([]), "wider than paper");
    assert_eq!(seen(&mut browser, "details:not([open])"), 0);
    assert_eq!(seen(&mut browser, "form, nav"), 0);
    let colours = browser.value(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color, \
          getComputedStyle(document.querySelector('svg.kgf .paper')).fill]",
    );
    assert_eq!(colours, json!(["rgb(255, 255, 255)", "rgb(0, 0, 0)", "rgb(255, 255, 255)"]));
    browser.value("dispatchEvent(new Event('afterprint'))");
    let open = browser.value("document.querySelectorAll('details[open]').length");
    assert_eq!(open, Value::from(0), "as the reader left it");
}
