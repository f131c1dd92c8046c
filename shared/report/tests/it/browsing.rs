//! A report in a real browser: on screens of all sizes, by keyboard, and on paper.

use std::fs::File;
use std::io::BufWriter;

use domain::Infos;
use harness::browser::{Browser, axe};
use report::Dialogues;
use report::analysis::scheme::{bundled, named};
use report::details::{Details, DialogueDetail};
use report::dialogues::{Column, Exercises, Origin, ReportedDialogue, SetupFact};
use report::html::{ReportPage, write};
use results::llmkgbench::ResultRecord;
use serde_json::{Value, json};
use tasks::{ComparedAnswer, ComparedPart};

const MODELS: usize = 10;

/// Longer than a head of the grid is high.
const LAST_TASK: &str = "RdfFriendCount-turtle-2-whose-label-is-longer-than-a-label-should-be";

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
        all.setup_of(column).note(SetupFact::Sampling, "temperature 0");
        for label in [
            "RdfFriendCount-turtle-1",
            "RdfFriendCount-jsonld-1",
            LAST_TASK,
            "RdfFriendCount-jsonld-2-whose-label-is-longer-than-a-label-should-be",
        ] {
            let task = all.task(label, "RdfFriendCount", &["f1"]);
            for iteration in 0..20_u32 {
                let score = (0.05 * model as f64 + 0.1 * f64::from(iteration % 5)).min(1.0);
                let scores = json!({ "f1": score });
                let answer = format!("{HOSTILE} needle-{model}-{iteration}-{label}");
                let record = json!({
                    "modelId": "GPT--m--m", "taskInfo": { "taskId": "RdfFriendCount", "version": "4.4" }, "scores": scores,
                    "info": Infos::new(), "interactions": [["prompt", "t", format!("Who?{}", "\nand who else?".repeat(40))], ["response", "t", answer]],
                });
                let detail = DialogueDetail::of_result(&ResultRecord::from_value(record).unwrap());
                details.push(detail.compared(compared(iteration)), false).unwrap();
                let scores = scores.as_object().unwrap();
                let mut dialogue = ReportedDialogue::of(column, task, iteration);
                (dialogue.rounds, dialogue.seconds) = (1, Some(1.0));
                dialogue.completion_tokens = Some(100 + 10 * model as u64);
                let outcome = if iteration == 7 { Err("timeout".to_owned()) } else { Ok(scores) };
                all.add(dialogue, &(iteration % 5).to_string(), outcome);
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

/// What a dialogue expected and what was extracted: not the same, the same, or not known.
fn compared(iteration: u32) -> Result<ComparedAnswer, String> {
    let part = |found: &str| ComparedPart {
        what: "list".into(),
        expected: Some("crow\nowl".to_owned()),
        extracted: Some(format!("crow\n{found}")),
        by_line: true,
    };
    let of = |part| ComparedAnswer { place: String::new(), parts: vec![part], reference: None };
    match iteration % 3 {
        0 => Ok(of(part("wren"))),
        1 => Ok(of(part("owl"))),
        _ => Err("the pack is gone".to_owned()),
    }
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
    for (width, dark) in [1440, 768, 390].into_iter().flat_map(|width| [(width, false), (width, true)]) {
        browser.set_appearance(width, dark);
        browser.open(&page);
        browser.keep_picture(&format!("report-{width}-{}", if dark { "dark" } else { "light" }));
        let wide = browser.value("document.documentElement.scrollWidth");
        assert!(wide.as_u64().unwrap() <= u64::from(width), "{wide} wide on {width}");
        assert_eq!(browser.barriers(&axe), json!([]), "{width} wide, dark: {dark}");
        let cut = "[...document.querySelectorAll('#scores .grid thead button')].filter((head) => \
                   head.scrollHeight > head.clientHeight + 1).length";
        assert_eq!(browser.value(cut), 0, "heads that are cut, {width} wide");
        // The marks of the axis stand above those of the bars.
        let sides = "[...document.querySelectorAll('.dots svg')].slice(0, 2).map((drawing) => \
                     [drawing.getBoundingClientRect().left, drawing.getBoundingClientRect().right])";
        let sides = browser.value(sides);
        assert_eq!(sides[0], sides[1], "{width}");
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
    assert_eq!(seen(&mut browser, "#scores thead .score"), 2);
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

/// What the table of dialogues shows in a column of its rows, from the first on.
fn column(browser: &mut Browser, place: u32, rows: u32) -> Vec<String> {
    let texts = browser.value(&format!(
        "[...document.querySelectorAll('#list tbody tr')].slice(0, {rows}).map((row) => row.cells[{place}].textContent)"
    ));
    texts.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

fn found(browser: &mut Browser, words: &str) {
    browser.until(&format!("document.getElementById('found').textContent.startsWith('{words}')"));
}

fn sort_by(browser: &mut Browser, key: &str) {
    browser.value(&format!("document.querySelector('#list th[data-key={key}] button').click()"));
}

fn choose(browser: &mut Browser, field: &str, act: &str) {
    browser.value(&format!(
        "(() => {{ const field = document.querySelector('#choose [name={field}]'); {act}; \
         field.dispatchEvent(new Event('input', {{ bubbles: true }})); }})()"
    ));
}

fn address(browser: &mut Browser) -> String {
    browser.value("location.hash").as_str().unwrap().to_owned()
}

/// Waits for the dialogue at this place of the table.
fn reads(browser: &mut Browser, place: &str) {
    browser.until(&format!(
        "document.querySelector('#viewer .steps span')?.textContent === '{place}' \
         && document.querySelectorAll('#viewer pre').length > 1"
    ));
}

#[test]
fn the_worst_dialogues_stand_first_and_a_click_sorts_by_any_column() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    browser.set_appearance(1440, false);
    browser.open(&report(&folder));
    found(&mut browser, "800 of 800");
    // One of each model on each task has no score, then come the scores from below.
    assert_eq!(column(&mut browser, 6, 40), ["timeout"; 40]);
    assert_eq!(column(&mut browser, 4, 42)[39..], ["–", "0.000", "0.000"]);
    for (key, place, first, last) in [
        ("score", 4, "0.850", "0.850"),
        (
            "model",
            0,
            "a-rather-long-name-of-a-model-of-today-0-1B",
            "a-rather-long-name-of-a-model-of-today-9-512B",
        ),
        ("task", 1, "RdfFriendCount-jsonld-1", LAST_TASK),
        ("number", 3, "19", "0"),
        ("reason", 6, "timeout", ""),
    ] {
        sort_by(&mut browser, key);
        let heading = format!("document.querySelector('#list th[data-key={key}]').getAttribute('aria-sort')");
        let before = browser.value(&heading);
        assert_eq!(column(&mut browser, place, 1), [first], "{key}");
        assert!(address(&mut browser).contains("sort="), "{}", address(&mut browser));
        if key != "score" {
            sort_by(&mut browser, key);
            assert_ne!(browser.value(&heading), before, "{key}");
            assert_eq!(column(&mut browser, place, 1), [last], "{key}");
        }
    }
    assert_eq!(browser.value("document.querySelectorAll('#list th[aria-sort]').length"), 1);
    // The table grows while somebody scrolls.
    let rows =
        |browser: &mut Browser| browser.value("document.querySelectorAll('#list tbody tr').length").as_u64();
    assert_eq!(rows(&mut browser), Some(100));
    browser.value("document.getElementById('list').scrollTo(0, 1e6)");
    browser.until("document.querySelectorAll('#list tbody tr').length === 200");
}

#[test]
fn what_is_chosen_and_read_is_in_the_address_and_comes_back_from_it() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = report(&folder);
    browser.set_appearance(1440, false);
    browser.open(&page);
    found(&mut browser, "800 of 800");
    assert_eq!(address(&mut browser), "", "nothing was chosen");
    browser.value("document.querySelector('#scores tbody td a').click()");
    found(&mut browser, "20 of 800");
    choose(&mut browser, "only", "field.value = 'failed'");
    found(&mut browser, "1 of 800");
    choose(&mut browser, "only", "field.value = 'short'");
    found(&mut browser, "19 of 800");
    sort_by(&mut browser, "number");
    browser.value("document.querySelectorAll('#list tbody tr')[2].click()");
    reads(&mut browser, "3 of 19");
    let told = address(&mut browser);
    let parts = ["column=9", "label=0", "only=short", "sort=-number", "open="];
    assert!(told.starts_with("#dialogues?") && parts.iter().all(|part| told.contains(part)), "{told}");
    let title = browser.value("document.querySelector('#viewer h3').textContent");
    browser.open("about:blank");
    browser.open(&format!("{page}{told}"));
    reads(&mut browser, "3 of 19");
    assert_eq!(browser.value("document.querySelector('#viewer h3').textContent"), title);
    assert_eq!(column(&mut browser, 3, 2), ["19", "18"]);
    assert_eq!(browser.value("document.querySelector('#choose [name=only]').value"), "short");
    assert_eq!(address(&mut browser), told);
    // An address that somebody invented shows what there is.
    browser.value("location.hash = '#dialogues?column=99&sort=nonsense&open=-1&only=x'");
    found(&mut browser, "800 of 800");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_keyboard_opens_dialogues_goes_through_them_and_closes() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = report(&folder);
    for width in [1440, 390] {
        browser.set_appearance(width, false);
        browser.open("about:blank");
        browser.open(&format!("{page}#dialogues?column=0&label=0"));
        found(&mut browser, "20 of 800");
        browser.value("document.querySelector('#list tbody a').focus()");
        browser.press("j");
        browser.press("ArrowDown");
        browser.press("k");
        assert_eq!(browser.value("document.activeElement.closest('tr').rowIndex"), 2, "{width}");
        browser.press("Enter");
        reads(&mut browser, "2 of 20");
        assert_eq!(browser.value("document.activeElement.id"), "viewer");
        for (key, place) in
            [("j", "3 of 20"), ("ArrowRight", "4 of 20"), ("k", "3 of 20"), ("ArrowLeft", "2 of 20")]
        {
            browser.press(key);
            reads(&mut browser, place);
        }
        assert_eq!(seen(&mut browser, "#list"), u64::from(width == 1440), "a phone shows one of both");
        assert_eq!(browser.value("document.querySelector('#list tr[aria-current]').rowIndex"), 2);
        browser.press("k");
        reads(&mut browser, "1 of 20");
        assert_eq!(browser.value("document.querySelector('#viewer .steps button').disabled"), true);
        browser.press("Escape");
        browser.until("document.getElementById('viewer').hidden");
        assert_eq!(browser.value("document.activeElement.closest('tr').rowIndex"), 1, "where one was");
        assert!(!address(&mut browser).contains("open="));
    }
    // In a field, letters are letters.
    browser.value("document.querySelector('#choose [name=words]').focus()");
    browser.press("j");
    assert_eq!(browser.value("document.querySelector('#choose [name=words]').value"), "j");
    assert_eq!(browser.value("document.getElementById('viewer').hidden"), true);
}

#[test]
fn a_dialogue_says_what_was_asked_answered_extracted_and_expected_and_how_its_score_came_about() {
    let Some(axe) = axe() else { return };
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = report(&folder);
    let told = |browser: &mut Browser| {
        let texts = browser.value(
            "[...document.querySelectorAll('#viewer .part')].map((part) => [part.querySelector('h4').textContent, part.innerText])",
        );
        let part =
            |part: &Value| (part[0].as_str().unwrap().to_owned(), part[1].as_str().unwrap().to_owned());
        texts.as_array().unwrap().iter().map(part).collect::<Vec<_>>()
    };
    for (width, dark) in [(1440, false), (1440, true), (768, false), (390, false), (390, true)] {
        browser.set_appearance(width, dark);
        browser.open("about:blank");
        browser.open(&format!("{page}#dialogues?open=3"));
        reads(&mut browser, "225 of 800");
        browser.until("document.getElementById('viewer').dataset.number === '3'");
        let parts = told(&mut browser);
        let part = |heading: &str| {
            &parts.iter().find(|part| part.0 == heading).unwrap_or_else(|| panic!("{parts:?}")).1
        };
        assert!(part("Asked").contains("Who?") && part("Answered").contains("needle-0-3"));
        assert!(part("Extracted list").contains("\nwren") && part("Expected list").contains("\nowl"));
        assert!(part("Difference of list: - expected, + extracted").contains("-owl\n+wren"));
        let how = part("How the score came about");
        assert!(
            how.contains("f1") && how.contains("0.300") && how.contains("f1 stands for the dialogue"),
            "{how}"
        );
        let wide = browser.value("document.documentElement.scrollWidth");
        assert!(wide.as_u64().unwrap() <= u64::from(width), "{wide} wide on {width}");
        assert_eq!(browser.barriers(&axe), json!([]), "{width} wide, dark: {dark}");
    }
    browser.value("location.hash = '#dialogues?open=4'");
    browser.until("document.getElementById('viewer').dataset.number === '4'");
    assert!(told(&mut browser).iter().any(|part| part.0 == "Extracted list, as expected"));
    browser.value("location.hash = '#dialogues?open=5'");
    browser.until("document.getElementById('viewer').dataset.number === '5'");
    let shown = browser.value("document.getElementById('viewer').innerText");
    assert!(shown.as_str().unwrap().contains("not shown: the pack is gone."), "{shown}");
}

#[test]
fn words_are_found_in_hostile_texts_which_stay_texts() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    browser.set_appearance(1440, false);
    browser.open(&report(&folder));
    found(&mut browser, "800 of 800");
    choose(&mut browser, "words", "field.value = 'needle-9-19-RdfFriendCount-turtle-1'");
    found(&mut browser, "No dialogue fits.");
    choose(&mut browser, "texts", "field.checked = true");
    found(&mut browser, "1 of 800");
    browser.value("document.querySelector('#list tbody tr').click()");
    browser.until("document.querySelector('#viewer').textContent.includes('<script>window.hacked = 1')");
    assert_eq!(browser.value("typeof window.hacked"), "undefined");
    assert_eq!(browser.value("document.querySelectorAll('#viewer img, #viewer script').length"), 0);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn paper_cuts_no_column_and_is_white() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    browser.open(&format!("{}#dialogues?open=3", report(&folder)));
    reads(&mut browser, "225 of 800");
    browser.set_print(PAPER);
    browser.value("dispatchEvent(new Event('beforeprint'))");
    browser.keep_picture("report-print");
    let cut = browser.value(
        "[...document.querySelectorAll('.scroll')].filter((box) => box.scrollWidth > document.documentElement.clientWidth)\
         .map((box) => box.getAttribute('aria-label'))",
    );
    assert_eq!(cut, json!([]), "wider than paper");
    assert_eq!(seen(&mut browser, "details:not([open])"), 0);
    assert_eq!(seen(&mut browser, "form, nav, #list, .steps"), 0);
    let folded = "[...document.querySelectorAll('#viewer pre')].filter((text) => text.scrollHeight > text.clientHeight + 1).length";
    assert_eq!(browser.value(folded), 0, "texts are whole on paper");
    let colours = browser.value(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color, \
          getComputedStyle(document.querySelector('svg.kgf .paper')).fill]",
    );
    assert_eq!(colours, json!(["rgb(255, 255, 255)", "rgb(0, 0, 0)", "rgb(255, 255, 255)"]));
    browser.value("dispatchEvent(new Event('afterprint'))");
    let open = browser.value("document.querySelectorAll('details[open]').length");
    assert_eq!(open, Value::from(0), "as the reader left it");
}
