//! Strings of bits, in the wire form of `bit_send`: the number of bits, then the bits from the left, the last byte filled up with zeros.
//!
//! Invariant: never cut and never filled up to a column's length.

use oncesink::Reason;
use oncesink::value::Fault;

/// Of a column with exactly so many bits.
pub(super) fn exactly(text: &str, length: Option<u32>, out: &mut Vec<u8>) -> Result<(), Fault> {
    match length {
        Some(length) if text.len() > length as usize => Err(too_long()),
        Some(length) if text.len() < length as usize => {
            Err(Fault::new(Reason::WrongType, "a string of fewer bits than the column has"))
        }
        _ => encode(text, out),
    }
}

/// Of a column with at most so many bits.
pub(super) fn at_most(text: &str, limit: Option<u32>, out: &mut Vec<u8>) -> Result<(), Fault> {
    if limit.is_some_and(|limit| text.len() > limit as usize) { Err(too_long()) } else { encode(text, out) }
}

fn encode(text: &str, out: &mut Vec<u8>) -> Result<(), Fault> {
    if !text.bytes().all(|digit| matches!(digit, b'0' | b'1')) {
        return Err(Fault::new(Reason::WrongType, "a string of other characters than 0 and 1"));
    }
    out.extend_from_slice(&(text.len() as i32).to_be_bytes());
    for eight in text.as_bytes().chunks(8) {
        let byte = eight.iter().fold(0, |byte: u8, digit| byte << 1 | (digit - b'0'));
        out.push(byte << (8 - eight.len()));
    }
    Ok(())
}

fn too_long() -> Fault {
    Fault::new(Reason::TooLong, "a string of more bits than the column has")
}
