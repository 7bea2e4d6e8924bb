//! What became of a request when the connection that had been kept for it closed under it: was it the connection's fault, and
//! can the peer have carried it out? Who may send it again is not decided here.

use std::error::Error;
use std::io::{self, ErrorKind};

/// As far as we know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// Not a byte of it was written.
    Unwritten,
    /// The peer said that it closes and will not look at it (RFC 9113, 6.8).
    Ignored,
    /// It was written, at least in part: it may have been carried out.
    Unknown,
}

/// What a request came to that ended with `error` before a byte of an answer. `None`: its connection did not just close; it
/// was silent for too long, or broke a protocol.
pub(super) fn lost(error: &hyper::Error) -> Option<Lost> {
    if error.is_incomplete_message() {
        return Some(Lost::Unknown);
    }
    if let Some(error) = cause::<h2::Error>(error) {
        let leaves = error.is_go_away() && error.is_remote() && error.reason() == Some(h2::Reason::NO_ERROR);
        return if leaves { Some(Lost::Ignored) } else { error.get_io().and_then(closed) };
    }
    cause::<io::Error>(error).and_then(closed)
}

fn closed(error: &io::Error) -> Option<Lost> {
    let closed = matches!(
        error.kind(),
        ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::BrokenPipe
            | ErrorKind::NotConnected
            | ErrorKind::UnexpectedEof
    );
    closed.then_some(Lost::Unknown)
}

fn cause<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    std::iter::successors(error.source(), |&error| error.source()).find_map(|error| error.downcast_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kills: a timeout or a fault of TLS taken for a connection that closed.
    #[test]
    fn silence_and_nonsense_are_no_closing() {
        for (kind, expected) in [
            (ErrorKind::ConnectionReset, Some(Lost::Unknown)),
            (ErrorKind::BrokenPipe, Some(Lost::Unknown)),
            (ErrorKind::UnexpectedEof, Some(Lost::Unknown)),
            (ErrorKind::TimedOut, None),
            (ErrorKind::InvalidData, None),
            (ErrorKind::HostUnreachable, None),
        ] {
            assert_eq!(closed(&kind.into()), expected, "{kind}");
        }
    }
}
