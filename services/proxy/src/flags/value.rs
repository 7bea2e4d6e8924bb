//! What a flag's value asks for. Decides what is a limit and what is none; never what a gate's ceiling is.

use serde_json::{Number, Value};
use std::num::NonZeroU32;

/// A whole number of at least 1; `None` for all else: the gate stands at its ceiling.
pub(super) fn limit(value: &Value) -> Option<NonZeroU32> {
    let number = value.as_number()?;
    // Some services know only floating point, and write 40 as 40.0.
    let whole = |number: f64| (number.fract() == 0.0 && number >= 0.0).then_some(number as u64);
    let number = number.as_u64().or_else(|| whole(number.as_f64()?))?;
    NonZeroU32::new(u32::try_from(number).ok()?)
}

/// The value of a flag that its source knows as text only.
pub(super) fn of_text(text: &str) -> Value {
    serde_json::from_str::<Number>(text.trim()).map_or_else(|_| Value::from(text), Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Kills: a cap of zero that closes a gate, a cap that wraps around, and one that is read out of words.
    #[test]
    fn only_a_positive_integer_is_a_limit() {
        for (value, expected) in [
            (json!(40), Some(40)),
            (json!(1), Some(1)),
            (json!(40.0), Some(40)),
            (json!(u32::MAX), Some(u32::MAX)),
            (json!(4_294_967_296_u64), None),
            (json!(4_294_967_297.0), None),
            (json!(1e300), None),
            (json!(0), None),
            (json!(-1), None),
            (json!(-0.0), None),
            (json!(1.5), None),
            (json!("40"), None),
            (json!(true), None),
            (json!(null), None),
            (json!([40]), None),
            (json!({"value": 40}), None),
        ] {
            assert_eq!(limit(&value).map(NonZeroU32::get), expected, "{value}");
        }
    }

    #[test]
    fn text_is_a_number_or_text() {
        for (text, expected) in [
            ("40", json!(40)),
            (" 40\n", json!(40)),
            ("40.0", json!(40.0)),
            ("-1", json!(-1)),
            ("forty", json!("forty")),
            ("40 ", json!(40)),
            ("40x", json!("40x")),
            ("", json!("")),
            ("true", json!("true")),
            ("[40]", json!("[40]")),
        ] {
            assert_eq!(of_text(text), expected, "{text:?}");
        }
    }
}
