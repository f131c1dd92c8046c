//! The form that asks for a token.

use axum::response::Html;
use maud::html;

use super::frame::frame;

/// The form. After the login it leads to `next`; `refused` says why the last token was refused.
pub(crate) fn page(next: &str, refused: Option<&str>) -> Html<String> {
    let main = html! {
        h1 { "Log in" }
        form.login method="post" action="/login" {
            input type="hidden" name="next" value=(next);
            @if let Some(refused) = refused { p.warning #refused role="alert" { (refused) } }
            label for="token" { "Token" }
            input #token type="password" name="token" autocomplete="current-password" required autofocus
                aria-describedby=[refused.map(|_| "refused")];
            button type="submit" { "Log in" }
            p.note { "An operator of this fleet gives tokens, made by " code { "kgfleet fleet token new" } "." }
        }
    };
    frame("Log in", None, None, &main)
}
