//! Bytes of a string, in the reading that the file names.
//!
//! Must not: guess. A string could be text, base64 or hexadecimal digits, and many are all three.

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::{Fault, Form, Reading, text};
use crate::error::Reason;

/// Padding may be there or not.
const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const USUAL: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// The bytes that a string stands for.
///
/// # Errors
/// No string, one that is not of the named form, or no form named.
pub fn bytes(raw: &str, form: &Form) -> Result<Vec<u8>, Fault> {
    let text = text(raw)?;
    let read = match form.reading {
        Some(Reading::Base64) => USUAL.decode(&*text).or_else(|_| URL.decode(&*text)).ok(),
        Some(Reading::Hex) => hex::decode(text.strip_prefix("\\x").unwrap_or(&text)).ok(),
        Some(Reading::Utf8) => Some(text.into_owned().into_bytes()),
        _ => {
            let what =
                "a string (and no key as says how it stands for bytes: \"base64\", \"hex\" or \"utf8\")";
            return Err(Fault::new(Reason::WrongType, what));
        }
    };
    read.ok_or_else(|| {
        let name = form.reading.map_or("", Reading::name);
        Fault::new(Reason::WrongType, format!("a string that is no {name}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_the_named_form_only() {
        for (reading, raw, expected) in [
            (Some(Reading::Base64), r#""AP8=""#, Ok(vec![0, 255])),
            (Some(Reading::Base64), r#""AP8""#, Ok(vec![0, 255])),
            (Some(Reading::Base64), r#""_-8""#, Ok(vec![255, 239])),
            (Some(Reading::Base64), r#""/+8""#, Ok(vec![255, 239])),
            (Some(Reading::Base64), r#""A""#, Err(Reason::WrongType)),
            (Some(Reading::Base64), r#""AP9""#, Err(Reason::WrongType)),
            (Some(Reading::Hex), r#""00fF""#, Ok(vec![0, 255])),
            (Some(Reading::Hex), r#""\\x00ff""#, Ok(vec![0, 255])),
            (Some(Reading::Hex), r#""0""#, Err(Reason::WrongType)),
            (Some(Reading::Utf8), r#""a\u0000é""#, Ok(vec![b'a', 0, 0xc3, 0xa9])),
            (Some(Reading::Utf8), "1", Err(Reason::WrongType)),
            (None, r#""AP8=""#, Err(Reason::WrongType)),
        ] {
            let form = Form { reading, zone: None };
            assert_eq!(bytes(raw, &form).map_err(|fault| fault.reason), expected, "{reading:?} {raw}");
        }
    }
}
