//! The kinds of values that this sink writes, as `pg_type` numbers the types that hold them.
//!
//! Object ids of built-in types are fixed in every Postgres (src/include/catalog/pg_type.dat); type modifiers are read as `format_type` reads them.

/// How one value of a column is read and encoded, with the type's modifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// 16 bits.
    SmallInt,
    /// 32 bits.
    Integer,
    /// 64 bits.
    BigInt,
    /// 32 bits without a sign.
    Oid,
    /// 32-bit float.
    Real,
    /// 64-bit float.
    Double,
    /// Exact, with the bounds of `numeric(precision, scale)` when the column has them.
    Numeric(Option<NumericBounds>),
    /// Unbounded text.
    Text,
    /// Text of at most this many characters.
    Varchar(Option<u32>),
    /// Text of this many characters, filled up with blanks that mean nothing.
    Char(Option<u32>),
    /// Text of the extension citext: kept as it is, compared without regard to case.
    Citext,
    /// `"char"`: one byte.
    OneByte,
    /// An identifier of at most 63 bytes.
    Name,
    /// A label of an enum; which there are, only the server knows at any moment.
    Label,
    /// Bytes.
    Bytea,
    /// True or false.
    Boolean,
    /// 128 bits.
    Uuid,
    /// An instant, with this many digits of a second.
    TimestampTz(u8),
    /// A wall time, with this many digits of a second.
    Timestamp(u8),
    /// A day.
    Date,
    /// A time of day, with this many digits of a second.
    Time(u8),
    /// A time of day and an offset, with this many digits of a second.
    TimeTz(u8),
    /// Months, days and microseconds, each for itself.
    Interval(IntervalBounds),
    /// An address with the length of its network.
    Inet,
    /// A network.
    Cidr,
    /// 48 bits.
    MacAddr,
    /// 64 bits.
    MacAddr8,
    /// This many bits; any number as `bit` without a length in the catalog.
    Bit(Option<u32>),
    /// At most this many bits.
    Varbit(Option<u32>),
    /// JSON kept as text.
    Json,
    /// JSON taken apart.
    Jsonb,
    /// What this version does not write, but for NULL.
    Unwritten,
}

/// `numeric(precision, scale)`; the scale may be negative from Postgres 15 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NumericBounds {
    /// Decimal digits in all.
    pub(crate) precision: i64,
    /// Decimal digits behind the point.
    pub(crate) scale: i64,
}

/// `interval hour to minute`, `interval(3)`: what an interval may consist of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IntervalBounds {
    /// The least field that is kept.
    pub(crate) least: IntervalField,
    /// Digits of a second that are kept.
    pub(crate) digits: u8,
}

/// A field of an interval, the greater the longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum IntervalField {
    Second,
    Minute,
    Hour,
    Day,
    Month,
    Year,
}

impl Kind {
    /// The kind of a built-in type, when it is supported.
    pub(crate) fn of(type_oid: u32, modifier: i32) -> Option<Self> {
        let precision = u8::try_from(modifier).unwrap_or(6).min(6);
        // Lengths of texts count the four bytes of a header, those of bits do not.
        let characters = u32::try_from(modifier - 4).ok();
        let bits = u32::try_from(modifier).ok();
        Some(match type_oid {
            21 => Self::SmallInt,
            23 => Self::Integer,
            20 => Self::BigInt,
            26 => Self::Oid,
            700 => Self::Real,
            701 => Self::Double,
            1700 => Self::Numeric(numeric_bounds(modifier)),
            25 => Self::Text,
            1043 => Self::Varchar(characters),
            1042 => Self::Char(characters),
            18 => Self::OneByte,
            19 => Self::Name,
            17 => Self::Bytea,
            16 => Self::Boolean,
            2950 => Self::Uuid,
            1184 => Self::TimestampTz(precision),
            1114 => Self::Timestamp(precision),
            1082 => Self::Date,
            1083 => Self::Time(precision),
            1266 => Self::TimeTz(precision),
            1186 => Self::Interval(interval_bounds(modifier)),
            869 => Self::Inet,
            650 => Self::Cidr,
            829 => Self::MacAddr,
            774 => Self::MacAddr8,
            1560 => Self::Bit(bits),
            1562 => Self::Varbit(bits),
            114 => Self::Json,
            3802 => Self::Jsonb,
            _ => return None,
        })
    }
}

/// The bits of a modifier's upper half that name the fields of an interval (src/include/utils/datetime.h), each with the field that it is.
const FIELDS: [(i32, IntervalField); 6] = [
    (12, IntervalField::Second),
    (11, IntervalField::Minute),
    (10, IntervalField::Hour),
    (3, IntervalField::Day),
    (1, IntervalField::Month),
    (2, IntervalField::Year),
];

/// The modifier holds the fields in its upper half and the digits of a second in its lower one; all bits of either mean all of it.
fn interval_bounds(modifier: i32) -> IntervalBounds {
    let (fields, digits) = (modifier >> 16 & 0x7fff, modifier & 0xffff);
    if modifier < 0 {
        return IntervalBounds { least: IntervalField::Second, digits: 6 };
    }
    let least = FIELDS.iter().find(|(bit, _)| fields >> bit & 1 == 1).map(|(_, field)| *field);
    IntervalBounds {
        least: least.unwrap_or(IntervalField::Second),
        digits: u8::try_from(digits).unwrap_or(6).min(6),
    }
}

/// The modifier holds the precision in its upper half and the scale in the lower 11 bits, as a signed number.
fn numeric_bounds(modifier: i32) -> Option<NumericBounds> {
    let packed = modifier.checked_sub(4).filter(|packed| *packed >= 0)?;
    let scale = ((packed & 0x7ff) ^ 0x400) - 0x400;
    Some(NumericBounds { precision: i64::from(packed >> 16), scale: i64::from(scale) })
}

/// Names and object ids of all types that [`Kind::of`] knows, for the documentation; citext has none that is fixed.
pub(super) const BUILT_IN: [(&str, u32); 30] = [
    ("smallint", 21),
    ("integer", 23),
    ("bigint", 20),
    ("numeric", 1700),
    ("real", 700),
    ("double precision", 701),
    ("oid", 26),
    ("boolean", 16),
    ("text", 25),
    ("varchar", 1043),
    ("char", 1042),
    ("citext", 0),
    ("\"char\"", 18),
    ("name", 19),
    ("uuid", 2950),
    ("bytea", 17),
    ("timestamptz", 1184),
    ("timestamp", 1114),
    ("date", 1082),
    ("time", 1083),
    ("timetz", 1266),
    ("interval", 1186),
    ("json", 114),
    ("jsonb", 3802),
    ("inet", 869),
    ("cidr", 650),
    ("macaddr", 829),
    ("macaddr8", 774),
    ("bit", 1560),
    ("varbit", 1562),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modifiers_are_read() {
        let bounds = |precision, scale| Some(Kind::Numeric(Some(NumericBounds { precision, scale })));
        assert_eq!(Kind::of(1700, -1), Some(Kind::Numeric(None)));
        assert_eq!(Kind::of(1700, (12 << 16 | 2) + 4), bounds(12, 2));
        assert_eq!(Kind::of(1700, (3 << 16 | 0x7fe) + 4), bounds(3, -2));
        assert_eq!(Kind::of(1700, (1000 << 16 | 1000) + 4), bounds(1000, 1000));
        assert_eq!(Kind::of(1043, -1), Some(Kind::Varchar(None)));
        assert_eq!(Kind::of(1043, 14), Some(Kind::Varchar(Some(10))));
        assert_eq!(Kind::of(1184, -1), Some(Kind::TimestampTz(6)));
        assert_eq!(Kind::of(1114, 0), Some(Kind::Timestamp(0)));
        assert_eq!(Kind::of(1042, 9), Some(Kind::Char(Some(5))));
        assert_eq!(Kind::of(1560, 3), Some(Kind::Bit(Some(3))));
        assert_eq!(Kind::of(1562, -1), Some(Kind::Varbit(None)));
        assert_eq!(Kind::of(790, -1), None, "money depends on the locale");
        let interval = |least, digits| Some(Kind::Interval(IntervalBounds { least, digits }));
        assert_eq!(Kind::of(1186, -1), interval(IntervalField::Second, 6));
        assert_eq!(Kind::of(1186, 0x7fff << 16 | 3), interval(IntervalField::Second, 3));
        assert_eq!(Kind::of(1186, 0x7fff << 16 | 0xffff), interval(IntervalField::Second, 6));
        assert_eq!(Kind::of(1186, (1 << 2) << 16 | 0xffff), interval(IntervalField::Year, 6));
        assert_eq!(Kind::of(1186, (1 << 2 | 1 << 1) << 16 | 0xffff), interval(IntervalField::Month, 6));
        assert_eq!(Kind::of(1186, (1 << 3 | 1 << 10) << 16 | 0xffff), interval(IntervalField::Hour, 6));
        assert_eq!(Kind::of(1186, (1 << 11 | 1 << 12) << 16 | 2), interval(IntervalField::Second, 2));
    }

    #[test]
    fn every_kind_is_in_the_list() {
        let listed: Vec<u32> = BUILT_IN.iter().map(|(_, oid)| *oid).filter(|oid| *oid != 0).collect();
        let mut known: Vec<u32> = (0..10_000).filter(|oid| Kind::of(*oid, -1).is_some()).collect();
        known.sort_unstable_by_key(|oid| listed.iter().position(|listed| listed == oid));
        assert_eq!(listed, known);
    }
}
