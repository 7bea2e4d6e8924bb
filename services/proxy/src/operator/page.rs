//! The page for people at the operator's port: three files, and the headers that keep them to themselves. What the
//! page shows is `/status`; nothing is decided here.

use axum::Router;
use axum::http::header::{
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, get};

/// Nothing from elsewhere, nothing inline, in nobody's frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(super) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/", file("text/html; charset=utf-8", include_str!("page/index.html")))
        .route("/page.css", file("text/css; charset=utf-8", include_str!("page/page.css")))
        .route("/page.js", file("text/javascript; charset=utf-8", include_str!("page/page.js")))
}

fn file<S: Clone + Send + Sync + 'static>(kind: &'static str, text: &'static str) -> MethodRouter<S> {
    get(move || async move { (headers(kind), text).into_response() })
}

fn headers(kind: &'static str) -> [(HeaderName, &'static str); 4] {
    [
        (CONTENT_TYPE, kind),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
    ]
}

#[cfg(test)]
mod tests {
    /// Kills: a page that grows past what a phone on a bad line loads, or that fetches from elsewhere.
    #[test]
    fn the_page_is_small_and_stands_alone() {
        let files =
            [include_str!("page/index.html"), include_str!("page/page.css"), include_str!("page/page.js")];
        assert!(files.iter().map(|file| file.len()).sum::<usize>() < 100_000);
        for outside in ["http://", "https://", "//cdn", "@import", "innerHTML", "style="] {
            assert!(files.iter().all(|file| !file.contains(outside)), "{outside}");
        }
    }
}
