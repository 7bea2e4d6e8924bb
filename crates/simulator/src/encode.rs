//! Content codings of answers. Decides bytes only; whether the asker offered the coding is not its concern.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};

/// A content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

impl Coding {
    /// The token of `Content-Encoding`.
    #[must_use]
    pub fn token(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
        }
    }

    /// `body` in this coding.
    ///
    /// # Errors
    /// When the encoder fails; writing to memory it does not.
    pub fn encode(self, body: &[u8]) -> io::Result<Bytes> {
        match self {
            Self::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
                encoder.write_all(body)?;
                encoder.finish().map(Bytes::from)
            }
            Self::Deflate => {
                let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
                encoder.write_all(body)?;
                encoder.finish().map(Bytes::from)
            }
            Self::Brotli => {
                let mut encoded = Vec::new();
                let mut encoder = brotli::CompressorWriter::new(&mut encoded, 4096, 4, 20);
                encoder.write_all(body)?;
                encoder.flush()?;
                drop(encoder);
                Ok(encoded.into())
            }
            Self::Zstd => zstd::encode_all(body, 1).map(Bytes::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn decode(coding: Coding, body: &[u8]) -> Vec<u8> {
        let mut decoded = Vec::new();
        match coding {
            Coding::Gzip => flate2::read::GzDecoder::new(body).read_to_end(&mut decoded),
            Coding::Deflate => flate2::read::ZlibDecoder::new(body).read_to_end(&mut decoded),
            Coding::Brotli => brotli::Decompressor::new(body, 4096).read_to_end(&mut decoded),
            Coding::Zstd => {
                zstd::Decoder::new(body).and_then(|mut decoder| decoder.read_to_end(&mut decoded))
            }
        }
        .expect("decodes");
        decoded
    }

    #[test]
    fn every_coding_can_be_read_again() {
        let body = "{\"result\":\"0xaaaa\"}".repeat(1000);
        for coding in [Coding::Gzip, Coding::Deflate, Coding::Brotli, Coding::Zstd] {
            let encoded = coding.encode(body.as_bytes()).expect("encodes");
            assert!(encoded.len() < body.len(), "{coding:?}");
            assert_eq!(decode(coding, &encoded), body.as_bytes(), "{coding:?}");
        }
    }
}
