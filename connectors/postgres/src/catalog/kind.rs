//! The types that this sink writes, as `pg_type` numbers them.
//!
//! Object ids of built-in types are fixed in every Postgres (src/include/catalog/pg_type.dat); type modifiers are read as `format_type` reads them.

/// A supported column type with its modifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// 16 bits.
    SmallInt,
    /// 32 bits.
    Integer,
    /// 64 bits.
    BigInt,
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
    /// JSON kept as text.
    Json,
    /// JSON taken apart.
    Jsonb,
}

/// `numeric(precision, scale)`; the scale may be negative from Postgres 15 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NumericBounds {
    /// Decimal digits in all.
    pub(crate) precision: i64,
    /// Decimal digits behind the point.
    pub(crate) scale: i64,
}

impl Kind {
    /// The kind of a built-in type, when it is supported.
    pub(crate) fn of(type_oid: u32, modifier: i32) -> Option<Self> {
        let precision = u8::try_from(modifier).unwrap_or(6).min(6);
        Some(match type_oid {
            21 => Self::SmallInt,
            23 => Self::Integer,
            20 => Self::BigInt,
            700 => Self::Real,
            701 => Self::Double,
            1700 => Self::Numeric(numeric_bounds(modifier)),
            25 => Self::Text,
            1043 => Self::Varchar(u32::try_from(modifier - 4).ok()),
            16 => Self::Boolean,
            2950 => Self::Uuid,
            1184 => Self::TimestampTz(precision),
            1114 => Self::Timestamp(precision),
            1082 => Self::Date,
            114 => Self::Json,
            3802 => Self::Jsonb,
            _ => return None,
        })
    }

    /// Object id of the type.
    pub(crate) const fn oid(self) -> u32 {
        self.names().0
    }

    /// Object id of the array of it.
    pub(crate) const fn array_oid(self) -> u32 {
        self.names().1
    }

    /// The type's own name, without a modifier, in SQL.
    pub(crate) const fn sql(self) -> &'static str {
        self.names().2
    }

    const fn names(self) -> (u32, u32, &'static str) {
        match self {
            Self::SmallInt => (21, 1005, "pg_catalog.int2"),
            Self::Integer => (23, 1007, "pg_catalog.int4"),
            Self::BigInt => (20, 1016, "pg_catalog.int8"),
            Self::Real => (700, 1021, "pg_catalog.float4"),
            Self::Double => (701, 1022, "pg_catalog.float8"),
            Self::Numeric(_) => (1700, 1231, "pg_catalog.numeric"),
            Self::Text => (25, 1009, "pg_catalog.text"),
            Self::Varchar(_) => (1043, 1015, "pg_catalog.varchar"),
            Self::Boolean => (16, 1000, "pg_catalog.bool"),
            Self::Uuid => (2950, 2951, "pg_catalog.uuid"),
            Self::TimestampTz(_) => (1184, 1185, "pg_catalog.timestamptz"),
            Self::Timestamp(_) => (1114, 1115, "pg_catalog.timestamp"),
            Self::Date => (1082, 1182, "pg_catalog.date"),
            Self::Json => (114, 199, "pg_catalog.json"),
            Self::Jsonb => (3802, 3807, "pg_catalog.jsonb"),
        }
    }
}

/// The modifier holds the precision in its upper half and the scale in the lower 11 bits, as a signed number.
fn numeric_bounds(modifier: i32) -> Option<NumericBounds> {
    let packed = modifier.checked_sub(4).filter(|packed| *packed >= 0)?;
    let scale = ((packed & 0x7ff) ^ 0x400) - 0x400;
    Some(NumericBounds { precision: i64::from(packed >> 16), scale: i64::from(scale) })
}

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
        assert_eq!(Kind::of(17, -1), None);
    }
}
