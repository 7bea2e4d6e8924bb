//! Why a client's socket ends, and the code and words it is closed with. 1005, 1006 and 1015 are for those who saw no
//! code; they are never sent.

use subscriptions::Reason;
use tokio_tungstenite::tungstenite::Utf8Bytes;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

/// Why a socket ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// The client closed it.
    Client,
    /// The client's connection is gone.
    Vanished,
    /// No sign of life since the last ping.
    Silent,
    /// More waits for it than may.
    Slow,
    /// Its message is larger than may be.
    TooLarge,
    /// It broke the protocol.
    Protocol,
    /// A text message was no UTF-8.
    NotText,
    /// Its key is withdrawn, or has expired.
    Unwelcome,
    /// This process is about to go.
    Shutdown,
    /// A subscription was lost with its provider.
    Lost(Reason),
}

impl Why {
    /// The label of the metric.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Why::Client => "client",
            Why::Vanished => "vanished",
            Why::Silent => "silent",
            Why::Slow => "slow",
            Why::TooLarge => "too_large",
            Why::Protocol => "protocol",
            Why::NotText => "not_text",
            Why::Unwelcome => "unwelcome",
            Why::Shutdown => "shutdown",
            Why::Lost(_) => "subscription_lost",
        }
    }

    /// What we close it with; `None` when the client has ended it already.
    pub(super) fn frame(self) -> Option<CloseFrame> {
        let (code, reason) = match self {
            Why::Client | Why::Vanished => return None,
            Why::Silent => (CloseCode::Policy, "no answer to a ping"),
            Why::Slow => (CloseCode::Again, "too slow to take what was sent"),
            Why::TooLarge => (CloseCode::Size, "the message is larger than MAX_BODY_BYTES"),
            Why::Protocol => (CloseCode::Protocol, "not according to RFC 6455"),
            Why::NotText => (CloseCode::Invalid, "a text message must be UTF-8"),
            Why::Unwelcome => (CloseCode::Policy, "the key is not valid any more"),
            Why::Shutdown => (CloseCode::Away, "this proxy is shutting down"),
            Why::Lost(reason) => {
                return Some(CloseFrame { code: CloseCode::Restart, reason: reason.to_string().into() });
            }
        };
        Some(CloseFrame { code, reason: Utf8Bytes::from_static(reason) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_of_ours_has_a_code_that_may_be_sent() {
        for (why, code) in [
            (Why::Silent, 1008),
            (Why::Slow, 1013),
            (Why::TooLarge, 1009),
            (Why::Protocol, 1002),
            (Why::NotText, 1007),
            (Why::Unwelcome, 1008),
            (Why::Shutdown, 1001),
            (Why::Lost(Reason::NothingWorked), 1012),
        ] {
            let frame = why.frame().expect("ours to close");
            assert_eq!(u16::from(frame.code), code, "{why:?}");
            assert!(frame.code.is_allowed() && frame.reason.len() <= 123, "{why:?}: fits a control frame");
        }
        assert_eq!(Why::Client.frame(), None, "kills: a second close after the client's");
    }
}
