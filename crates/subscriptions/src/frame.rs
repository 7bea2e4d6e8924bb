//! What a text frame of an upstream is: an answer, a notification, or neither. Read once, kept as slices of the frame.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::action::Payload;

/// A frame that an upstream sent.
#[derive(Clone, Debug)]
pub enum Incoming {
    /// An answer to a call; `id` is raw JSON, `result` is there unless it is an error.
    Answer { id: Bytes, result: Option<Bytes>, frame: Bytes },
    /// Something a subscription told.
    Notification(Notification),
    /// Nothing of the two.
    Neither(Bytes),
}

/// Something an upstream's subscription told.
#[derive(Clone, Debug)]
pub struct Notification {
    /// The upstream's id of the subscription, raw JSON.
    pub subscription: Bytes,
    /// The raw JSON of what was told; `null` when the frame has no result.
    pub result: Bytes,
    pub(crate) payload: Payload,
}

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    subscription: &'a RawValue,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
}

impl Incoming {
    /// Reads a frame.
    #[must_use]
    pub fn read(frame: Bytes) -> Self {
        // An array would be read as the members in their order.
        let is_object = frame.trim_ascii_start().starts_with(b"{");
        let Some(read) = serde_json::from_slice::<Frame<'_>>(&frame).ok().filter(|_| is_object) else {
            return Self::Neither(frame);
        };
        let params = read.params.map(RawValue::get).filter(|params| params.starts_with('{'));
        let told = params.and_then(|params| serde_json::from_str::<Params<'_>>(params).ok());
        if let Some(told) = told {
            return Self::Notification(Notification::cut(&frame, &told));
        }
        match read.id {
            Some(id) => Self::Answer {
                id: slice(&frame, id.get()),
                // `"result": null` is an answer too: only an error has none.
                result: match (read.result, read.error) {
                    (Some(result), _) => Some(slice(&frame, result.get())),
                    (None, Some(_)) => None,
                    (None, None) => Some(Bytes::from_static(b"null")),
                },
                frame: frame.clone(),
            },
            None => Self::Neither(frame),
        }
    }
}

impl Notification {
    fn cut(frame: &Bytes, told: &Params<'_>) -> Self {
        let subscription = slice(frame, told.subscription.get());
        let start = subscription.as_ptr().addr() - frame.as_ptr().addr();
        let payload = Payload::new(frame.slice(..start), frame.slice(start + subscription.len()..));
        let result = told.result.map_or(Bytes::from_static(b"null"), |result| slice(frame, result.get()));
        Self { subscription, result, payload }
    }
}

fn slice(frame: &Bytes, part: &str) -> Bytes {
    frame.slice_ref(part.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::SubscriptionId;

    fn read(text: &str) -> String {
        match Incoming::read(Bytes::copy_from_slice(text.as_bytes())) {
            Incoming::Answer { id, result, .. } => format!("answer {id:?} {result:?}"),
            Incoming::Notification(told) => format!("told {:?} {:?}", told.subscription, told.result),
            Incoming::Neither(_) => "neither".to_owned(),
        }
    }

    // Kills: an answer taken for a notification, a null result taken for an error, garbage taken for anything.
    #[test]
    fn frames_are_told_apart() {
        for (text, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"result":"0x5"}"#, r#"answer b"1" Some(b"\"0x5\"")"#),
            (r#"{"id":"a","result":null}"#, r#"answer b"\"a\"" Some(b"null")"#),
            (r#"{"id":2,"error":{"code":-32005}}"#, r#"answer b"2" None"#),
            (
                r#"{"method":"eth_subscription","params":{"subscription":"0x1","result":{"a":1}}}"#,
                r#"told b"\"0x1\"" b"{\"a\":1}""#,
            ),
            (r#"{"method":"slotNotification","params":{"result":7,"subscription":3}}"#, r#"told b"3" b"7""#),
            (r#"{"method":"x","params":["0x1"]}"#, "neither"),
            (r#"{"id":null,"error":{}}"#, "neither"),
            ("rate limited", "neither"),
            (r#"[1,"0x5"]"#, "neither"),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    // Kills: a payload that loses or doubles bytes around the id.
    #[test]
    fn a_notification_passes_byte_for_byte_but_for_the_id() {
        let text = r#"{"jsonrpc":"2.0","method":"eth_subscription","params":{"x":"0x1", "subscription" : "0x1","result":{"a": 1}}}"#;
        let Incoming::Notification(told) = Incoming::read(Bytes::from_static(text.as_bytes())) else {
            panic!("told")
        };
        let id = SubscriptionId(9);
        let mut out = Vec::new();
        told.payload.write(id, &mut out);
        assert_eq!(String::from_utf8_lossy(&out), text.replace(r#" : "0x1""#, &format!(r#" : "{id}""#)));
    }
}
