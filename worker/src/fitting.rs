//! Shortens records that exceed the size limit: their texts are cut, with a mark, until they fit.
//!
//! Values that a dialogue is counted by are never cut: key, scores, usage, times, versions. Reasoning and infos are
//! cut first, because re-evaluation does not need them. Longer texts are cut before shorter ones.

use domain::exchange::Delivery;
use domain::{Record, RunId};
use serde_json::Value;

/// Bytes that every text keeps, in JSON.
const KEPT_BYTES: usize = 4 << 10;

/// Room for a mark, in bytes of JSON.
const MARK_BYTES: usize = 512;

/// Fields of a record whose texts may be cut: first those in the first list, then all.
const SPARE: [&str; 2] = ["reasoning", "infos"];
const TEXTS: [&str; 3] = ["rounds", "outcome", "failed_calls"];

/// Prepares a record for delivery, at most `bytes_max` long.
///
/// # Errors
/// It cannot be serialised.
pub(crate) fn delivery(run: RunId, record: &Record, bytes_max: usize) -> Result<Delivery, serde_json::Error> {
    let whole = Delivery::of(run, record)?;
    if whole.json.len() <= bytes_max {
        return Ok(whole);
    }
    let mut fitting = serde_json::to_value(record)?;
    let mut json = whole.json.to_string();
    for spare in [true, false] {
        let over = json.len().saturating_sub(bytes_max);
        if over > 0 {
            shrink(texts(&mut fitting, spare), over, bytes_max);
            json = serde_json::to_string(&fitting)?;
        }
    }
    if json.len() > bytes_max {
        // There are no long texts, but very many short ones.
        let bytes = fitting["outcome"]["infos"].to_string().len();
        let mark = format!("{bytes} bytes were left out: a record may have {bytes_max} bytes");
        fitting["outcome"]["infos"] = serde_json::json!({ "cut": mark });
        json = serde_json::to_string(&fitting)?;
    }
    tracing::warn!(
        run = %whole.run, key = %whole.key, bytes = whole.json.len(), kept = json.len(),
        "the record is too long; texts of it were cut"
    );
    Ok(Delivery { json: json.into(), ..whole })
}

/// A text of a record, with its path.
struct Text<'a> {
    place: String,
    bytes: usize,
    text: &'a mut String,
}

/// The long texts of a record.
fn texts(record: &mut Value, spare: bool) -> Vec<Text<'_>> {
    let mut texts = Vec::new();
    let Value::Object(fields) = record else { return texts };
    for (name, value) in fields.iter_mut().filter(|(name, _)| TEXTS.contains(&name.as_str())) {
        gather(name.clone(), value, !spare, &mut texts);
    }
    texts
}

fn gather<'a>(place: String, value: &'a mut Value, wanted: bool, texts: &mut Vec<Text<'a>>) {
    match value {
        Value::String(text) if wanted => {
            let bytes = text.chars().map(json_bytes).sum();
            if bytes > KEPT_BYTES {
                texts.push(Text { place, bytes, text });
            }
        }
        Value::Array(values) => {
            for (n, value) in values.iter_mut().enumerate() {
                gather(format!("{place}[{n}]"), value, wanted, texts);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut().filter(|(name, _)| *name != "scores") {
                let wanted = wanted || SPARE.contains(&name.as_str());
                gather(format!("{place}.{name}"), value, wanted, texts);
            }
        }
        _ => {}
    }
}

/// Cuts at least `over` bytes from these texts, if possible: all texts longer than a bound, which is as high as
/// possible, are cut to it.
fn shrink(texts: Vec<Text<'_>>, over: usize, bytes_max: usize) {
    let wanted = over + texts.len() * MARK_BYTES;
    let saved = |bound: usize| texts.iter().map(|text| text.bytes.saturating_sub(bound)).sum::<usize>();
    let (mut low, mut high) = (KEPT_BYTES, texts.iter().map(|text| text.bytes).max().unwrap_or(KEPT_BYTES));
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if saved(middle) >= wanted { low = middle } else { high = middle - 1 }
    }
    for Text { place, text, .. } in texts.into_iter().filter(|text| text.bytes > low) {
        let mut kept_json = 0;
        let end = text.char_indices().find(|(_, c)| {
            kept_json += json_bytes(*c);
            kept_json > low
        });
        let (end, bytes) = (end.map_or(text.len(), |(at, _)| at), text.len());
        text.truncate(end);
        let gone = bytes - end;
        text.push_str(&format!(
            "\n[cut: {gone} of {bytes} bytes of {place}; a record may have {bytes_max} bytes]"
        ));
    }
}

/// Bytes of a character in JSON.
fn json_bytes(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        c => c.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const BYTES_MAX: usize = 1 << 20;

    fn record(rounds: &Value, infos: &Value) -> Record {
        serde_json::from_value(json!({
            "key": {"model": "m", "task": "t", "iteration": 0},
            "attempt": {"id": "id", "generation": 1, "number": 1, "worker": "w"},
            "started_at": "2025-01-01T00:00:00Z",
            "ended_at": "2025-01-01T00:00:01Z",
            "rounds": rounds,
            "outcome": {"state": "scored", "scores": {"f1": 0.30000000000000004}, "infos": infos},
            "provenance": {
                "kgfleet": "0", "sampling": {}, "seed": u64::MAX,
                "task": {"class": "c", "version": "1", "case": "c", "pack": "p", "pack_hash": "h", "scorer": "s"},
                "model": {"connector": "played", "requested": "m"},
            },
        }))
        .unwrap()
    }

    fn round(answer: &str, reasoning: &str) -> Value {
        json!({
            "prompt": {"kind": "first", "text": "why?"},
            "prompted_at": "2025-01-01T00:00:00Z",
            "answer": {"text": answer, "reasoning": reasoning, "usage": {"prompt_tokens": 3}},
            "answered_at": "2025-01-01T00:00:01Z",
        })
    }

    fn cut(record: &Record) -> Record {
        let delivery = delivery("r".into(), record, BYTES_MAX).unwrap();
        assert!(delivery.json.len() <= BYTES_MAX, "{} bytes", delivery.json.len());
        assert!(!delivery.json.contains('\n'));
        serde_json::from_str(&delivery.json).unwrap()
    }

    #[test]
    fn what_fits_is_left_as_it_is() {
        let record = record(&json!([round("an answer", "because")]), &json!({"why": "so"}));
        assert_eq!(
            delivery("r".into(), &record, BYTES_MAX).unwrap(),
            Delivery::of("r".into(), &record).unwrap()
        );
        assert_eq!(cut(&record), record);
    }

    #[test]
    fn reasoning_goes_before_answers_and_says_how_much_of_it_is_gone() {
        let long = "\"ü\n\u{1}".repeat(200_000);
        let whole = record(&json!([round("short", &long), round("an answer", &long)]), &json!({}));
        let kept = cut(&whole);
        assert_eq!(
            (&kept.outcome, &kept.key, &kept.provenance),
            (&whole.outcome, &whole.key, &whole.provenance)
        );
        for (kept, whole) in kept.rounds.iter().zip(&whole.rounds) {
            assert_eq!(kept.answer.text, whole.answer.text);
            assert_eq!(kept.answer.usage, whole.answer.usage);
            let reasoning = kept.answer.reasoning.as_ref().unwrap();
            let (text, mark) = reasoning.rsplit_once("\n[cut: ").unwrap();
            assert!(long.starts_with(text));
            let expected = format!("{} of {} bytes of rounds[", long.len() - text.len(), long.len());
            assert!(mark.starts_with(&expected) && mark.contains("answer.reasoning"), "{mark}");
        }
    }

    #[test]
    fn every_kind_of_text_is_cut_where_it_must_be() {
        let long = "\"".repeat(BYTES_MAX);
        let whole = record(&json!([round(&long, &long), round(&long, &long)]), &json!({"graph": long}));
        let kept = cut(&whole);
        assert!(kept.rounds.iter().all(|round| round.answer.text.contains("[cut: ")));
        let many: Vec<String> = (0..BYTES_MAX).map(|n| n.to_string()).collect();
        let kept = cut(&record(&json!([round("short", "short")]), &json!({ "rows": many })));
        let domain::Outcome::Scored { scores, infos } = &kept.outcome else { panic!() };
        assert_eq!(scores["f1"], 0.30000000000000004);
        assert!(infos["cut"].as_str().unwrap().contains("were left out"), "{infos:?}");
    }

    #[test]
    fn three_answers_of_the_greatest_length_make_a_record_that_is_taken() {
        let quotes = "\"\\".repeat(5 << 20);
        let answer = "x".repeat(10 << 20);
        let rounds = json!([round(&answer, &quotes), round(&answer, &quotes), round(&answer, &quotes)]);
        let delivery =
            delivery("r".into(), &record(&rounds, &json!({})), domain::record::RECORD_BYTES_MAX).unwrap();
        assert!(delivery.json.len() <= domain::record::RECORD_BYTES_MAX);
        let kept: Record = serde_json::from_str(&delivery.json).unwrap();
        assert!(kept.rounds.iter().all(|round| round.answer.text == answer), "answers fit");
    }
}
