//! What jsonb refuses although it is JSON: U+0000, halves of surrogate pairs, numbers beyond numeric. (A json column keeps all of that as text.)
//!
//! Must not: change a byte; what passes is sent as it was received.

use oncesink::value::{Decimal, Fault, null_character, unicode};

use super::numeric;

/// Whether the server will take this value into a jsonb column.
pub(super) fn check(raw: &str) -> Result<(), Fault> {
    let bytes = raw.as_bytes();
    let (escape, exponent) = look(bytes);
    if escape {
        escapes(bytes)?;
    }
    if exponent || bytes.len() > 16_383 {
        numbers(raw)?;
    }
    Ok(())
}

/// Whether there is a backslash, and whether an e follows a digit: only an exponent or thousands of digits can leave the range of numeric, and such a pair is
/// rare outside of numbers. To the end in any case, without a branch: so the machine looks at many bytes at once.
fn look(bytes: &[u8]) -> (bool, bool) {
    let behind = bytes.get(1..).unwrap_or_default();
    bytes.iter().zip(behind).fold((false, false), |(escape, exponent), (byte, next)| {
        let pair = byte.is_ascii_digit() & (*next | 0x20 == b'e');
        (escape | (*byte == b'\\'), exponent | pair)
    })
}

/// Outside strings there is no backslash in JSON.
fn escapes(mut bytes: &[u8]) -> Result<(), Fault> {
    while let Some(at) = bytes.iter().position(|byte| *byte == b'\\') {
        let escape = bytes.get(at..).unwrap_or_default();
        bytes = match escape {
            [_, b'u', ..] => match unicode(escape)? {
                ('\0', _) => return Err(null_character()),
                (_, rest) => rest,
            },
            [_, _, rest @ ..] => rest,
            _ => &[],
        };
    }
    Ok(())
}

fn numbers(raw: &str) -> Result<(), Fault> {
    let bytes = raw.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = string_end(bytes, at),
            b'-' | b'0'..=b'9' => {
                let end = number_end(bytes, at);
                if let Some(number) = raw.get(at..end).and_then(Decimal::parse) {
                    numeric::check(&number, None)?;
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    Ok(())
}

/// Behind the closing quote of the string that opens at `at`.
fn string_end(bytes: &[u8], mut at: usize) -> usize {
    at += 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    at
}

fn number_end(bytes: &[u8], at: usize) -> usize {
    let number = |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
    let length = bytes.get(at..).unwrap_or_default().iter().take_while(|byte| number(byte)).count();
    at + length
}
