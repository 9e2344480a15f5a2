//! The declared types that this sink writes, whatever SQLite itself would put into a column.
//!
//! Invariant: a kind is only given to a declaration under whose affinity SQLite stores what [`crate::value`] binds unaltered. (A column declared `STRING` has
//! numeric affinity and turns '007' into 7; so has `ANY` outside of a STRICT table.)

use oncesink::plan::Takes;

/// What a declared type takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Whole numbers of so many bits.
    Integer(u8),
    /// 64-bit floats.
    Real,
    /// Numbers as they are, within the bounds of `DECIMAL(precision, scale)` when the column has them.
    Numeric(Option<Bounds>),
    /// Text of at most this many characters.
    Text(Option<u32>),
    /// At most this many bytes.
    Blob(Option<u32>),
    /// 0 or 1.
    Boolean,
    /// `2026-11-30`
    Date,
    /// `23:59:59.123456`, with this many digits of a second.
    Time(u8),
    /// A wall time, with this many digits of a second.
    Timestamp(u8),
    /// An instant in UTC, with this many digits of a second.
    TimestampTz(u8),
    /// Hyphenated, in lower case.
    Uuid,
    /// A JSON document as text.
    Json,
    /// Each value in its own storage class.
    Any,
}

/// `DECIMAL(precision, scale)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Decimal digits in all.
    pub(crate) precision: u32,
    /// Decimal digits behind the point.
    pub(crate) scale: u32,
}

/// Digits of a second where a type names none.
const DIGITS: u8 = 6;

/// Declared types by their names in upper case, without what stands in parentheses.
pub(crate) const NAMES: [(&str, Kind); 42] = [
    ("INTEGER", Kind::Integer(64)),
    ("INT", Kind::Integer(64)),
    ("BIGINT", Kind::Integer(64)),
    ("INT8", Kind::Integer(64)),
    ("INT4", Kind::Integer(32)),
    ("MEDIUMINT", Kind::Integer(24)),
    ("SMALLINT", Kind::Integer(16)),
    ("INT2", Kind::Integer(16)),
    ("TINYINT", Kind::Integer(8)),
    ("REAL", Kind::Real),
    ("DOUBLE", Kind::Real),
    ("DOUBLE PRECISION", Kind::Real),
    ("FLOAT", Kind::Real),
    ("NUMERIC", Kind::Numeric(None)),
    ("DECIMAL", Kind::Numeric(None)),
    ("TEXT", Kind::Text(None)),
    ("CLOB", Kind::Text(None)),
    ("CHAR", Kind::Text(None)),
    ("CHARACTER", Kind::Text(None)),
    ("NCHAR", Kind::Text(None)),
    ("NATIVE CHARACTER", Kind::Text(None)),
    ("VARCHAR", Kind::Text(None)),
    ("CHARACTER VARYING", Kind::Text(None)),
    ("VARYING CHARACTER", Kind::Text(None)),
    ("NVARCHAR", Kind::Text(None)),
    ("BLOB", Kind::Blob(None)),
    ("BINARY", Kind::Blob(None)),
    ("VARBINARY", Kind::Blob(None)),
    ("BOOLEAN", Kind::Boolean),
    ("BOOL", Kind::Boolean),
    ("DATE", Kind::Date),
    ("TIME", Kind::Time(DIGITS)),
    ("DATETIME", Kind::Timestamp(DIGITS)),
    ("TIMESTAMP", Kind::Timestamp(DIGITS)),
    ("TIMESTAMP WITHOUT TIME ZONE", Kind::Timestamp(DIGITS)),
    ("TIMESTAMPTZ", Kind::TimestampTz(DIGITS)),
    ("TIMESTAMP WITH TIME ZONE", Kind::TimestampTz(DIGITS)),
    ("UUID", Kind::Uuid),
    ("JSON", Kind::Json),
    ("JSONB", Kind::Json),
    ("ANY", Kind::Any),
    ("", Kind::Any),
];

impl Kind {
    /// The kind of a declared type as the catalog writes it; none for one that this sink does not know.
    pub(crate) fn of(declared: &str, strict: bool) -> Option<Self> {
        let (name, arguments) = parts(declared)?;
        let kind = NAMES.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)?;
        if name == "ANY" && !strict {
            return None;
        }
        kind.with(&arguments)
    }

    /// With what stands in parentheses behind the name.
    fn with(self, arguments: &[u32]) -> Option<Self> {
        let digits = |number: u32| u8::try_from(number).ok().filter(|digits| *digits <= DIGITS);
        Some(match (self, arguments) {
            (kind, []) => kind,
            // A width for display, or a precision that no float of SQLite has.
            (Self::Integer(_) | Self::Real, [_]) => self,
            (_, [0, ..]) if !self.is_time() => return None,
            (Self::Numeric(_), [precision]) => {
                Self::Numeric(Some(Bounds { precision: *precision, scale: 0 }))
            }
            (Self::Numeric(_), [precision, scale]) if scale <= precision => {
                Self::Numeric(Some(Bounds { precision: *precision, scale: *scale }))
            }
            (Self::Text(_), [limit]) => Self::Text(Some(*limit)),
            (Self::Blob(_), [limit]) => Self::Blob(Some(*limit)),
            (Self::Time(_), [number]) => Self::Time(digits(*number)?),
            (Self::Timestamp(_), [number]) => Self::Timestamp(digits(*number)?),
            (Self::TimestampTz(_), [number]) => Self::TimestampTz(digits(*number)?),
            _ => return None,
        })
    }

    const fn is_time(self) -> bool {
        matches!(self.takes(), Takes::Time)
    }

    /// What kind of values such a column takes, as far as the file's keys depend on it.
    pub(crate) const fn takes(self) -> Takes {
        match self {
            Self::Date | Self::Time(_) | Self::Timestamp(_) | Self::TimestampTz(_) => Takes::Time,
            Self::Text(_) | Self::Any => Takes::Text,
            Self::Blob(_) => Takes::Bytes,
            Self::Json => Takes::Json,
            Self::Integer(_) | Self::Real | Self::Numeric(_) | Self::Boolean | Self::Uuid => Takes::Plain,
        }
    }

    /// Whether equal values are the same bytes. Documents that are equal can be written differently.
    pub(crate) const fn can_be_key(self) -> bool {
        !matches!(self, Self::Json)
    }
}

/// Name and arguments of `VARCHAR(10)`; none where the arguments are no whole numbers.
fn parts(declared: &str) -> Option<(String, Vec<u32>)> {
    let (name, inside) = match declared.trim().strip_suffix(')').and_then(|open| open.split_once('(')) {
        Some((name, inside)) => (name, Some(inside)),
        None => (declared, None),
    };
    let name = name.split_whitespace().collect::<Vec<_>>().join(" ").to_ascii_uppercase();
    let numbers = inside.iter().flat_map(|inside| inside.split(','));
    let arguments = numbers.map(|number| number.trim().parse().ok()).collect::<Option<Vec<u32>>>()?;
    Some((name, arguments))
}

#[cfg(test)]
mod tests {
    use oncesink::value::Reading;

    use super::*;

    #[test]
    fn declarations_are_read() {
        let numeric = |precision, scale| Some(Kind::Numeric(Some(Bounds { precision, scale })));
        for (declared, expected) in [
            ("integer", Some(Kind::Integer(64))),
            ("INT(11)", Some(Kind::Integer(64))),
            ("tinyint", Some(Kind::Integer(8))),
            ("double  precision", Some(Kind::Real)),
            ("decimal(10, 2)", numeric(10, 2)),
            ("NUMERIC(5)", numeric(5, 0)),
            ("DECIMAL(2,10)", None),
            ("DECIMAL(10,-2)", None),
            ("DECIMAL(0)", None),
            ("varchar(255)", Some(Kind::Text(Some(255)))),
            ("VARCHAR(MAX)", None),
            ("Character Varying (3)", Some(Kind::Text(Some(3)))),
            ("DATETIME(3)", Some(Kind::Timestamp(3))),
            ("DATETIME(9)", None),
            ("timestamp with time zone", Some(Kind::TimestampTz(6))),
            ("DATE(3)", None),
            ("", Some(Kind::Any)),
            ("ANY", None),
            ("STRING", None),
            ("UNSIGNED BIG INT", None),
            ("POINT", None),
        ] {
            assert_eq!(Kind::of(declared, false), expected, "{declared}");
        }
        assert_eq!(Kind::of("any", true), Some(Kind::Any));
    }

    /// As SQLite finds it ("Determination Of Column Affinity").
    fn affinity(declared: &str) -> &'static str {
        let has = |part: &str| declared.contains(part);
        match () {
            () if has("INT") => "integer",
            () if has("CHAR") || has("CLOB") || has("TEXT") => "text",
            () if has("BLOB") || declared.is_empty() => "blob",
            () if has("REAL") || has("FLOA") || has("DOUB") => "real",
            () => "numeric",
        }
    }

    #[test]
    fn no_affinity_alters_what_is_bound() {
        for (name, kind) in NAMES {
            let fine: &[&str] = match kind {
                Kind::Integer(_) => &["integer"],
                Kind::Real => &["real"],
                Kind::Text(_) => &["text"],
                // Neither bytes nor text that is no number are touched by it, and numbers are bound in their own class.
                Kind::Blob(_) | Kind::Date | Kind::Time(_) | Kind::Timestamp(_) | Kind::TimestampTz(_) => {
                    &["blob", "numeric"]
                }
                Kind::Uuid | Kind::Json | Kind::Boolean | Kind::Numeric(_) => &["numeric"],
                // Of STRICT tables, which have no affinity for it.
                Kind::Any if name == "ANY" => continue,
                Kind::Any => &["blob"],
            };
            assert!(fine.contains(&affinity(name)), "{name}");
        }
    }

    /// `as = "..."` that a column may have.
    fn readings(takes: Takes) -> Vec<&'static str> {
        let allowed = |reading| match reading {
            Reading::Epoch(_) => takes == Takes::Time,
            Reading::JsonText => takes == Takes::Text,
            Reading::Base64 | Reading::Hex | Reading::Utf8 => takes == Takes::Bytes,
        };
        Reading::ALL.iter().filter(|(_, reading)| allowed(*reading)).map(|(name, _)| *name).collect()
    }

    #[test]
    fn the_documented_types_and_readings_are_these() {
        let text = include_str!("../../../../docs/types-sqlite.md");
        let rows = text.lines().skip_while(|line| !line.starts_with("| column type | takes | as |")).skip(2);
        let mut documented = Vec::new();
        for row in rows.take_while(|line| line.starts_with('|')) {
            let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
            let names =
                cells[0].split(", ").map(|name| if name == "no type" { "" } else { name.trim_matches('`') });
            let readings: Vec<_> = cells[2].split_whitespace().map(|name| name.trim_matches('`')).collect();
            documented.extend(names.map(|name| (name, readings.clone())));
        }
        let mut known: Vec<_> = NAMES.iter().map(|(name, kind)| (*name, readings(kind.takes()))).collect();
        documented.sort();
        known.sort();
        assert_eq!(documented, known);
    }
}
