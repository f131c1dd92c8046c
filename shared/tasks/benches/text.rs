//! The text rules on sizes of real answers: `cargo bench -p tasks`.

use std::hint::black_box;

use harness::timing::timed;
use tasks::text::difflib::ratio;
use tasks::text::fences::fenced_blocks;
use tasks::text::python::splitlines;

/// A Turtle-like document of about `chars` characters that repeats nothing to the letter.
fn document(chars: usize) -> String {
    let mut text = String::with_capacity(chars + 80);
    let mut number = 7_u32;
    while text.len() < chars {
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        text.push_str(&format!(
            ":item{number:x} a :Thing ; :label \"number {number}\" ; :next :item{} .\n",
            number % 97
        ));
    }
    text
}

fn main() {
    for chars in [1000, 3000] {
        let optimal = document(chars);
        let near = optimal.replacen(" ;", "", 1);
        let far = document(chars + 500).split_off(500);
        let measured = |what: &str, text: &str| {
            timed(&format!("ratio, {chars} characters, {what}"), None, || {
                ratio(black_box(text), black_box(&optimal))
            });
        };
        measured("one edit", &near);
        measured("shifted", &far);
    }
    let answer = format!("Here it is:\n```turtle\n{}```\nThat is all.\n", document(3000));
    timed("fenced blocks, 3000 characters", None, || fenced_blocks(black_box(&answer)));
    timed("splitlines, 3000 characters", None, || splitlines(black_box(&answer)));
}
