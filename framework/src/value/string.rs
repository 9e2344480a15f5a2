//! Text: the characters of a JSON string, or a number or boolean as it is written.
//!
//! Invariant: nothing is cut, trailing blanks included, and no character is replaced: halves of surrogate pairs are faults, and so is U+0000 where the
//! database cannot hold it.

use std::borrow::Cow;

use crate::error::Reason;

use super::{Fault, Reading, wrong_type};

/// What a text column holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextRule {
    /// Most characters.
    pub limit: Option<u32>,
    /// Whether U+0000 can be stored.
    pub null_character: bool,
}

impl TextRule {
    /// Appends the text of a value. With `as = "json-text"` objects and arrays are their JSON.
    ///
    /// # Errors
    /// Another kind of value, a text that is too long, a character that cannot be stored.
    pub fn append(self, raw: &str, reading: Option<Reading>, out: &mut Vec<u8>) -> Result<(), Fault> {
        let start = out.len();
        let mut length_max = raw.len();
        match raw.as_bytes().first() {
            _ if reading == Some(Reading::JsonText) => out.extend_from_slice(raw.as_bytes()),
            Some(b'"') => {
                length_max = length_max.saturating_sub(2);
                unescape_into(raw, out)?;
                // Only an escape can bring it: JSON has no control characters of its own.
                let appended = out.get(start..).unwrap_or_default();
                if !self.null_character && length_max != appended.len() && appended.contains(&0) {
                    return Err(null_character());
                }
            }
            Some(b'{' | b'[') => return Err(wrong_type(raw)),
            _ => out.extend_from_slice(raw.as_bytes()),
        }
        match self.limit {
            // Bytes bound characters from above, so most values need no counting.
            Some(limit)
                if length_max > limit as usize
                    && characters(out.get(start..).unwrap_or_default()) > limit as usize =>
            {
                Err(Fault::new(Reason::TooLong, "a text longer than the column"))
            }
            _ => Ok(()),
        }
    }
}

/// Characters of a text in UTF-8.
pub fn characters(text: &[u8]) -> usize {
    const CONTINUATION: u8 = 0b1000_0000;
    text.iter().filter(|byte| *byte & 0b1100_0000 != CONTINUATION).count()
}

/// The content of a JSON string; borrowed when there is no escape in it.
///
/// # Errors
/// Half of a surrogate pair.
pub fn unescape(raw: &str) -> Result<Cow<'_, str>, Fault> {
    let inner = raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default();
    if !inner.as_bytes().contains(&b'\\') {
        return Ok(Cow::Borrowed(inner));
    }
    let mut out = Vec::with_capacity(inner.len());
    unescape_into(raw, &mut out)?;
    String::from_utf8(out)
        .map(Cow::Owned)
        .map_err(|_| Fault::new(Reason::InvalidUtf8, "a string that is no UTF-8"))
}

/// Appends the content of a JSON string.
///
/// # Errors
/// Half of a surrogate pair.
pub fn unescape_into(raw: &str, out: &mut Vec<u8>) -> Result<(), Fault> {
    let mut rest = raw.as_bytes().get(1..raw.len().saturating_sub(1)).unwrap_or_default();
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        let (plain, escape) = rest.split_at(at);
        out.extend_from_slice(plain);
        rest = match escape {
            [_, b'u', ..] => {
                let (character, rest) = unicode(escape)?;
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                rest
            }
            [_, letter, rest @ ..] => {
                out.push(match letter {
                    b'n' => b'\n',
                    b't' => b'\t',
                    b'r' => b'\r',
                    b'b' => 0x08,
                    b'f' => 0x0c,
                    other => *other,
                });
                rest
            }
            _ => &[],
        };
    }
    out.extend_from_slice(rest);
    Ok(())
}

/// Reads `\uXXXX`, or a pair of them that stands for one character, and what follows.
///
/// # Errors
/// Half of a surrogate pair.
pub fn unicode(bytes: &[u8]) -> Result<(char, &[u8]), Fault> {
    let (first, rest) = hex(bytes)?;
    let code = match first {
        0xd800..0xdc00 => {
            let (second, rest) = hex(rest)?;
            let low = second.checked_sub(0xdc00).filter(|low| *low < 0x400).ok_or_else(lone_surrogate)?;
            (0x10000 + ((first - 0xd800) << 10) + low, rest)
        }
        _ => (first, rest),
    };
    Ok((char::from_u32(code.0).ok_or_else(lone_surrogate)?, code.1))
}

fn hex(bytes: &[u8]) -> Result<(u32, &[u8]), Fault> {
    let [b'\\', b'u', a, b, c, d, rest @ ..] = bytes else {
        return Err(lone_surrogate());
    };
    let mut code = 0;
    for digit in [a, b, c, d] {
        code = code * 16 + char::from(*digit).to_digit(16).ok_or_else(lone_surrogate)?;
    }
    Ok((code, rest))
}

/// A text that the database cannot hold.
pub fn null_character() -> Fault {
    Fault::new(Reason::NullCharacter, "a text with U+0000")
}

fn lone_surrogate() -> Fault {
    Fault::new(Reason::InvalidJson, "a text with half of a surrogate pair, which is no character,")
}
