//! An answer as its bytes come in: where it ends, by its head. Content-Length is the only framing known here; the upstream
//! has no other, and a proxy that changed it would be told so.

use anyhow::{Context, bail};
use httparse::{EMPTY_HEADER, Header, Response, Status};

/// More headers than any of the measured programs sends.
const MOST_HEADERS: usize = 32;

/// An answer, or what has come of it.
#[derive(Default)]
pub(crate) struct Answer {
    bytes: Vec<u8>,
    head: Option<Head>,
}

struct Head {
    status: u16,
    length: usize,
    body: usize,
    closes: bool,
}

impl Answer {
    /// Takes what was read. True once the answer is whole.
    pub(crate) fn push(&mut self, read: &[u8]) -> anyhow::Result<bool> {
        self.bytes.extend_from_slice(read);
        if self.head.is_none() {
            self.head = parse(&self.bytes)?;
        }
        let Some(head) = &self.head else { return Ok(false) };
        if self.bytes.len() > head.length + head.body {
            bail!("{} bytes more than Content-Length says", self.bytes.len() - head.length - head.body);
        }
        Ok(self.bytes.len() == head.length + head.body)
    }

    /// The status, and the body as far as it came.
    pub(crate) fn parts(&self) -> (u16, &[u8]) {
        self.head.as_ref().map_or((0, &[]), |head| (head.status, &self.bytes[head.length..]))
    }

    /// Whether the connection ends with this answer.
    pub(crate) fn closes(&self) -> bool {
        self.head.as_ref().is_none_or(|head| head.closes)
    }

    /// Makes room for the next answer, keeping the buffer.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.head = None;
    }
}

fn parse(bytes: &[u8]) -> anyhow::Result<Option<Head>> {
    let mut headers = [EMPTY_HEADER; MOST_HEADERS];
    let mut response = Response::new(&mut headers);
    let Status::Complete(length) = response.parse(bytes).context("reading the answer's head")? else {
        return Ok(None);
    };
    let status = response.code.context("an answer without a status")?;
    let said = value(response.headers, "content-length").context("an answer without Content-Length")?;
    let body = std::str::from_utf8(said)?.trim().parse().context("reading Content-Length")?;
    let closes =
        value(response.headers, "connection").is_some_and(|said| said.eq_ignore_ascii_case(b"close"));
    Ok(Some(Head { status, length, body, closes }))
}

fn value<'a>(headers: &[Header<'a>], name: &str) -> Option<&'a [u8]> {
    headers.iter().find(|header| header.name.eq_ignore_ascii_case(name)).map(|header| header.value)
}

#[cfg(test)]
mod tests {
    use super::Answer;

    const WHOLE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";

    #[test]
    fn an_answer_is_whole_at_its_last_byte_however_it_is_cut() {
        // Kills: judging by the head alone, and forgetting what came before.
        for cut in 1..WHOLE.len() {
            let mut answer = Answer::default();
            assert!(!answer.push(&WHOLE[..cut]).unwrap(), "whole after {cut} bytes");
            assert!(answer.push(&WHOLE[cut..]).unwrap(), "not whole when cut at {cut}");
            assert_eq!(answer.parts(), (200, &b"abc"[..]));
        }
    }

    #[test]
    fn what_has_no_length_or_too_much_of_it_is_an_error() {
        // Kills: taking a missing length for zero, and ignoring bytes that belong to no answer.
        assert!(Answer::default().push(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
        assert!(Answer::default().push(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab").is_err());
    }

    #[test]
    fn the_next_answer_starts_afresh() {
        // Kills: keeping the last answer's head.
        let mut answer = Answer::default();
        assert!(answer.push(WHOLE).unwrap());
        answer.clear();
        assert!(
            answer
                .push(b"HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
                .unwrap()
        );
        assert_eq!(answer.parts().0, 429);
        assert!(answer.closes());
    }
}
