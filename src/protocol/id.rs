//! Git object ids, of either hash.

use std::fmt;
use std::str::FromStr;

/// A Git object id, sha1 (20 bytes) or sha256 (32 bytes); shown as lower-case hex.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId {
    bytes: [u8; 32],
    len: u8,
}

/// The error for a text that is not an object id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAnObjectId;

impl fmt::Display for NotAnObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a full object id (40 or 64 hexadecimal digits)")
    }
}

impl std::error::Error for NotAnObjectId {}

impl ObjectId {
    /// Returns the id with these raw bytes: 20 (sha1) or 32 (sha256) of them.
    pub fn from_bytes(raw: &[u8]) -> Result<Self, NotAnObjectId> {
        if raw.len() != 20 && raw.len() != 32 {
            return Err(NotAnObjectId);
        }
        let mut bytes = [0; 32];
        bytes[..raw.len()].copy_from_slice(raw);
        Ok(Self { bytes, len: raw.len() as u8 })
    }

    /// Returns the id spelled by these hexadecimal digits.
    pub fn from_hex(hex: &[u8]) -> Result<Self, NotAnObjectId> {
        if hex.len() != 40 && hex.len() != 64 {
            return Err(NotAnObjectId);
        }
        // A look at ten thousand heads reads thirty thousand ids: without a branch for each digit a processor judges many
        // of them at once.
        if !hex.iter().fold(true, |all, b| all & b.is_ascii_hexdigit()) {
            return Err(NotAnObjectId);
        }
        // The low half of a letter counts from 1, and only letters have the bit 0x40.
        let worth = |b: u8| (b & 0xf) + 9 * (b >> 6);
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(hex.chunks_exact(2)) {
            *byte = worth(pair[0]) << 4 | worth(pair[1]);
        }
        Ok(Self { bytes, len: (hex.len() / 2) as u8 })
    }

    /// Returns the raw bytes: 20 or 32.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len as usize]
    }

    /// Returns the first `n` hexadecimal digits, for people.
    pub fn short(&self, n: usize) -> String {
        let mut s = self.to_string();
        s.truncate(n);
        s
    }

    /// True for the id of all zeroes, which Git writes for "no object".
    pub fn is_null(&self) -> bool {
        self.as_bytes().iter().all(|b| *b == 0)
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut hex = [0; 64];
        for (pair, byte) in hex.chunks_exact_mut(2).zip(self.as_bytes()) {
            pair.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
        let hex = &hex[..2 * self.as_bytes().len()];
        f.write_str(std::str::from_utf8(hex).unwrap_or_default())
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for ObjectId {
    type Err = NotAnObjectId;
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        Self::from_hex(s.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K37: sha1 and sha256, in full; Git writes lower case, and reads both.
    #[test]
    fn an_id_has_40_or_64_hexadecimal_digits() {
        for hex in ["0123456789abcdef0123456789abcdef01234567", &"9f".repeat(32)] {
            let id: ObjectId = hex.parse().unwrap();
            assert_eq!(id.to_string(), hex);
            assert_eq!(format!("{id:?}"), hex);
            assert_eq!(hex.to_ascii_uppercase().parse(), Ok(id));
            assert_eq!(ObjectId::from_bytes(id.as_bytes()), Ok(id));
            assert_eq!(id.as_bytes().len(), hex.len() / 2);
        }
        for other in (0..=0xff_u8).filter(|b| !b.is_ascii_hexdigit()) {
            for at in [0, 1, 38, 39] {
                let mut hex = [b'7'; 40];
                hex[at] = other;
                assert_eq!(ObjectId::from_hex(&hex), Err(NotAnObjectId), "{other} at {at}");
            }
        }
        let all: Vec<u8> = (0..20).map(|n| n * 13).collect();
        let id = ObjectId::from_bytes(&all).unwrap();
        assert_eq!(ObjectId::from_hex(id.to_string().to_ascii_uppercase().as_bytes()), Ok(id));
        for bad in ["", "0123456", &"0".repeat(39), &"0".repeat(41), &"g".repeat(40), &"0".repeat(128)] {
            assert_eq!(bad.parse::<ObjectId>(), Err(NotAnObjectId), "{bad}");
        }
        for length in [0, 19, 21, 31, 33, 64] {
            assert_eq!(ObjectId::from_bytes(&vec![1; length]), Err(NotAnObjectId), "{length}");
        }
        assert_eq!(NotAnObjectId.to_string(), "not a full object id (40 or 64 hexadecimal digits)");
    }

    #[test]
    fn a_short_id_is_how_the_whole_one_begins() {
        let id: ObjectId = "0123456789abcdef0123456789abcdef01234567".parse().unwrap();
        assert_eq!(id.short(7), "0123456");
        assert_eq!(id.short(100), id.to_string());
    }

    #[test]
    fn only_the_id_of_all_zeroes_is_null() {
        for length in [20, 32] {
            let mut raw = vec![0; length];
            assert!(ObjectId::from_bytes(&raw).unwrap().is_null());
            raw[length - 1] = 1;
            assert!(!ObjectId::from_bytes(&raw).unwrap().is_null());
        }
    }
}
