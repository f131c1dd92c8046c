//! The script, the style sheet and the icon. Their addresses contain a hash of their contents, so browsers cache them
//! for ever.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use domain::text::hex;
use report::html::{SORT_SCRIPT, STYLE};
use sha2::{Digest, Sha256};

/// Hexadecimal digits of a hash in an address.
const DIGITS: usize = 16;

struct Asset {
    name: String,
    end: &'static str,
    kind: &'static str,
    text: String,
}

/// Everything that pages load.
static ASSETS: LazyLock<[Asset; 3]> = LazyLock::new(|| {
    let asset = |(end, kind, text): (&'static str, &'static str, String)| {
        let hash = hex(Sha256::digest(&text));
        Asset { name: format!("{}.{end}", hash.get(..DIGITS).unwrap_or_default()), end, kind, text }
    };
    [
        ("css", "text/css; charset=utf-8", format!("{STYLE}{}", include_str!("assets/page.css"))),
        ("js", "text/javascript; charset=utf-8", format!("{SORT_SCRIPT}{}", include_str!("assets/page.js"))),
        ("svg", "image/svg+xml", include_str!("assets/icon.svg").to_owned()),
    ]
    .map(asset)
});

/// The address of the one whose name ends so: `css`, `js` or `svg`.
pub(crate) fn address(end: &str) -> String {
    let name = ASSETS.iter().find(|asset| asset.end == end).map_or("", |asset| &asset.name);
    format!("/assets/{name}")
}

/// `GET /assets/{name}`.
pub(crate) async fn serve(Path(name): Path<String>) -> Response {
    match ASSETS.iter().find(|asset| asset.name == name) {
        None => StatusCode::NOT_FOUND.into_response(),
        Some(asset) => {
            let headers = [
                (header::CONTENT_TYPE, asset.kind),
                (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
            ];
            (headers, asset.text.as_str()).into_response()
        }
    }
}
