//! The queries on the catalog, and the errors of a start: each names the object and the remedy.

use oncesink::plan::{Column, Mode, TableConfig, TableName, Takes};
use oncesink::postgres::Tx;
use oncesink::sqlx::postgres::PgRow;
use oncesink::sqlx::postgres::types::Oid;
use oncesink::sqlx::{self, Row};
use oncesink::{Failure, SinkError};

use super::Table;
use super::types::Types;
use crate::{quote, value};

/// Every relation that a name could mean; names are bound, never spliced. Without a schema the session's search_path decides.
const RELATION: &str = "
    SELECT c.oid AS oid, n.nspname::text AS schema, c.relname::text AS name, c.relkind::text AS kind, c.relpersistence::text AS persistence,
           has_schema_privilege(n.oid, 'USAGE') AS reachable,
           has_any_column_privilege(c.oid, 'SELECT') AS may_select, has_any_column_privilege(c.oid, 'INSERT') AS may_insert,
           has_any_column_privilege(c.oid, 'UPDATE') AS may_update, has_table_privilege(c.oid, 'DELETE') AS may_delete,
           has_database_privilege(current_database(), 'TEMPORARY') AS may_stage,
           row_security_active(c.oid) AS row_security,
           (WITH RECURSIVE reached (oid) AS (
                SELECT k.conrelid FROM pg_catalog.pg_constraint k WHERE k.contype = 'f' AND k.confdeltype IN ('c', 'n', 'd') AND k.confrelid = c.oid
                UNION
                SELECT k.conrelid FROM pg_catalog.pg_constraint k JOIN reached r ON k.confrelid = r.oid
                 WHERE k.contype = 'f' AND k.confdeltype IN ('c', 'n', 'd'))
            SELECT EXISTS (SELECT FROM reached WHERE reached.oid = c.oid)) AS cascades,
           ARRAY(SELECT DISTINCT r.ev_type::text FROM pg_catalog.pg_rewrite r WHERE r.ev_class = c.oid) AS rules,
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
           has_column_privilege(a.attrelid, a.attnum, 'INSERT') AS insertable, has_column_privilege(a.attrelid, a.attnum, 'UPDATE') AS updatable,
           EXISTS (SELECT FROM pg_catalog.pg_collation c WHERE c.oid = a.attcollation AND NOT c.collisdeterministic) AS loose
      FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
     WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped
     ORDER BY a.attnum";

/// Unique indexes that hold for every row at once, on plain columns; those that a column is only carried along in are not among their keys.
const UNIQUE: &str = "
    SELECT ARRAY(SELECT a.attname::text FROM UNNEST(i.indkey::int2[]) WITH ORDINALITY AS k (attnum, place)
                   JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
                  WHERE k.place <= i.indnkeyatts ORDER BY k.place) AS columns
      FROM pg_catalog.pg_index i
     WHERE i.indrelid = $1 AND i.indisunique AND i.indimmediate AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL";

/// Names that differ by case or schema only, for the message.
const SIMILAR: &str = "
    SELECT string_agg(format('%I.%I', s.nspname, s.relname), ', '), current_setting('search_path')
      FROM (SELECT n.nspname, c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
             WHERE lower(c.relname::text) = lower($1) AND c.relkind IN ('r', 'p') ORDER BY 1, 2 LIMIT 3) s";

/// What the bytes of a COPY depend on, in one text per table. By object id, which an index answers however many tables there are; the name is read back,
/// since another table may bear it by now.
pub(crate) const FINGERPRINTS: &str = "
    SELECT n.nspname::text AS schema, c.relname::text AS name,
           c.oid::text || string_agg(format(' %s %I %s %s %s %s%s', a.attnum, a.attname, a.atttypid, a.atttypmod, a.attnotnull, a.attgenerated,
                                            a.attidentity), '' ORDER BY a.attnum) AS fingerprint
      FROM pg_catalog.pg_class c
      JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
      JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
     WHERE c.oid = ANY ($1::oid[])
     GROUP BY c.oid, n.nspname, c.relname";

/// What the file asks of a table.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Needs {
    insert: bool,
    update: bool,
    delete: bool,
    select: bool,
}

impl Needs {
    /// What these keys will do to a table.
    pub(crate) fn of(config: &TableConfig) -> Self {
        let delete = config.mode.folds() && config.delete == Some(oncesink::plan::Delete::Tombstone);
        Self {
            insert: config.mode != Mode::Update,
            update: config.mode.folds(),
            delete,
            select: config.mode != Mode::Insert,
        }
    }

    /// Grants and rules: the privilege, the column of [`RELATION`] that tells whether it is there, the kind of rule that would stand in the way.
    fn each(self) -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
        [
            (self.select, ("SELECT", "may_select", "")),
            (self.insert, ("INSERT", "may_insert", "3")),
            (self.update, ("UPDATE", "may_update", "2")),
            (self.delete, ("DELETE", "may_delete", "4")),
        ]
        .into_iter()
        .filter_map(|(needed, what)| needed.then_some(what))
    }
}

/// Reads a table. `section` is the part of the file that named it.
///
/// # Errors
/// `Fatal` for a table that is missing or cannot take rows exactly once, by name.
pub(crate) async fn read(
    tx: &mut Tx,
    name: &TableName,
    section: &str,
    needs: Needs,
) -> Result<Table, SinkError> {
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
        types: Vec::new(),
        fingerprint: String::new(),
        row_security: relation.try_get("row_security")?,
        cascades: relation.try_get("cascades")?,
        may_stage: relation.try_get("may_stage")?,
        overriding: false,
        unique: Vec::new(),
        loose: Vec::new(),
    };
    refuse_unfit(&table, &relation, needs)?;
    let filled_by_trigger: bool = relation.try_get("filled")?;
    let types = Types::read(tx, table.oid).await?;
    for row in sqlx::query(COLUMNS).bind(table.oid).fetch_all(tx.sql()).await? {
        add_column(&mut table, &row, &types, filled_by_trigger)?;
    }
    for row in sqlx::query(UNIQUE).bind(table.oid).fetch_all(tx.sql()).await? {
        table.unique.push(row.try_get("columns")?);
    }
    let read = fingerprints(tx, &[table.oid]).await?;
    table.fingerprint = read.into_iter().next().map(|now| now.fingerprint).unwrap_or_default();
    if table.fingerprint.is_empty() {
        return Err(Failure::fatal(format!(
            "table {} has no columns. ALTER TABLE {} ADD COLUMN .. helps",
            oncesink::plan::Table::display(&table),
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
    /// Reads a row of [`FINGERPRINTS`].
    pub(crate) fn of(row: &PgRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            schema: row.try_get("schema")?,
            name: row.try_get("name")?,
            fingerprint: row.try_get("fingerprint")?,
        })
    }

    /// Whether it is the very table that was read, unchanged and under the same name.
    pub(crate) fn is(&self, table: &Table) -> bool {
        self.fingerprint == table.fingerprint && self.schema == table.schema && self.name == table.name
    }
}

/// The present state of these tables; one that is gone is left out.
pub(crate) async fn fingerprints(tx: &mut Tx, oids: &[Oid]) -> Result<Vec<Present>, sqlx::Error> {
    let rows = sqlx::query(FINGERPRINTS).bind(oids).fetch_all(tx.sql()).await?;
    rows.iter().map(Present::of).collect()
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
fn refuse_unfit(table: &Table, relation: &PgRow, needs: Needs) -> Result<(), SinkError> {
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
        _ if !relation.try_get::<bool, _>("reachable")? => {
            let role: String = relation.try_get("role")?;
            let schema = quote::identifier(&table.schema);
            format!(
                "is in a schema that role {role} may not use. GRANT USAGE ON SCHEMA {schema} TO {}",
                quote::identifier(&role)
            )
        }
        _ => return refuse_forbidden(table, relation, needs),
    };
    Err(unfit(table, &what))
}

fn unfit(table: &Table, what: &str) -> SinkError {
    Failure::fatal(format!("table {} {what}", oncesink::plan::Table::display(table))).into()
}

/// Rules would rewrite what we do into something else; a grant that is missing is named with the others.
fn refuse_forbidden(table: &Table, relation: &PgRow, needs: Needs) -> Result<(), SinkError> {
    let rules: Vec<String> = relation.try_get("rules")?;
    let role: String = relation.try_get("role")?;
    let mut lacking = Vec::new();
    for (privilege, granted, rule) in needs.each() {
        if rules.iter().any(|kind| kind == rule) {
            let what = format!(
                "has a rule on {privilege}; COPY and ON CONFLICT do not go with rules. Replace it by a trigger"
            );
            return Err(unfit(table, &what));
        }
        if !relation.try_get::<bool, _>(granted)? {
            lacking.push(privilege);
        }
    }
    if lacking.is_empty() {
        return Ok(());
    }
    let (privileges, role_sql) = (lacking.join(", "), quote::identifier(&role));
    Err(unfit(
        table,
        &format!("does not let role {role} write. GRANT {privileges} ON {} TO {role_sql}", table.sql()),
    ))
}

fn add_column(
    table: &mut Table,
    row: &PgRow,
    types: &Types,
    filled_by_trigger: bool,
) -> Result<(), sqlx::Error> {
    let (generated, identity): (String, String) = (row.try_get("generated")?, row.try_get("identity")?);
    let type_oid: Oid = row.try_get("type_oid")?;
    let sort = types.of(type_oid.0, row.try_get("modifier")?);
    let takes = match &sort {
        _ if !generated.is_empty() => Takes::Generated,
        Some(sort) => value::takes(sort),
        None => Takes::Unsupported,
    };
    let not_null = row.try_get::<bool, _>("not_null")? && !filled_by_trigger;
    let name: String = row.try_get("name")?;
    if row.try_get("loose")? {
        table.loose.push(name.clone());
    }
    table.overriding |= identity == "a";
    table.types.push(sort);
    table.columns.push(Column {
        name,
        type_name: row.try_get("type_name")?,
        takes,
        not_null,
        required: not_null && generated.is_empty() && !row.try_get::<bool, _>("filled")?,
        insert_only: identity == "a",
        insertable: row.try_get("insertable")?,
        updatable: row.try_get("updatable")?,
    });
    Ok(())
}
