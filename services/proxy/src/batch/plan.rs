//! What is sent upstream for some calls of a batch, and which call an answer's id belongs to.

use crate::exchange::Ask;
use crate::upstream::Codings;
use bytes::Bytes;
use detect::Item;
use jsonrpc::{Call, Malformed};
use std::collections::HashMap;

/// The question for one attempt.
pub(super) struct Plan {
    pub(super) body: Bytes,
    /// The client's own bytes are sent, with the client's own ids.
    pub(super) untouched: bool,
    /// Only notifications: no answer is expected.
    pub(super) silent: bool,
    /// Calls that expect an answer, in the client's order.
    pub(super) asked: Vec<usize>,
    /// Where the call with this id (as sent) stands in the batch.
    positions: HashMap<Box<[u8]>, usize>,
}

impl Plan {
    /// Sends the calls at `open`: as they are if they are the whole batch and their ids are plain and differ, else
    /// with ids 0, 1, 2 ….
    pub(super) fn new(items: &[Result<Call, Malformed>], body: &Bytes, open: &[usize]) -> Plan {
        let call = |at: &usize| items[*at].as_ref().ok().map(|call| (*at, call));
        let calls: Vec<(usize, &Call)> = open.iter().filter_map(call).collect();
        let asked: Vec<usize> =
            calls.iter().filter(|(_, call)| !call.is_notification()).map(|(at, _)| *at).collect();
        let own = own_ids(&calls, body).filter(|_| open.len() == items.len());
        let untouched = own.is_some();
        let (body, positions) = match own {
            Some(positions) => (body.clone(), positions),
            None => numbered(&calls, body),
        };
        Plan { body, untouched, silent: asked.is_empty(), asked, positions }
    }

    /// What is asked of one endpoint.
    pub(super) fn ask(&self) -> Ask<'static> {
        Ask {
            body: self.body.clone(),
            method: None,
            batch: true,
            notification: self.silent,
            codings: Codings::IDENTITY,
            whole: true,
        }
    }

    /// The position in the batch of the call that `item` answers.
    pub(super) fn position(&self, text: &[u8], item: &Item) -> Option<usize> {
        let id = text.get(item.id.clone()?)?;
        let unquoted = id.strip_prefix(b"\"").and_then(|id| id.strip_suffix(b"\"")).unwrap_or(id);
        self.positions.get(id).or_else(|| self.positions.get(unquoted)).copied()
    }
}

/// The client's ids, if they are whole numbers or plain strings and no two are alike.
fn own_ids(calls: &[(usize, &Call)], body: &[u8]) -> Option<HashMap<Box<[u8]>, usize>> {
    let mut positions = HashMap::with_capacity(calls.len());
    for (at, call) in calls.iter().filter(|(_, call)| !call.is_notification()) {
        let id = call.id(body).filter(|id| is_plain(id))?;
        if positions.insert(id.into(), *at).is_some() {
            return None;
        }
    }
    Some(positions)
}

fn is_plain(id: &[u8]) -> bool {
    match id.strip_prefix(b"\"").and_then(|id| id.strip_suffix(b"\"")) {
        Some(text) => text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(byte)),
        None => id.len() <= 15 && (id == b"0" || (id[0] != b'0' && id.iter().all(u8::is_ascii_digit))),
    }
}

fn numbered(calls: &[(usize, &Call)], body: &[u8]) -> (Bytes, HashMap<Box<[u8]>, usize>) {
    let mut sent = Vec::with_capacity(body.len() + 16 * calls.len());
    let mut positions = HashMap::with_capacity(calls.len());
    sent.push(b'[');
    for (number, (at, call)) in calls.iter().enumerate() {
        if number > 0 {
            sent.push(b',');
        }
        if call.is_notification() {
            call.write(body, None, &mut sent);
        } else {
            let id = number.to_string();
            call.write(body, Some(&id), &mut sent);
            positions.insert(id.into_bytes().into(), *at);
        }
    }
    sent.push(b']');
    (sent.into(), positions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jsonrpc::Envelope;

    fn plan(body: &str, open: Option<&[usize]>) -> (Plan, usize) {
        let body = Bytes::copy_from_slice(body.as_bytes());
        let Ok(Envelope::Batch(items)) = jsonrpc::parse(&body, 100) else { panic!("a batch") };
        let all: Vec<usize> = (0..items.len()).filter(|at| items[*at].is_ok()).collect();
        (Plan::new(&items, &body, open.unwrap_or(&all)), items.len())
    }

    #[test]
    fn only_a_whole_batch_with_plain_and_different_ids_is_sent_as_it_is() {
        for (body, untouched) in [
            (r#"[{"id":1,"method":"a"},{"id":"x-2","method":"b"}]"#, true),
            (r#"[{"id":1,"method":"a"},{"id":1,"method":"b"}]"#, false),
            (r#"[{"id":1,"method":"a"},{"id":null,"method":"b"}]"#, false),
            (r#"[{"id":1.0,"method":"a"}]"#, false),
            (r#"[{"id":-1,"method":"a"}]"#, false),
            (r#"[{"id":99999999999999999999,"method":"a"}]"#, false),
            (r#"[{"id":"a\"b","method":"a"}]"#, false),
            (r#"[{"id":1,"method":"a"},{"method":"note"}]"#, true),
            (r#"[{"id":1,"method":"a"},7]"#, false),
        ] {
            assert_eq!(plan(body, None).0.untouched, untouched, "{body}");
        }
    }

    #[test]
    fn a_part_is_numbered_anew() {
        let body = r#"[{"id":"a","method":"m"},{"id":"b","method":"n","params":[1]},{"method":"note"}]"#;
        let (plan, _) = plan(body, Some(&[1, 2]));
        let sent =
            r#"[{"jsonrpc":"2.0","id":0,"method":"n","params":[1]},{"jsonrpc":"2.0","method":"note"}]"#;
        assert_eq!(plan.body, sent);
        assert_eq!(plan.asked, [1]);
    }

    #[test]
    fn a_batch_of_notifications_expects_no_answer() {
        assert!(plan(r#"[{"method":"a"},{"method":"b"}]"#, None).0.silent);
    }
}
