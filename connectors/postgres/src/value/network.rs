//! Addresses of networks and of cards, in the wire forms of `inet_send` and `macaddr_send`.
//!
//! Must not: read a short form (`10.1` for 10.1.0.0), nor make 64 bits of 48: both are guesses of what was meant.

use std::net::IpAddr;

use oncesink::Reason;
use oncesink::value::Fault;

/// How the wire names the families (PGSQL_AF_INET and the one behind it in src/include/utils/inet.h).
const V4: u8 = 2;
const V6: u8 = 3;

/// An address, `/` and the bits of its network when there are fewer than the address has.
pub(super) fn inet(text: &str, out: &mut Vec<u8>) -> Result<(), Fault> {
    let (address, bits) = parse(text).ok_or_else(no_address)?;
    append(address, bits, false, out);
    Ok(())
}

/// A network: no bit of the address beyond its own.
pub(super) fn cidr(text: &str, out: &mut Vec<u8>) -> Result<(), Fault> {
    let (address, bits) = parse(text).ok_or_else(no_address)?;
    let beyond = match address {
        IpAddr::V4(address) => u32::from(address).checked_shl(bits.into()).unwrap_or(0) != 0,
        IpAddr::V6(address) => u128::from(address).checked_shl(bits.into()).unwrap_or(0) != 0,
    };
    if beyond {
        return Err(Fault::new(Reason::WrongType, "an address with bits beyond its network"));
    }
    append(address, bits, true, out);
    Ok(())
}

fn parse(text: &str) -> Option<(IpAddr, u8)> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let all = if address.is_ipv4() { 32 } else { 128 };
    let bits = match bits {
        None => all,
        Some(bits) if bits.bytes().all(|digit| digit.is_ascii_digit()) => bits.parse().ok()?,
        Some(_) => return None,
    };
    (bits <= all).then_some((address, bits))
}

fn append(address: IpAddr, bits: u8, network: bool, out: &mut Vec<u8>) {
    match address {
        IpAddr::V4(address) => {
            out.extend_from_slice(&[V4, bits, network.into(), 4]);
            out.extend_from_slice(&address.octets());
        }
        IpAddr::V6(address) => {
            out.extend_from_slice(&[V6, bits, network.into(), 16]);
            out.extend_from_slice(&address.octets());
        }
    }
}

fn no_address() -> Fault {
    Fault::new(Reason::WrongType, "a string that is no address such as 192.0.2.1/24 or 2001:db8::/32")
}

/// The address of a card, of so many bytes: pairs of digits between colons or hyphens, fours between dots, or all digits together.
pub(super) fn mac<const BYTES: usize>(text: &str, out: &mut Vec<u8>) -> Result<(), Fault> {
    let wrong = || Fault::new(Reason::WrongType, "a string that is no address such as 08:00:2b:01:02:03");
    let (separator, width) = match text.bytes().find(|byte| !byte.is_ascii_hexdigit()) {
        None => (None, 2 * BYTES),
        Some(separator @ (b':' | b'-')) => (Some(separator), 2),
        Some(b'.') => (Some(b'.'), 4),
        Some(_) => return Err(wrong()),
    };
    let parts: Vec<&str> = match separator {
        Some(separator) => text.split(char::from(separator)).collect(),
        None => vec![text],
    };
    let mut bytes = [0; BYTES];
    if parts.iter().any(|part| part.len() != width)
        || hex::decode_to_slice(parts.concat(), &mut bytes).is_err()
    {
        return Err(wrong());
    }
    out.extend_from_slice(&bytes);
    Ok(())
}
