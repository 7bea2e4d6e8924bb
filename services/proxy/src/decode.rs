//! Undoes the content coding of an answer, chunk by chunk. Knows gzip, deflate (zlib's or raw), br, zstd;
//! never guesses a coding, and never lets a few bytes inflate without bound.

use std::io::{self, Write};

use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

/// Input taken at once: after so much the caller gets to see what it became.
pub(crate) const SLICE: usize = 4096;

/// What one [`SLICE`] may become. Deflate reaches 4 MiB at most, honest JSON a hundred KiB.
const INFLATED: usize = 16 << 20;

const WINDOW: usize = 4096;

/// A content coding being undone.
pub(crate) struct Decoder(Coding);

enum Coding {
    Identity(Sink),
    Gzip(Box<MultiGzDecoder<Sink>>),
    /// `deflate` before its second byte, which tells zlib's from raw.
    Deflate(Vec<u8>),
    Zlib(Box<ZlibDecoder<Sink>>),
    Raw(Box<DeflateDecoder<Sink>>),
    Brotli(Box<brotli::DecompressorWriter<Sink>>),
    Zstd(Box<zstd::stream::write::Decoder<'static, Sink>>),
}

/// Where a decoder writes to; refuses what grows beyond the bound.
#[derive(Default)]
struct Sink(Vec<u8>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > INFLATED {
            return Err(invalid("inflates beyond its bound"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Decoder {
    /// For a `Content-Encoding`; `None` for one we do not know.
    pub(crate) fn new(content_encoding: &str) -> Option<Decoder> {
        let sink = Sink::default();
        let coding = match content_encoding.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Coding::Identity(sink),
            "gzip" | "x-gzip" => Coding::Gzip(Box::new(MultiGzDecoder::new(sink))),
            "deflate" => Coding::Deflate(Vec::new()),
            "br" => Coding::Brotli(Box::new(brotli::DecompressorWriter::new(sink, WINDOW))),
            "zstd" => Coding::Zstd(Box::new(zstd::stream::write::Decoder::new(sink).ok()?)),
            _ => return None,
        };
        Some(Decoder(coding))
    }

    /// Decodes the next chunk onto the end of `out`. Push at most [`SLICE`] bytes to bound what it becomes.
    ///
    /// # Errors
    /// What was sent is not in this coding, or inflates beyond the bound.
    pub(crate) fn push(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        for slice in chunk.chunks(SLICE) {
            self.write(slice)?;
            self.drain(out);
        }
        Ok(())
    }

    /// Decodes what is still held back. Whether the answer was complete shows in what it became.
    ///
    /// # Errors
    /// As for [`Decoder::push`].
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        match &mut self.0 {
            Coding::Identity(_) | Coding::Deflate(_) => {}
            Coding::Gzip(decoder) => decoder.flush()?,
            Coding::Zlib(decoder) => decoder.flush()?,
            Coding::Raw(decoder) => decoder.flush()?,
            Coding::Brotli(decoder) => decoder.flush()?,
            Coding::Zstd(decoder) => decoder.flush()?,
        }
        self.drain(out);
        Ok(())
    }

    fn write(&mut self, slice: &[u8]) -> io::Result<()> {
        match &mut self.0 {
            Coding::Identity(sink) => sink.write_all(slice),
            Coding::Gzip(decoder) => decoder.write_all(slice),
            Coding::Zlib(decoder) => decoder.write_all(slice),
            Coding::Raw(decoder) => decoder.write_all(slice),
            Coding::Brotli(decoder) => decoder.write_all(slice),
            Coding::Zstd(decoder) => decoder.write_all(slice),
            Coding::Deflate(start) => {
                start.extend_from_slice(slice);
                if start.len() < 2 {
                    return Ok(());
                }
                let start = std::mem::take(start);
                self.0 = if is_zlib(&start) {
                    Coding::Zlib(Box::new(ZlibDecoder::new(Sink::default())))
                } else {
                    Coding::Raw(Box::new(DeflateDecoder::new(Sink::default())))
                };
                self.write(&start)
            }
        }
    }

    fn drain(&mut self, out: &mut Vec<u8>) {
        let sink = match &mut self.0 {
            Coding::Identity(sink) => sink,
            Coding::Deflate(_) => return,
            Coding::Gzip(decoder) => decoder.get_mut(),
            Coding::Zlib(decoder) => decoder.get_mut(),
            Coding::Raw(decoder) => decoder.get_mut(),
            Coding::Brotli(decoder) => decoder.get_mut(),
            Coding::Zstd(decoder) => decoder.get_mut(),
        };
        out.append(&mut sink.0);
    }
}

/// RFC 1950: method 8, and a check over the first two bytes. Servers send either kind as `deflate`.
fn is_zlib(start: &[u8]) -> bool {
    start[0] & 0x0f == 8 && u16::from_be_bytes([start[0], start[1]]).is_multiple_of(31)
}

fn invalid(message: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).expect("a vector");
        encoder.finish().expect("a vector")
    }

    fn zlib(text: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).expect("a vector");
        encoder.finish().expect("a vector")
    }

    fn raw(text: &[u8]) -> Vec<u8> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).expect("a vector");
        encoder.finish().expect("a vector")
    }

    fn br(text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        brotli::CompressorWriter::new(&mut out, 4096, 5, 20).write_all(text).expect("a vector");
        out
    }

    fn zst(text: &[u8]) -> Vec<u8> {
        zstd::encode_all(text, 3).expect("a vector")
    }

    fn decode(coding: &str, bytes: &[u8], size: usize) -> io::Result<Vec<u8>> {
        let mut decoder = Decoder::new(coding).expect("a known coding");
        let mut out = Vec::new();
        for chunk in bytes.chunks(size) {
            decoder.push(chunk, &mut out)?;
        }
        decoder.finish(&mut out)?;
        Ok(out)
    }

    #[test]
    fn every_coding_in_chunks_of_any_size() {
        let text = r#"{"jsonrpc":"2.0","id":1,"result":"0x1"}"#.repeat(400);
        let plain = text.as_bytes();
        let cases = [
            ("gzip", gzip(plain)),
            ("X-GZIP", gzip(plain)),
            ("deflate", zlib(plain)),
            ("deflate", raw(plain)),
            ("br", br(plain)),
            ("zstd", zst(plain)),
            ("identity", plain.to_vec()),
        ];
        for (coding, bytes) in cases {
            for size in [1, 2, 7, 64, bytes.len()] {
                assert_eq!(decode(coding, &bytes, size).expect("valid"), plain, "{coding} by {size}");
            }
        }
    }

    #[test]
    fn an_answer_cut_short_gives_what_there_was() {
        let text = "0123456789abcdef".repeat(4000);
        for (coding, bytes) in [("gzip", gzip(text.as_bytes())), ("br", br(text.as_bytes()))] {
            let out = decode(coding, &bytes[..bytes.len() - 8], 16).expect("no error until its end");
            assert!(text.as_bytes().starts_with(&out), "{coding}");
        }
    }

    #[test]
    fn garbage_is_an_error_and_not_a_panic() {
        for coding in ["gzip", "br", "zstd"] {
            assert!(decode(coding, &[0xff; 64], 64).is_err(), "{coding}");
        }
        assert!(decode("deflate", &[0x78, 0x9c, 0xff, 0xff, 0xff, 0xff], 6).is_err());
    }

    /// Kills a decoder that hands over whatever a bomb becomes.
    #[test]
    fn a_bomb_is_refused() {
        let bomb = zst(&vec![0; 20 << 20]);
        assert!(bomb.len() < 16 << 10, "a bomb is small");
        assert!(decode("zstd", &bomb, SLICE).is_err());
    }

    #[test]
    fn unknown_codings_are_not_guessed() {
        assert!(Decoder::new("compress").is_none());
        assert!(Decoder::new("gzip, br").is_none());
    }
}
