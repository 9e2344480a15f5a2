//! The queries on the catalog, and the errors of a start: each names the object and the remedy.

use oncesink::plan::{Column, TableName, Takes};
use oncesink::sqlite::Tx;
use oncesink::sqlx::sqlite::SqliteRow;
use oncesink::sqlx::{self, Row};
use oncesink::{Failure, SinkError};

use super::clauses::silent_conflict;
use super::{Kind, Table, Unique};

/// The relation of exactly this name.
const RELATION: &str = "
    SELECT l.type, l.wr, l.strict, COALESCE(s.sql, '') AS definition
      FROM pragma_table_list AS l
      LEFT JOIN main.sqlite_schema AS s ON s.name = l.name AND s.type IN ('table', 'view')
     WHERE l.schema = 'main' AND l.name = ?1";

/// Columns in the table's order, also those that are hidden or generated.
const COLUMNS: &str = "
    SELECT name, type, \"notnull\" AS not_null, dflt_value AS filled, pk, hidden
      FROM pragma_table_xinfo(?1, 'main')
     ORDER BY cid";

/// The columns of unique indexes that hold for every row. What is no plain column has no name.
const UNIQUE: &str = "
    SELECT l.name AS index_name, l.origin, x.name AS column_name, x.coll AS collation
      FROM pragma_index_list(?1, 'main') AS l
      JOIN pragma_index_xinfo(l.name, 'main') AS x
     WHERE l.\"unique\" AND NOT l.partial AND x.key
     ORDER BY l.seq, x.seqno";

/// Names that differ by case only, for the message.
const SIMILAR: &str = "
    SELECT group_concat(name, ', ')
      FROM (SELECT name FROM main.sqlite_schema WHERE type = 'table' AND lower(name) = lower(?1) ORDER BY name LIMIT 3)";

/// Whether deleting a row of the table reaches rows of the same table, by foreign keys that lead back to it.
const CASCADES: &str = "
    WITH RECURSIVE links (child, parent) AS (
             SELECT s.name, f.\"table\" FROM main.sqlite_schema AS s JOIN pragma_foreign_key_list(s.name, 'main') AS f
              WHERE s.type = 'table' AND f.on_delete IN ('CASCADE', 'SET NULL', 'SET DEFAULT')),
         reached (name) AS (
             SELECT child FROM links WHERE parent = ?1 COLLATE NOCASE
             UNION
             SELECT l.child FROM links AS l JOIN reached AS r ON l.parent = r.name COLLATE NOCASE)
    SELECT EXISTS (SELECT 1 FROM reached WHERE name = ?1 COLLATE NOCASE)";

/// What our values and statements depend on.
const FINGERPRINT: &str = "
    SELECT type || ' ' || name || ' ' || COALESCE(sql, '')
      FROM main.sqlite_schema
     WHERE tbl_name = ?1 AND type IN ('table', 'index')
     ORDER BY 1";

/// The only schema: other files are not attached, and the temporary one ends with its connection.
const MAIN: &str = "main";

/// Reads a table. `section` is the part of the file that named it.
///
/// # Errors
/// `Fatal` for a table that is missing or cannot take rows exactly once, by name.
pub(crate) async fn read(tx: &mut Tx, name: &TableName, section: &str) -> Result<Table, SinkError> {
    if let Some(schema) = name.schema.as_deref().filter(|schema| *schema != MAIN) {
        return Err(elsewhere(schema, name, section).into());
    }
    let Some(relation) = sqlx::query(RELATION).bind(&name.table).fetch_optional(tx.sql()).await? else {
        return Err(missing(tx, name, section).await?.into());
    };
    refuse_unfit(&name.table, &relation)?;
    let mut table = Table {
        name: name.table.clone(),
        columns: Vec::new(),
        kinds: Vec::new(),
        defaults: Vec::new(),
        fingerprint: fingerprint(tx, &name.table).await?,
        schema_version: schema_version(tx).await?,
        unique: Vec::new(),
        cascades: sqlx::query_scalar(CASCADES).bind(&name.table).fetch_one(tx.sql()).await?,
    };
    let (without_rowid, strict): (bool, bool) = (relation.try_get("wr")?, relation.try_get("strict")?);
    let alias = read_unique(tx, &mut table).await?;
    let rows = sqlx::query(COLUMNS).bind(&table.name).fetch_all(tx.sql()).await?;
    let mut key = Vec::new();
    for row in &rows {
        if row.try_get::<i64, _>("pk")? > 0 {
            key.push(row.try_get::<String, _>("name")?);
        }
    }
    let rowid = (!key.is_empty() && alias).then(|| Unique { columns: key, loose: None });
    for row in &rows {
        add_column(&mut table, row, rowid.is_some(), without_rowid || strict, strict)?;
    }
    table.unique.extend(rowid);
    Ok(table)
}

/// The number that changes with every change of a definition in the file.
pub(crate) async fn schema_version(tx: &mut Tx) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar("SELECT schema_version FROM pragma_schema_version").fetch_one(tx.sql()).await
}

/// The definitions of a table and its indexes; empty when it is gone.
pub(crate) async fn fingerprint(tx: &mut Tx, table: &str) -> Result<String, sqlx::Error> {
    let definitions: Vec<String> = sqlx::query_scalar(FINGERPRINT).bind(table).fetch_all(tx.sql()).await?;
    Ok(definitions.join("\n"))
}

fn elsewhere(schema: &str, name: &TableName, section: &str) -> Failure {
    let table = &name.table;
    let why = if schema == "temp" {
        "a temporary table ends with its connection"
    } else {
        "other files are never attached, since they would not be committed together with the offsets"
    };
    Failure::fatal(format!(
        "no table {}: {why}. The only schema is main: write {section} table = {table:?}; a table whose name holds a dot comes from ${{topic}} only",
        name.display()
    ))
}

async fn missing(tx: &mut Tx, name: &TableName, section: &str) -> Result<Failure, sqlx::Error> {
    let similar: Option<String> = sqlx::query_scalar(SIMILAR).bind(&name.table).fetch_one(tx.sql()).await?;
    let hint = match similar {
        Some(similar) => format!("; there is {similar}: names are compared exactly"),
        None => String::new(),
    };
    Ok(Failure::fatal(format!(
        "no table {} in the file{hint}. Create it, or name another in {section} table = \"...\"",
        name.table
    )))
}

/// Rows and offsets must be committed together, and an INSERT must be one: everything else is refused.
fn refuse_unfit(table: &str, relation: &SqliteRow) -> Result<(), SinkError> {
    let kind: String = relation.try_get("type")?;
    let definition: String = relation.try_get("definition")?;
    let what = match kind.as_str() {
        "view" => "is a view; name the table behind it".to_owned(),
        "virtual" => {
            "is a virtual table: whether its rows commit together with the offsets is not known; name a table of the file, and fill the virtual one by triggers".to_owned()
        }
        "shadow" => "is a part of a virtual table; name a table of the file".to_owned(),
        _ if table.starts_with("sqlite_") => "is SQLite's own; name another".to_owned(),
        _ => match silent_conflict(&definition) {
            Some(clause) => format!(
                "is declared with ON CONFLICT {clause}: rows would be lost in silence. Make the table without that clause, and write mode = \"upsert\" or \"insert-ignore\" for what it was meant to do"
            ),
            None => return Ok(()),
        },
    };
    Err(Failure::fatal(format!("table {table} {what}")).into())
}

/// Reads the unique indexes; answers whether a primary key, if there is one, is the rowid itself, which no index stands for.
async fn read_unique(tx: &mut Tx, table: &mut Table) -> Result<bool, SinkError> {
    let mut alias = true;
    let mut last = None;
    for row in sqlx::query(UNIQUE).bind(&table.name).fetch_all(tx.sql()).await? {
        let (index, origin): (String, String) = (row.try_get("index_name")?, row.try_get("origin")?);
        alias &= origin != "pk";
        let collation: String = row.try_get("collation")?;
        // An expression keeps other things apart than columns do.
        let column: String =
            row.try_get::<Option<String>, _>("column_name")?.unwrap_or("<expression>".to_owned());
        if last.as_ref() != Some(&index) {
            table.unique.push(Unique { columns: Vec::new(), loose: None });
            last = Some(index);
        }
        if let Some(unique) = table.unique.last_mut() {
            unique.columns.push(column);
            if !collation.eq_ignore_ascii_case("BINARY") {
                unique.loose = Some(collation);
            }
        }
    }
    Ok(alias)
}

fn add_column(
    table: &mut Table,
    row: &SqliteRow,
    rowid: bool,
    key_not_null: bool,
    strict: bool,
) -> Result<(), sqlx::Error> {
    const HIDDEN: i64 = 1;
    const GENERATED: [i64; 2] = [2, 3];
    let hidden: i64 = row.try_get("hidden")?;
    if hidden == HIDDEN {
        return Ok(());
    }
    let declared: String = row.try_get("type")?;
    let kind = Kind::of(&declared, strict);
    let generated = GENERATED.contains(&hidden);
    let takes = match kind {
        _ if generated => Takes::Generated,
        Some(kind) => kind.takes(),
        None => Takes::Unsupported,
    };
    let in_key = row.try_get::<i64, _>("pk")? > 0;
    // SQLite would make up a rowid where it is told NULL.
    let not_null = row.try_get("not_null")? || (in_key && (rowid || key_not_null));
    let filled: Option<String> = row.try_get("filled")?;
    let filled = filled.filter(|default| !default.eq_ignore_ascii_case("NULL"));
    let name: String = row.try_get("name")?;
    table.kinds.push(kind);
    table.columns.push(Column {
        name,
        type_name: if declared.is_empty() { "(no type)".to_owned() } else { declared },
        takes,
        not_null,
        required: not_null && !generated && filled.is_none() && !(in_key && rowid),
        insert_only: false,
        insertable: true,
        updatable: true,
    });
    table.defaults.push(filled);
    Ok(())
}
