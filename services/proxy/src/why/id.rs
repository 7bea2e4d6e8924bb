//! The number of a request, by which an operator asks for its story.

use http::HeaderValue;

/// Digits of a request's number, with a dash after each of its parts.
const LONGEST_ID: usize = 8 + 1 + 4 + 1 + 16 + 1;

/// The number of a request: the process, the worker and a counter, written as hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestId {
    pub(crate) process: u32,
    pub(crate) worker: u16,
    pub(crate) count: u64,
}

impl RequestId {
    /// As [`Display`](std::fmt::Display) writes it: once per request, and so without what formatting costs.
    pub(crate) fn to_header(self) -> HeaderValue {
        let mut text = Digits { bytes: [b'-'; LONGEST_ID], len: 0 };
        text.push(u64::from(self.process), 8);
        text.push(u64::from(self.worker), 1);
        text.push(self.count, 1);
        HeaderValue::from_bytes(&text.bytes[..text.len - 1]).expect("digits and dashes")
    }
}

/// Hexadecimal numbers, a dash after each.
struct Digits {
    bytes: [u8; LONGEST_ID],
    len: usize,
}

impl Digits {
    /// Adds a number with at least `least` digits.
    fn push(&mut self, number: u64, least: u32) {
        let digits = (u64::BITS - number.leading_zeros()).div_ceil(4).max(least);
        for place in (0..digits).rev() {
            self.bytes[self.len] = b"0123456789abcdef"[(number >> (4 * place)) as usize % 16];
            self.len += 1;
        }
        self.len += 1;
    }
}

impl std::fmt::Display for RequestId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:08x}-{:x}-{:x}", self.process, self.worker, self.count)
    }
}

impl std::str::FromStr for RequestId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<RequestId, Self::Err> {
        let mut parts = text.trim().splitn(3, '-');
        let mut next = || parts.next().unwrap_or("");
        Ok(RequestId {
            process: u32::from_str_radix(next(), 16)?,
            worker: u16::from_str_radix(next(), 16)?,
            count: u64::from_str_radix(next(), 16)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_was_written() {
        let written = RequestId { process: 0xab, worker: 3, count: u64::MAX };
        assert_eq!(written.to_string().parse(), Ok(written));
        // Kills: a header that says another number, digits that are lost or too many.
        for (worker, count) in [(0, 0), (3, 1), (0x10, 0x0f00), (u16::MAX, u64::MAX)] {
            let written = RequestId { process: 0xab, worker, count };
            assert_eq!(written.to_header(), written.to_string());
        }
        for wrong in ["", "x", "1-2", "1-2-zz", "1-2-3-4"] {
            assert!(wrong.parse::<RequestId>().is_err(), "{wrong}");
        }
    }
}
