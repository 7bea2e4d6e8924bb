//! Decides from an answer's shape: success, notification, refusal, garbage. What a refusal means is the
//! rules' business; a success is decided here and never searched.

use crate::head::{Head, Protocol};
use crate::object::{First, Object, Seen};
use crate::rules::Rules;
use crate::said::Said;
use crate::verdict::{Detail, Judgement, RuleId, Verdict};

/// A complete object, all of it known.
pub(crate) fn whole(rules: &Rules, head: &Head<'_>, object: &Object) -> Judgement {
    if object.error == Seen::Some {
        return refusal(rules, head, object);
    }
    if object.result != Seen::Absent {
        return success(rules, head, object);
    }
    if object.method {
        return unasked(rules, head);
    }
    if object.telling {
        return refusal(rules, head, object);
    }
    no_answer(rules, head, RuleId::NO_RESULT)
}

/// An object too long to be known whole: its first `result` or `error` that is not null decides.
pub(crate) fn by_first(rules: &Rules, head: &Head<'_>, object: &Object) -> Option<Judgement> {
    match object.first? {
        First::Result => Some(success(rules, head, object)),
        First::Error => object.error_complete.then(|| refusal(rules, head, object)),
    }
}

/// The body ends inside the object. What an error said before that still counts.
pub(crate) fn cut(rules: &Rules, head: &Head<'_>, object: &Object) -> Judgement {
    let says = object.error == Seen::Some || object.telling && object.result == Seen::Absent;
    if says && (object.error_complete || !head.may_succeed()) {
        return refusal(rules, head, object);
    }
    no_answer(rules, head, RuleId::TRUNCATED)
}

/// A body that is no JSON.
pub(crate) fn text(rules: &Rules, head: &Head<'_>, body: &[u8]) -> Judgement {
    rules.refusal(head, &Said::from_text(body))
}

/// There is nothing to read: the head alone decides, or else it is a fault.
pub(crate) fn no_answer(rules: &Rules, head: &Head<'_>, why: RuleId) -> Judgement {
    if head.may_succeed() {
        return Judgement::fixed(Verdict::UpstreamFault, why, Detail::None);
    }
    rules.refusal(head, &Said::nothing())
}

fn success(rules: &Rules, head: &Head<'_>, object: &Object) -> Judgement {
    if object.telling {
        // Gateways that answer `"ok": false` or `"status": "0"` put their refusal into `result`.
        let said = Said::from_members(&object.capture.object());
        if said.failed {
            return rules.refusal(head, &said);
        }
    }
    if head.may_succeed() {
        return Judgement::SUCCESS;
    }
    rules.refusal(head, &Said::nothing())
}

fn refusal(rules: &Rules, head: &Head<'_>, object: &Object) -> Judgement {
    rules.refusal(head, &Said::from_members(&object.capture.object()))
}

/// A message with a method: the server's own on a socket, our request echoed anywhere else.
fn unasked(rules: &Rules, head: &Head<'_>) -> Judgement {
    match head.protocol {
        Protocol::Ws if head.may_succeed() => {
            Judgement::fixed(Verdict::Ok, RuleId::NOTIFICATION, Detail::None)
        }
        Protocol::Ws | Protocol::Http => no_answer(rules, head, RuleId::NO_RESULT),
    }
}
