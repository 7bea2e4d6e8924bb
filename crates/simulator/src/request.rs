//! What a provider reads out of a request body: calls, their ids verbatim, batch or not. Never answers.

use bytes::Bytes;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// A request body as a provider understands it.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) items: Vec<Item>,
    pub(crate) batch: bool,
    pub(crate) body: Bytes,
}

/// One call of a request, or something that is none.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Call(Call),
    Invalid,
}

/// One JSON-RPC call. Without an id it is a notification.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Call {
    #[serde(default, deserialize_with = "present")]
    id: Option<Box<RawValue>>,
    pub(crate) method: String,
    #[serde(default)]
    pub(crate) params: Value,
}

impl Call {
    /// The id as it was written.
    pub(crate) fn id(&self) -> Option<&str> {
        self.id.as_deref().map(RawValue::get)
    }
}

impl Request {
    /// Reads a body; `None` if it is not JSON.
    pub(crate) fn parse(body: Bytes) -> Option<Self> {
        let batch = body.trim_ascii_start().first() == Some(&b'[');
        let items = if batch {
            serde_json::from_slice::<Vec<Box<RawValue>>>(&body)
                .ok()?
                .iter()
                .map(|raw| Item::parse(raw))
                .collect()
        } else {
            vec![Item::parse(serde_json::from_slice::<&RawValue>(&body).ok()?)]
        };
        Some(Self { items, batch, body })
    }

    /// The calls, without what is none.
    pub(crate) fn calls(&self) -> impl Iterator<Item = &Call> {
        self.items.iter().filter_map(|item| match item {
            Item::Call(call) => Some(call),
            Item::Invalid => None,
        })
    }

    /// The id of a single call.
    pub(crate) fn single_id(&self) -> Option<&str> {
        if self.batch { None } else { self.calls().next().and_then(Call::id) }
    }
}

impl Item {
    fn parse(raw: &RawValue) -> Self {
        serde_json::from_str(raw.get()).map_or(Self::Invalid, Self::Call)
    }
}

/// Tells `"id": null` from no id.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &'static str, expected: Option<&[Option<&str>]>) {
        let request = Request::parse(Bytes::from_static(body.as_bytes()));
        let ids: Option<Vec<_>> =
            request.as_ref().map(|request| request.calls().map(Call::id).collect::<Vec<_>>());
        assert_eq!(ids.as_deref(), expected, "{body}");
    }

    #[test]
    fn ids_are_kept_as_written() {
        check(r#"{"id":1,"method":"a"}"#, Some(&[Some("1")]));
        check(r#"{"id":null,"method":"a"}"#, Some(&[Some("null")]));
        check(r#"{"method":"a"}"#, Some(&[None]));
        check(
            r#"[{"id":1.50,"method":"a"},7,{"id":"\u0031","method":"b"}]"#,
            Some(&[Some("1.50"), Some(r#""\u0031""#)]),
        );
        check(
            r#"{"id":123456789012345678901234567890,"method":"a"}"#,
            Some(&[Some("123456789012345678901234567890")]),
        );
        check("[]", Some(&[]));
        check("", None);
        check("{", None);
    }
}
