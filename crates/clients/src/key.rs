//! Keys of clients, known by their SHA-256 only. Decides whether two are the same, in a time that tells nothing; never
//! keeps or prints a key.

use ring::digest::{SHA256, digest};
use std::fmt;
use subtle::ConstantTimeEq;

/// What every stored key begins with.
const SCHEME: &str = "sha256:";

/// The SHA-256 of a key.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyHash([u8; 32]);

/// Why a text is no stored key. Never quotes it: it may be a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadKey {
    /// No scheme before it: this may be the key itself.
    Plain,
    /// Not 64 hexadecimal digits.
    NotAHash,
}

impl KeyHash {
    /// Of a key as a client sends it.
    #[must_use]
    pub fn of(key: &[u8]) -> KeyHash {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest(&SHA256, key).as_ref());
        KeyHash(hash)
    }

    /// Of the text `sha256:<64 hexadecimal digits>`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<KeyHash, BadKey> {
        let digits = text.trim().strip_prefix(SCHEME).ok_or(BadKey::Plain)?.as_bytes();
        let mut hash = [0; 32];
        if digits.len() != 2 * hash.len() {
            return Err(BadKey::NotAHash);
        }
        for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |at: usize| char::from(pair[at]).to_digit(16).ok_or(BadKey::NotAHash);
            *byte = u8::try_from(digit(0)? * 16 + digit(1)?).map_err(|_| BadKey::NotAHash)?;
        }
        Ok(KeyHash(hash))
    }

    /// Compares in constant time.
    #[must_use]
    pub fn is(&self, other: &KeyHash) -> bool {
        self.0.ct_eq(&other.0).into()
    }

    /// Its first bytes, to look it up by. They are of a hash: who can choose them has broken SHA-256.
    pub(crate) fn bucket(&self) -> u64 {
        self.0.iter().take(8).fold(0, |bucket, byte| bucket << 8 | u64::from(*byte))
    }
}

/// As it stands in a clients file.
impl fmt::Display for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SCHEME)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Hashes stay out of logs too: a weak key can be guessed from one.
impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // FIPS 180-2, B.1.
    const ABC: &str = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    /// Kills: another hash, other digits, a comparison of parts.
    #[test]
    fn a_key_is_known_by_its_hash() {
        let abc = KeyHash::of(b"abc");
        assert_eq!(abc.to_string(), ABC);
        assert!(KeyHash::parse(ABC).is_ok_and(|parsed| parsed.is(&abc)));
        assert!(
            KeyHash::parse(&ABC.to_uppercase().replace("SHA", "sha")).is_ok_and(|parsed| parsed.is(&abc))
        );
        let last = KeyHash::parse(&ABC.replace("15ad", "15ae")).expect("a hash");
        assert!(!last.is(&abc) && last.bucket() == abc.bucket(), "kills: comparing the first bytes only");
        assert_eq!(format!("{abc:?}"), "[redacted]");
    }

    #[test]
    fn what_is_no_hash_is_told_apart() {
        for (text, expected) in [
            ("hunter2", BadKey::Plain),
            ("", BadKey::Plain),
            (&ABC[7..], BadKey::Plain),
            ("sha256:", BadKey::NotAHash),
            ("sha256:abc", BadKey::NotAHash),
            (&ABC.replace('b', "g"), BadKey::NotAHash),
            (&format!("{ABC}00"), BadKey::NotAHash),
        ] {
            assert_eq!(KeyHash::parse(text), Err(expected), "{text}");
        }
    }
}
