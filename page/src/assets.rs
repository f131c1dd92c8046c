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
    kind: &'static str,
    text: String,
}

/// Everything that pages load.
pub(crate) struct Assets {
    style: Asset,
    script: Asset,
    icon: Asset,
}

pub(crate) static ASSETS: LazyLock<Assets> = LazyLock::new(|| {
    let asset = |end: &str, kind, text: String| {
        let hash = hex(Sha256::digest(&text));
        Asset { name: format!("{}.{end}", hash.get(..DIGITS).unwrap_or_default()), kind, text }
    };
    Assets {
        style: asset("css", "text/css; charset=utf-8", format!("{STYLE}{}", include_str!("assets/page.css"))),
        script: asset(
            "js",
            "text/javascript; charset=utf-8",
            format!("{SORT_SCRIPT}{}", include_str!("assets/page.js")),
        ),
        icon: asset("svg", "image/svg+xml", include_str!("assets/icon.svg").to_owned()),
    }
});

impl Assets {
    pub(crate) fn style(&self) -> String {
        format!("/assets/{}", self.style.name)
    }

    pub(crate) fn script(&self) -> String {
        format!("/assets/{}", self.script.name)
    }

    pub(crate) fn icon(&self) -> String {
        format!("/assets/{}", self.icon.name)
    }
}

/// `GET /assets/{name}`.
pub(crate) async fn serve(Path(name): Path<String>) -> Response {
    let assets = &*ASSETS;
    let found = [&assets.style, &assets.script, &assets.icon].into_iter().find(|asset| asset.name == name);
    match found {
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
