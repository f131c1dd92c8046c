//! Questions to embedders and classifiers.

use serde::Deserialize;

use super::error::ApiError;
use super::request::{missing, parse};

/// What a client wants, whichever of the two paths it uses.
#[derive(Debug)]
pub(crate) struct Pooling {
    /// The first served model when absent.
    pub(crate) model: Option<String>,
    pub(crate) inputs: PoolingInputs,
}

/// At least one text, or the token ids of at least one.
#[derive(Debug, PartialEq)]
pub(crate) enum PoolingInputs {
    Texts(Vec<String>),
    Tokens(Vec<Vec<u32>>),
}

#[derive(Deserialize)]
struct Body {
    model: Option<String>,
    input: Option<Input>,
    encoding_format: Option<String>,
    dimensions: Option<i64>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Input {
    Text(String),
    Texts(Vec<String>),
    Tokens(Vec<u32>),
    TokenLists(Vec<Vec<u32>>),
}

impl Pooling {
    /// Reads the body of a request to `/v1/embeddings` or `/classify`.
    pub(crate) fn read(body: &[u8]) -> Result<Self, ApiError> {
        let body: Body = parse(body)?;
        if let Some(dimensions) = body.dimensions {
            let name = body.model.unwrap_or_default();
            return Err(ApiError::bad_request(&format!(
                "Model '{name}' does not support Matryoshka embeddings; dimensions must be unset (received \
                 dimensions={dimensions})."
            )));
        }
        if let Some(format) = body.encoding_format.filter(|format| format != "float") {
            let problem = "The simulator writes vectors as numbers only.";
            return Err(ApiError::parameter("encoding_format", &format, problem));
        }
        let inputs = match body.input.ok_or_else(|| missing("input"))? {
            Input::Text(text) => PoolingInputs::Texts(vec![text]),
            Input::Texts(texts) if texts.is_empty() => {
                return Err(ApiError::bad_request("You must pass at least one prompt"));
            }
            Input::Texts(texts) => PoolingInputs::Texts(texts),
            Input::Tokens(tokens) => PoolingInputs::Tokens(vec![tokens]),
            Input::TokenLists(lists) if lists.iter().any(Vec::is_empty) => {
                return Err(ApiError::bad_request("The decoder prompt cannot be empty"));
            }
            Input::TokenLists(lists) => PoolingInputs::Tokens(lists),
        };
        Ok(Self { model: body.model, inputs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_texts_or_tokens_alone_or_in_lists() {
        let read = |input: &str| Pooling::read(format!(r#"{{"model":"m","input":{input}}}"#).as_bytes());
        let texts =
            |texts: &[&str]| PoolingInputs::Texts(texts.iter().map(|text| (*text).to_owned()).collect());
        assert_eq!(read(r#""a""#).unwrap().inputs, texts(&["a"]));
        assert_eq!(read(r#"["a",""]"#).unwrap().inputs, texts(&["a", ""]));
        assert_eq!(read("[0,2]").unwrap().inputs, PoolingInputs::Tokens(vec![vec![0, 2]]));
        assert_eq!(read("[[0,2],[1]]").unwrap().inputs, PoolingInputs::Tokens(vec![vec![0, 2], vec![1]]));
        for wrong in ["[]", "[[]]", "7", "[-1]", "null"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
