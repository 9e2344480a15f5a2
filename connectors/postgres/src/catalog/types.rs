//! The types behind a table's columns: domains down to what they are made of, arrays down to their elements, names that a statement can spell.
//!
//! Invariant: types without a fixed object id (enums, domains, types of extensions) are known by what the catalog says of them, never by name alone. Labels of
//! enums are not read: one that is added later is the server's to know.

use std::collections::HashMap;

use oncesink::postgres::Tx;
use oncesink::sqlx::postgres::PgRow;
use oncesink::sqlx::postgres::types::Oid;
use oncesink::sqlx::{self, Row};

use super::Kind;
use crate::quote;

/// Every type that a table's columns need, itself, what domains are made of, elements of arrays. What else has elements (a point, an oidvector) is no array.
/// citext is the extension's own; what it takes in binary form is its text.
const TYPES: &str = "
    WITH RECURSIVE needed (oid) AS (
        SELECT a.atttypid FROM pg_catalog.pg_attribute a WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped
        UNION
        SELECT below.oid FROM needed n JOIN pg_catalog.pg_type t ON t.oid = n.oid
         CROSS JOIN LATERAL (VALUES (t.typbasetype), (t.typelem)) AS below (oid) WHERE below.oid <> 0)
    SELECT t.oid AS oid, n.nspname::text AS schema, t.typname::text AS name, t.typtype::text AS class, t.typarray AS array,
           t.typbasetype AS base, t.typtypmod AS base_modifier,
           CASE WHEN t.typinput = 'pg_catalog.array_in'::regproc THEN t.typelem END AS element,
           t.typname = 'citext' AND EXISTS (
               SELECT FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid
                WHERE d.classid = 'pg_catalog.pg_type'::regclass AND d.objid = t.oid AND d.deptype = 'e'
                  AND d.refclassid = 'pg_catalog.pg_extension'::regclass AND e.extname = 'citext') AS is_text
      FROM needed JOIN pg_catalog.pg_type t ON t.oid = needed.oid JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace";

/// The type in which a column's values are sent: the column's own, and for a domain what it is made of, so that the domain's rules are applied where the
/// row is written and no temporary table of ours stands in the way of whoever changes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Type {
    /// How a value is read, or an element of it.
    pub(crate) kind: Kind,
    /// Of an array: the object id of its elements' type, as the server wants it named in front of them.
    pub(crate) element: Option<u32>,
    /// Object id.
    pub(crate) oid: u32,
    /// Object id of the array of it; 0 when there is none: arrays have none, since an array of them would be one of more dimensions.
    pub(crate) array_oid: u32,
    /// Schema and name in SQL, without a modifier, and what tells types of one name apart.
    pub(crate) sql: String,
}

/// A row of [`TYPES`].
#[derive(Debug)]
struct Entry {
    schema: String,
    name: String,
    class: String,
    array: u32,
    base: u32,
    base_modifier: i32,
    element: Option<u32>,
    is_text: bool,
}

/// The first object id that is given out to what users make (FirstNormalObjectId).
const FIRST_OF_USERS: u32 = 16_384;

impl Entry {
    /// The name in SQL. A type that somebody made can make way for another of its name; statements that know the one must not be taken for statements of the
    /// other, and are told apart by their text.
    fn sql(&self, oid: u32) -> String {
        let name = format!("{}.{}", quote::identifier(&self.schema), quote::identifier(&self.name));
        if oid < FIRST_OF_USERS { name } else { format!("{name} /*{oid}*/") }
    }
}

/// The types of a table's columns, by object id.
#[derive(Debug)]
pub(super) struct Types(HashMap<u32, Entry>);

impl Types {
    /// Reads them.
    pub(super) async fn read(tx: &mut Tx, table: Oid) -> Result<Self, sqlx::Error> {
        let rows = sqlx::query(TYPES).bind(table).fetch_all(tx.sql()).await?;
        rows.iter().map(entry).collect::<Result<_, _>>().map(Self)
    }

    /// The type in which values of a column of this type are sent.
    pub(super) fn of(&self, oid: u32, modifier: i32) -> Option<Type> {
        let (oid, modifier) = self.made_of(oid, modifier);
        let entry = self.0.get(&oid)?;
        let kind = match entry.element {
            None => self.scalar(oid, modifier),
            Some(element) => {
                let (element, modifier) = self.made_of(element, modifier);
                self.scalar(element, modifier)
            }
        };
        Some(Type {
            kind: kind.unwrap_or(Kind::Unwritten),
            element: entry.element,
            oid,
            array_oid: entry.array,
            sql: entry.sql(oid),
        })
    }

    /// What a domain is made of in the end; only the last one has a modifier.
    fn made_of(&self, mut oid: u32, mut modifier: i32) -> (u32, i32) {
        while let Some(domain) = self.0.get(&oid).filter(|entry| entry.class == "d") {
            (oid, modifier) = (domain.base, domain.base_modifier);
        }
        (oid, modifier)
    }

    fn scalar(&self, oid: u32, modifier: i32) -> Option<Kind> {
        match self.0.get(&oid)? {
            entry if entry.class == "e" => Some(Kind::Label),
            entry if entry.is_text => Some(Kind::Citext),
            _ => Kind::of(oid, modifier),
        }
    }
}

fn entry(row: &PgRow) -> Result<(u32, Entry), sqlx::Error> {
    let oid = |column: &str| row.try_get::<Oid, _>(column).map(|oid| oid.0);
    let entry = Entry {
        schema: row.try_get("schema")?,
        name: row.try_get("name")?,
        class: row.try_get("class")?,
        array: oid("array")?,
        base: oid("base")?,
        base_modifier: row.try_get("base_modifier")?,
        element: row.try_get::<Option<Oid>, _>("element")?.map(|oid| oid.0),
        is_text: row.try_get("is_text")?,
    };
    Ok((oid("oid")?, entry))
}
