//! Every plot of a report as a picture: of the right size, not blank, with words, on light ground and on dark. The pictures
//! stay in `target/tmp/pictures`, for people to look at.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use raster::Painter;
use report::Dialogues;
use report::analysis::scheme::{bundled, named};
use report::dialogues::{Column, Exercises, NewDialogue, Origin};
use report::plot::{self, Ground, Svg};
use resvg::tiny_skia::{Pixmap, PremultipliedColorU8};
use serde_json::json;

/// Models of the published run.
const MODELS: usize = 41;

/// Pixels per unit here.
const SCALE: f32 = 1.0;

/// Where pictures stay.
const FOLDER: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/pictures");

/// Papers of the two grounds.
const GROUNDS: [(Ground, [u8; 3]); 2] = [(Ground::Light, [0xff; 3]), (Ground::Dark, [0x16, 0x18, 0x1b])];

/// Models × tasks of every kind that a plot needs, with the names given.
fn dialogues(models: usize, name: impl Fn(usize) -> String) -> Dialogues {
    let mut all = Dialogues::default();
    for model in 0..models {
        let size = [0.5, 1.5, 3.0, 7.0, 14.0, 32.0, 72.0][model % 7];
        let column = all.column(Column {
            model: name(model),
            name: name(model),
            family: ["Llama", "Qwen", "Phi", "Mistral", "Gemma"][model % 5].to_owned(),
            size: Some(size),
            origin: Origin::Published,
            exercises: Exercises::Published,
        });
        let tasks = [
            ("RdfSyntaxFixList-turtle", "RdfSyntaxFixList", &["max", "combined"][..]),
            ("RdfSyntaxFixList-jsonld", "RdfSyntaxFixList", &["max", "combined"][..]),
            ("RdfFriendCount-turtle-1", "RdfFriendCount", &["f1"][..]),
            ("Text2SparqlExecEvalListOrganizational", "Text2SparqlExecEvalList", &["max", "combined"][..]),
        ];
        for (place, (label, class, headline)) in tasks.into_iter().enumerate() {
            let task = all.task(label, class, headline);
            for iteration in 0..10 {
                let score = f64::from((model as u32 * 7 + place as u32 * 3 + iteration * 5) % 11) / 10.0;
                let first = json!({ "combined": score * 0.8, "brevity": 1.0 });
                let best = json!({ "combined": score, "brevity": 1.0 });
                let scores = json!({ "f1": score, "brevity": 1.0, "0": first, "max": best, "meanExt": best });
                all.add(NewDialogue {
                    column,
                    task,
                    case: &(iteration % 5).to_string(),
                    iteration,
                    outcome: Ok(scores.as_object().unwrap()),
                    rounds: 2,
                    prompt_tokens: Some(900),
                    completion_tokens: Some(40 + u64::from(iteration) * model as u64),
                    seconds: Some(1.0 + model as f64),
                    attempt: 1,
                });
            }
        }
    }
    all
}

/// A plot of every kind.
fn plots(all: &Dialogues) -> Vec<(&'static str, Svg)> {
    let compass = named(&bundled(), "semantic").unwrap();
    let columns: Vec<usize> = (0..all.columns.len()).collect();
    vec![
        ("heat", plot::heat(all)),
        ("gains", plot::gains(all)),
        ("cost", plot::cost(all)),
        ("sizes", plot::sizes(all)),
        ("compasses", plot::compasses(all, &compass)),
        ("compass", plot::compass(all, &compass, &columns)),
        ("task", plot::of_task(all, 0)),
    ]
}

fn is(pixel: PremultipliedColorU8, colour: [u8; 3]) -> bool {
    [pixel.red(), pixel.green(), pixel.blue()] == colour && pixel.alpha() == 255
}

/// Pixels in a box that are not the ground's, the box in units of the drawing.
fn inked(picture: &Pixmap, (x, y): (u32, u32), (width, height): (u32, u32), paper: [u8; 3]) -> usize {
    let place = |x: u32, y: u32| picture.pixel(x, y).is_some_and(|pixel| !is(pixel, paper));
    (y..y + height).map(|y| (x..x + width).filter(|x| place(*x, y)).count()).sum()
}

fn picture(painter: &Painter, svg: &Svg, ground: Ground) -> Pixmap {
    let png = painter.png(&svg.on(ground), SCALE).unwrap();
    let picture = Pixmap::decode_png(&png).unwrap();
    let (width, height) = svg.size();
    assert_eq!((f64::from(picture.width()), f64::from(picture.height())), (width, height));
    picture
}

#[test]
fn every_kind_of_plot_is_a_picture_with_marks_and_words_light_and_dark() {
    let all = dialogues(MODELS, |model| format!("Model {model} Instruct 7B"));
    let painter = Painter::new();
    for (name, svg) in plots(&all) {
        for (ground, paper) in GROUNDS {
            let picture = picture(&painter, &svg, ground);
            let whole = (picture.width(), picture.height());
            std::fs::create_dir_all(FOLDER).unwrap();
            picture.save_png(format!("{FOLDER}/{name}-{ground:?}.png")).unwrap();
            assert!(is(picture.pixel(0, 0).unwrap(), paper), "{name}: the ground of {ground:?}");
            let marked = inked(&picture, (0, 0), whole, paper);
            let least = (whole.0 * whole.1) as usize / 200;
            assert!(marked > least, "{name}, {ground:?}: {marked} of {whole:?} pixels");
            // The title stands at (12, 22) with letters 11 units high.
            let words = inked(&picture, (12, 8), (150, 18), paper);
            assert!((200..1_500).contains(&words), "{name}, {ground:?}: the title has {words} pixels");
        }
    }
}

/// Where a text of a drawing ends, which it does at its place.
fn end_of(svg: &str, text: &str) -> (u32, u32) {
    let tag = svg[..svg.find(&format!(">{text}</text>")).unwrap()].rsplit('<').next().unwrap();
    assert!(tag.contains("text-anchor=\"end\""), "{tag}");
    let number = |name: &str| {
        let from = tag.find(name).unwrap() + name.len();
        tag[from..].split('"').next().unwrap().parse::<f64>().unwrap() as u32
    };
    (number(" x=\""), number(" y=\""))
}

#[test]
fn names_of_models_are_drawn_where_they_stand() {
    let painter = Painter::new();
    for name in ["WWWWWWWW", "Mistral", "Größe-8B", "модель", "iiiiiiii"] {
        let all = dialogues(2, |model| if model == 0 { name.to_owned() } else { "other".to_owned() });
        let svg = plot::heat(&all);
        let (x, y) = end_of(&svg.on(Ground::Light), name);
        let words = inked(&picture(&painter, &svg, Ground::Light), (x - 40, y - 10), (40, 12), [0xff; 3]);
        assert!(words > 60, "{name}: {words} pixels before ({x}, {y})");
    }
}

#[test]
fn hostile_names_do_no_harm() {
    let marks = "a\u{301}\u{302}\u{303}\u{489}".repeat(2_000);
    let hostile = [
        "</text></svg><script>alert(1)</script><image href=\"/etc/passwd\"/>".to_owned(),
        "&bomb;]]><!DOCTYPE x>\u{0}\u{1b}[31m\u{202e}\u{2066}\u{fffe}\u{feff}".to_owned(),
        "W".repeat(100_000),
        "👩‍👩‍👧‍👦".repeat(3_000),
        "\u{627}\u{644}\u{639}\u{5d0}".repeat(3_000),
        marks,
        String::new(),
    ];
    let plain = dialogues(hostile.len(), |model| format!("model {model} of a usual length"));
    let all = dialogues(hostile.len(), |model| hostile[model].clone());
    let painter = Painter::new();
    for ((name, svg), (_, tame)) in plots(&all).into_iter().zip(plots(&plain)) {
        picture(&painter, &svg, Ground::Light);
        // Names take the room that there is and no more.
        let (size, usual) = (svg.size(), tame.size());
        assert!(size.0 <= 2.0 * usual.0 && size.1 <= 2.0 * usual.1, "{name}: {size:?} instead of {usual:?}");
    }
}
