//! How clients, endpoints, sockets, calls and subscriptions are told apart. No meaning beyond identity.

use std::fmt::{self, Write};

/// A client's socket, numbered by the caller; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u64);

/// An endpoint of the chain, numbered by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EndpointId(pub u64);

/// An upstream socket, numbered by the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketId(pub u64);

/// A call that the hub makes on an upstream socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// A call that the hub has the caller make through normal dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FetchId(pub u64);

/// Clients who share an upstream subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct GroupId(pub(crate) u64);

/// The id of a client's subscription: ours, unguessable, and the client's for as long as it wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubscriptionId(pub(crate) u128);

impl SubscriptionId {
    /// Characters of an id as it is written, without quotes.
    pub const LENGTH: usize = 34;

    /// Reads an id as we write it; nothing else can be one of ours.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("0x").filter(|digits| digits.len() == Self::LENGTH - 2)?;
        if digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            u128::from_str_radix(digits, 16).ok().map(Self)
        } else {
            None
        }
    }
}

impl SubscriptionId {
    /// As it is written, without quotes. Once for each client that is told something: formatting would cost as much as
    /// the rest of the message.
    pub(crate) fn digits(self) -> [u8; Self::LENGTH] {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = *b"0x00000000000000000000000000000000";
        let nibbles = self.0.to_be_bytes().into_iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
        for (digit, nibble) in text.iter_mut().skip(2).zip(nibbles) {
            *digit = DIGITS[usize::from(nibble)];
        }
        text
    }
}

impl fmt::Display for SubscriptionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.digits().iter().try_for_each(|digit| f.write_char(char::from(*digit)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Kills: digits in another order or of another alphabet.
    #[test]
    fn an_id_is_written_in_hexadecimal() {
        let id = SubscriptionId(0x0123_4567_89ab_cdef_0000_0000_0000_00f0);
        assert_eq!(id.to_string(), "0x0123456789abcdef00000000000000f0");
    }

    // Kills: an id whose leading zeros are dropped, and one that is read in more than one spelling.
    #[test]
    fn an_id_is_read_only_as_it_was_written() {
        let id = SubscriptionId(0x0a);
        let text = id.to_string();
        assert_eq!((text.len(), SubscriptionId::parse(&text)), (SubscriptionId::LENGTH, Some(id)));
        for other in [
            "0xa",
            "0x0000000000000000000000000000000A",
            "0000000000000000000000000000000a",
            "0x+000000000000000000000000000000a",
        ] {
            assert_eq!(SubscriptionId::parse(other), None, "{other}");
        }
    }
}
