//! The similarity of a repaired document to the expected one.

/// Rescales the similarity `answer`, so that a document as similar as the question (`question`) gives 0.2 and the
/// expected one 1. By rounding, the result may be slightly above 1.
pub(super) fn rescaled(answer: f64, question: f64) -> f64 {
    if answer < question {
        0.2 * answer / question
    } else if question < 1.0 {
        0.2 + 0.8 * (answer - question) / (1.0 - question)
    } else {
        // The question equals the expected document, and so does the answer.
        1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_itself_counts_a_fifth() {
        assert_eq!(rescaled(0.99, 0.99), 0.2);
        assert_eq!(rescaled(1.0, 0.99), 1.0);
        assert_eq!(rescaled(0.0, 0.99), 0.0);
        assert_eq!(rescaled(1.0, 1.0), 1.0);
    }

    #[test]
    fn worked_examples_keep_every_digit() {
        assert_eq!(rescaled(0.972_007_722_007_722, 0.992_118_226_600_985_3), 0.195_945_945_945_945_94);
        assert_eq!(rescaled(0.999_524_940_617_577_2, 0.999_048_525_214_081_8), 0.600_570_071_258_942_8);
    }
}
