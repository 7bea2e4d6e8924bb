//! Frames of RFC 6455 as a client needs them, with as little work as possible: the measured program shall be what the machine
//! is busy with. Fragments, which nothing here is long enough for, are an error.

use anyhow::{bail, ensure};

/// Kinds of frames.
pub(crate) const TEXT: u8 = 1;
pub(crate) const CLOSE: u8 = 8;
pub(crate) const PING: u8 = 9;
pub(crate) const PONG: u8 = 10;

const FINAL: u8 = 0x80;
const MASKED: u8 = 0x80;

/// A frame from the server: its kind, where its payload begins, and where it ends. `None`: more has to be read.
pub(crate) fn first(bytes: &[u8]) -> anyhow::Result<Option<(u8, usize, usize)>> {
    let [kind, length, ..] = bytes else { return Ok(None) };
    ensure!(kind & FINAL != 0 && length & MASKED == 0, "a fragment, or a masked frame");
    let (start, length) = match length {
        126 => match bytes.get(2..4) {
            Some(length) => (4, usize::from(u16::from_be_bytes([length[0], length[1]]))),
            None => return Ok(None),
        },
        127 => bail!("a message that is longer than any expected"),
        short => (2, usize::from(*short)),
    };
    let end = start + length;
    Ok((bytes.len() >= end).then_some((kind & 0x0f, start, end)))
}

/// A frame from a client. The mask is zero, which changes nothing but has to be there.
pub(crate) fn masked(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![FINAL | kind];
    match u8::try_from(payload.len()).ok().filter(|length| *length < 126) {
        Some(length) => frame.push(MASKED | length),
        None => {
            frame.push(MASKED | 126);
            // Nothing here is longer than a call.
            frame.extend_from_slice(&u16::try_from(payload.len()).unwrap_or(u16::MAX).to_be_bytes());
        }
    }
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(payload);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kills: a length that is read before it is there, or at the wrong place.
    #[test]
    fn frames_are_cut_at_their_ends() {
        for (length, head) in [(5, vec![0x81, 5]), (300, vec![0x81, 126, 1, 44])] {
            let bytes = [head.clone(), vec![b'x'; length]].concat();
            assert_eq!(first(&bytes).expect("a frame"), Some((TEXT, head.len(), bytes.len())));
            assert_eq!(first(&bytes[..bytes.len() - 1]).expect("no fault"), None);
            assert_eq!(first(&bytes[..1]).expect("no fault"), None);
        }
        assert!(first(&[0x01, 1, b'x']).is_err(), "a fragment");
    }

    /// Kills: a client's frame without its mask, or with the short length for a long call.
    #[test]
    fn a_clients_frame_is_masked() {
        assert_eq!(masked(PONG, b"hi"), [0x8a, 0x82, 0, 0, 0, 0, b'h', b'i']);
        assert_eq!(masked(TEXT, &[b'x'; 200])[..4], [0x81, 0xfe, 0, 200]);
    }
}
