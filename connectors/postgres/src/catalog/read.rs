//! The queries on the catalog, and the errors of a start: each names the object and the remedy.

use oncesink::postgres::Tx;
use oncesink::sqlx::postgres::PgRow;
use oncesink::sqlx::postgres::types::Oid;
use oncesink::sqlx::{self, Row};
use oncesink::{Failure, SinkError};

use super::{Column, Kind, Table, Target};
use crate::quote;
use crate::template::TableName;

/// Every relation that a name could mean; names are bound, never spliced. Without a schema the session's search_path decides.
const RELATION: &str = "
    SELECT c.oid AS oid, n.nspname::text AS schema, c.relname::text AS name, c.relkind::text AS kind, c.relpersistence::text AS persistence,
           has_schema_privilege(n.oid, 'USAGE') AS reachable,
           has_any_column_privilege(c.oid, 'INSERT') AS insertable,
           row_security_active(c.oid) AS row_security,
           EXISTS (SELECT FROM pg_catalog.pg_rewrite r WHERE r.ev_class = c.oid AND r.ev_type = '3') AS rewritten,
           EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid AND t.tgtype & 7 = 7 AND NOT t.tgisinternal) AS filled,
           (SELECT min(l.oid::regclass::text) FROM pg_catalog.pg_partition_tree(c.oid) p JOIN pg_catalog.pg_class l ON l.oid = p.relid
             WHERE c.relkind = 'p' AND (l.relkind = 'f' OR l.relpersistence <> 'p')) AS unfit_partition,
           current_user::text AS role
      FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
     WHERE c.relname::text = $2 AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
       AND CASE WHEN $1::text IS NULL THEN pg_catalog.pg_table_is_visible(c.oid) ELSE n.nspname::text = $1 END";

/// Columns in the table's order. A domain may bring a default of its own.
const COLUMNS: &str = "
    SELECT a.attname::text AS name, a.atttypid AS type_oid, a.atttypmod AS modifier, a.attnotnull AS not_null,
           a.attgenerated::text AS generated, a.attidentity::text AS identity, format_type(a.atttypid, a.atttypmod) AS type_name,
           a.atthasdef OR a.attidentity <> '' OR t.typtype = 'd' AS filled,
           has_column_privilege(a.attrelid, a.attnum, 'INSERT') AS insertable
      FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
     WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped
     ORDER BY a.attnum";

/// Names that differ by case or schema only, for the message.
const SIMILAR: &str = "
    SELECT string_agg(format('%I.%I', s.nspname, s.relname), ', '), current_setting('search_path')
      FROM (SELECT n.nspname, c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
             WHERE lower(c.relname::text) = lower($1) AND c.relkind IN ('r', 'p') ORDER BY 1, 2 LIMIT 3) s";

/// What the bytes of a COPY depend on, in one text per table. By object id, which an index answers however many tables there are; the name is read back,
/// since another table may bear it by now.
const FINGERPRINTS: &str = "
    SELECT n.nspname::text AS schema, c.relname::text AS name,
           c.oid::text || string_agg(format(' %s %I %s %s %s %s%s', a.attnum, a.attname, a.atttypid, a.atttypmod, a.attnotnull, a.attgenerated,
                                            a.attidentity), '' ORDER BY a.attnum) AS fingerprint
      FROM pg_catalog.pg_class c
      JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
      JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
     WHERE c.oid = ANY ($1::oid[])
     GROUP BY c.oid, n.nspname, c.relname";

/// Reads a table. `section` is the part of the file that named it.
///
/// # Errors
/// `Fatal` for a table that is missing or cannot take rows exactly once, by name.
pub(crate) async fn read(tx: &mut Tx, name: &TableName, section: &str) -> Result<Table, SinkError> {
    let relation =
        sqlx::query(RELATION).bind(&name.schema).bind(&name.table).fetch_optional(tx.sql()).await?;
    let Some(relation) = relation else {
        return Err(missing(tx, name, section).await?.into());
    };
    let mut table = Table {
        oid: relation.try_get("oid")?,
        schema: relation.try_get("schema")?,
        name: relation.try_get("name")?,
        columns: Vec::new(),
        fingerprint: String::new(),
        row_security: relation.try_get("row_security")?,
    };
    refuse_unfit(&table, &relation)?;
    let filled_by_trigger: bool = relation.try_get("filled")?;
    for row in sqlx::query(COLUMNS).bind(table.oid).fetch_all(tx.sql()).await? {
        table.columns.push(column(&row, filled_by_trigger)?);
    }
    let read = fingerprints(tx, &[table.oid]).await?;
    table.fingerprint = read.into_iter().next().map(|now| now.fingerprint).unwrap_or_default();
    if table.fingerprint.is_empty() {
        return Err(Failure::fatal(format!(
            "table {} has no columns. ALTER TABLE {} ADD COLUMN .. helps",
            table.display(),
            table.sql()
        ))
        .into());
    }
    Ok(table)
}

/// A table as the catalog has it now.
#[derive(Debug)]
pub(crate) struct Present {
    schema: String,
    name: String,
    fingerprint: String,
}

impl Present {
    /// Whether it is the very table that was read, unchanged and under the same name.
    pub(crate) fn is(&self, table: &Table) -> bool {
        self.fingerprint == table.fingerprint && self.schema == table.schema && self.name == table.name
    }
}

/// The present state of these tables; one that is gone is left out.
pub(crate) async fn fingerprints(tx: &mut Tx, oids: &[Oid]) -> Result<Vec<Present>, sqlx::Error> {
    let rows = sqlx::query(FINGERPRINTS).bind(oids).fetch_all(tx.sql()).await?;
    let present = |row: &PgRow| {
        Ok(Present {
            schema: row.try_get("schema")?,
            name: row.try_get("name")?,
            fingerprint: row.try_get("fingerprint")?,
        })
    };
    rows.iter().map(present).collect()
}

async fn missing(tx: &mut Tx, name: &TableName, section: &str) -> Result<Failure, sqlx::Error> {
    let row = sqlx::query(SIMILAR).bind(&name.table).fetch_one(tx.sql()).await?;
    let (similar, path): (Option<String>, String) = (row.try_get(0)?, row.try_get(1)?);
    let place = match name.schema {
        Some(_) => String::new(),
        None => format!(" on the search_path ({path})"),
    };
    let hint = match similar {
        Some(similar) => format!("; there is {similar}: names are compared exactly, schemas and all"),
        None => String::new(),
    };
    Ok(Failure::fatal(format!(
        "no table {}{place}{hint}. Create it, or name another in {section} table = \"schema.table\"",
        name.display()
    )))
}

/// Rows and offsets must be lost and kept together, and an INSERT must be one: everything else is refused.
fn refuse_unfit(table: &Table, relation: &PgRow) -> Result<(), SinkError> {
    let kind: String = relation.try_get("kind")?;
    let persistence: String = relation.try_get("persistence")?;
    let unfit_partition: Option<String> = relation.try_get("unfit_partition")?;
    let what = match (kind.as_str(), persistence.as_str(), unfit_partition) {
        ("v", _, _) => "is a view; name the table behind it".to_owned(),
        ("m", _, _) => "is a materialized view; name a table".to_owned(),
        ("f", _, _) => "is a foreign table: its rows are not in the transaction of the offsets; name a table of this server".to_owned(),
        (_, "u", _) => format!(
            "is unlogged: a crash would empty it and keep the offsets. ALTER TABLE {} SET LOGGED",
            table.sql()
        ),
        (_, "t", _) => "is a temporary table: it ends with its session; name a permanent one".to_owned(),
        (_, _, Some(partition)) => format!(
            "has a partition {partition} that is foreign or unlogged: its rows and the offsets would be lost apart. ALTER TABLE {partition} SET LOGGED, or detach it"
        ),
        _ if relation.try_get("rewritten")? => {
            "has a rule on INSERT; COPY does not run rules. Replace it by a trigger".to_owned()
        }
        _ if !relation.try_get::<bool, _>("reachable")? => {
            let role: String = relation.try_get("role")?;
            let schema = quote::identifier(&table.schema);
            format!(
                "is in a schema that role {role} may not use. GRANT USAGE ON SCHEMA {schema} TO {}",
                quote::identifier(&role)
            )
        }
        _ if !relation.try_get::<bool, _>("insertable")? => {
            let role: String = relation.try_get("role")?;
            format!(
                "does not let role {role} write. GRANT INSERT ON {} TO {}",
                table.sql(),
                quote::identifier(&role)
            )
        }
        _ => return Ok(()),
    };
    Err(Failure::fatal(format!("table {} {what}", table.display())).into())
}

fn column(row: &PgRow, filled_by_trigger: bool) -> Result<Column, sqlx::Error> {
    let (generated, identity): (String, String) = (row.try_get("generated")?, row.try_get("identity")?);
    let type_oid: Oid = row.try_get("type_oid")?;
    let target = match Kind::of(type_oid.0, row.try_get("modifier")?) {
        _ if !generated.is_empty() || identity == "a" => Target::GeneratedAlways,
        Some(kind) => Target::Typed(kind),
        None => Target::Unsupported,
    };
    let not_null = row.try_get::<bool, _>("not_null")? && !filled_by_trigger;
    Ok(Column {
        name: row.try_get("name")?,
        target,
        not_null,
        required: not_null && !row.try_get::<bool, _>("filled")?,
        type_name: row.try_get("type_name")?,
        insertable: row.try_get("insertable")?,
    })
}
