//! The addresses of pages.

use domain::RunId;
use url::form_urlencoded::{Serializer, byte_serialize};

/// The path of a run's page.
pub(crate) fn path_of(run: &RunId) -> String {
    format!("/runs/{}", byte_serialize(run.as_str().as_bytes()).collect::<String>().replace('+', "%20"))
}

/// A path below a run's with a query.
pub(super) fn path_with(run: &RunId, page: &str, fields: &[(&str, &str)]) -> String {
    let query = Serializer::new(String::new()).extend_pairs(fields).finish();
    format!("{}/{page}?{query}", path_of(run))
}
