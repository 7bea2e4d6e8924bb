//! Flags from a service that speaks OpenFeature's remote evaluation protocol: all of them in one question, and nothing
//! sent twice that has not changed (<https://openfeature.dev/specification/appendix-c/>).

use super::Values;
use crate::upstream::{Connector, Question, ask_alone};
use bytes::Bytes;
use config::SecretUrl;
use http::header::{ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH};
use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::Value;

const PATH: &str = "/ofrep/v1/evaluate/flags";
/// Who the flags are evaluated for: all replicas alike.
const CONTEXT: &str = r#"{"context":{"targetingKey":"headgate"}}"#;
/// The largest answer that is read.
const MOST: usize = 4 << 20;

pub(crate) struct Ofrep {
    connector: Connector,
    url: SecretUrl,
    /// What was read last, and what the service calls it.
    last: Option<(HeaderValue, Values)>,
}

/// The answer to the question for all flags.
#[derive(Deserialize)]
struct Evaluations {
    flags: Vec<Evaluation>,
}

/// One flag; without a value when it could not be evaluated.
#[derive(Deserialize)]
struct Evaluation {
    key: String,
    value: Option<Value>,
}

/// The URL of the bulk evaluation below the one of the settings.
pub(super) fn endpoint(base: &SecretUrl) -> Result<SecretUrl, String> {
    let mut url = base.expose().clone();
    let path = format!("{}{PATH}", url.path().trim_end_matches('/'));
    url.set_path(&path);
    SecretUrl::parse(url.as_str(), &["http", "https"])
}

impl Ofrep {
    pub(super) fn new(url: SecretUrl, connector: Connector) -> Ofrep {
        Ofrep { connector, url, last: None }
    }

    pub(super) async fn read(&mut self) -> Result<Values, String> {
        let mut headers = HeaderMap::new();
        headers.extend(self.last.iter().map(|(tag, _)| (IF_NONE_MATCH, tag.clone())));
        let body = Bytes::from_static(CONTEXT.as_bytes());
        let question = Question { method: Method::POST, url: &self.url, headers, body };
        let reply = ask_alone(&self.connector, question).await?;
        match (reply.response.status(), &self.last) {
            (StatusCode::OK, _) => {}
            (StatusCode::NOT_MODIFIED, Some((_, values))) => return Ok(values.clone()),
            (status, _) => return Err(format!("the service answers {status}")),
        }
        let tag = reply.response.headers().get(ETAG).cloned();
        let values = parse(&reply.whole(MOST).await?)?;
        self.last = tag.map(|tag| (tag, values.clone()));
        Ok(values)
    }
}

fn parse(body: &[u8]) -> Result<Values, String> {
    let all: Evaluations =
        serde_json::from_slice(body).map_err(|error| format!("not an evaluation: {error}"))?;
    Ok(all.flags.into_iter().filter_map(|flag| Some((flag.key, flag.value?))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_question_goes_below_the_url_of_the_settings() {
        for (base, expected) in [
            ("http://flagd:8016", "http://flagd:8016/ofrep/v1/evaluate/flags"),
            ("http://flagd:8016/", "http://flagd:8016/ofrep/v1/evaluate/flags"),
            (
                "https://u:p@flags.example/team/?a=b",
                "https://u:p@flags.example/team/ofrep/v1/evaluate/flags?a=b",
            ),
        ] {
            let base = SecretUrl::parse(base, &["http", "https"]).expect("a URL");
            assert_eq!(endpoint(&base).expect("a URL").expose().as_str(), expected);
        }
    }

    /// Kills: a flag that could not be evaluated and is taken for a value, and an answer of another shape for no flags.
    #[test]
    fn values_are_found() {
        let body = json!({"flags": [
            {"key": "headgate.concurrency.upstream", "value": 40, "reason": "STATIC", "variant": "on", "metadata": {}},
            {"key": "headgate.concurrency.websocket", "errorCode": "PARSE_ERROR", "errorDetails": "x"},
        ], "metadata": {}});
        let expected = Values::from([("headgate.concurrency.upstream".to_owned(), json!(40))]);
        assert_eq!(parse(body.to_string().as_bytes()), Ok(expected));
        for bad in ["", "[]", "{}", r#"{"flags": {}}"#, "<html>"] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
