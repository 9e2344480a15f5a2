//! Arrays: a JSON array of elements, or rectangular ones within, in the wire form of `array_send`: dimensions, whether NULLs occur, element type, per
//! dimension its length and lower bound, elements with their lengths in front.
//!
//! Invariant: each element is read exactly as a column of its type reads a value; null is NULL. Must not: fill up or flatten what is not rectangular.

use oncesink::Reason;
use oncesink::value::{Fault, Form, Reading, is_null, wrong_type};
use serde_json::value::RawValue;

use super::scalar;
use crate::catalog::Kind;

/// As many dimensions as an array may have (MAXDIM).
const DIMENSIONS_MAX: usize = 6;
/// Where the flag stands that says whether there are NULLs, as of the array's first byte.
const NULLS: std::ops::Range<usize> = 4..8;

/// Appends an array.
pub(super) fn encode(
    kind: Kind,
    element: u32,
    raw: &str,
    form: &Form,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    if !raw.starts_with('[') {
        return Err(wrong_type(raw));
    }
    // Of these an array is one element.
    let whole = matches!(kind, Kind::Json | Kind::Jsonb) || form.reading == Some(Reading::JsonText);
    let elements = split(raw)?;
    let lengths = lengths(&elements, whole)?;
    let start = out.len();
    for word in [lengths.len() as u32, 0, element] {
        out.extend_from_slice(&word.to_be_bytes());
    }
    for length in &lengths {
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&1_i32.to_be_bytes());
    }
    let mut writer = Writer { kind, form, lengths: &lengths, nulls: false, out };
    writer.level(&elements, 1)?;
    if writer.nulls
        && let Some(flag) = out.get_mut(start + NULLS.start..start + NULLS.end)
    {
        flag.copy_from_slice(&1_u32.to_be_bytes());
    }
    Ok(())
}

fn split(raw: &str) -> Result<Vec<&RawValue>, Fault> {
    serde_json::from_str(raw).map_err(|_| wrong_type(raw))
}

/// The length of each dimension, as the first element of each has it; none of the empty array.
fn lengths(elements: &[&RawValue], whole: bool) -> Result<Vec<i32>, Fault> {
    let mut lengths = Vec::new();
    let mut level = elements.to_vec();
    while let Some(first) = level.first().copied() {
        lengths.push(i32::try_from(level.len()).map_err(|_| not_rectangular())?);
        if whole || !first.get().starts_with('[') {
            return Ok(lengths);
        }
        if lengths.len() == DIMENSIONS_MAX {
            return Err(Fault::new(Reason::WrongType, "an array of more than 6 dimensions"));
        }
        level = split(first.get())?;
    }
    if lengths.is_empty() {
        Ok(lengths)
    } else {
        Err(Fault::new(Reason::WrongType, "an array of empty arrays"))
    }
}

struct Writer<'w> {
    kind: Kind,
    form: &'w Form,
    lengths: &'w [i32],
    nulls: bool,
    out: &'w mut Vec<u8>,
}

impl Writer<'_> {
    /// Elements at a depth, counted from 1.
    fn level(&mut self, elements: &[&RawValue], depth: usize) -> Result<(), Fault> {
        for element in elements {
            let raw = element.get();
            if depth == self.lengths.len() {
                self.element(raw)?;
                continue;
            }
            if !raw.starts_with('[') {
                return Err(not_rectangular());
            }
            let below = split(raw)?;
            if self.lengths.get(depth).copied() != i32::try_from(below.len()).ok() {
                return Err(not_rectangular());
            }
            self.level(&below, depth + 1)?;
        }
        Ok(())
    }

    fn element(&mut self, raw: &str) -> Result<(), Fault> {
        if is_null(raw) {
            self.nulls = true;
            self.out.extend_from_slice(&(-1_i32).to_be_bytes());
            return Ok(());
        }
        let start = self.out.len();
        self.out.extend_from_slice(&[0; 4]);
        scalar(self.kind, raw, self.form, self.out).map_err(|fault| {
            match fault.what.strip_prefix("an array") {
                Some("") => not_rectangular(),
                _ => Fault::new(fault.reason, format!("an array with {}", fault.what)),
            }
        })?;
        let length = (self.out.len() - start - 4) as i32;
        if let Some(slot) = self.out.get_mut(start..start + 4) {
            slot.copy_from_slice(&length.to_be_bytes());
        }
        Ok(())
    }
}

fn not_rectangular() -> Fault {
    Fault::new(Reason::WrongType, "an array of arrays that are not all of one length")
}
