//! From records to rows of tables: what every sink that writes tables shares, whatever its database.
//!
//! Data flows as the modules stand: the file's keys ([`Config`]) and the columns that a connector read from its catalog ([`Table`]) are compiled into a
//! [`Mapping`] per topic; [`Mappings::encode`] turns a batch into encoded rows and deletes ([`Planned`]), folded per key where the mode asks for it. The
//! connector makes statements of them. No value is altered on its way: what a column cannot hold as it stands is a bad record.

mod config;
pub use config::{ColumnConfig, ColumnFrom, Config, Delete, KeyFrom, Mode, TableConfig, UnknownFields};
mod path;
pub use path::Path;
mod template;
pub use template::{TableName, expand};
mod column;
pub use column::{Cell, Column, Table, Takes};
mod mapping;
mod names;
pub use mapping::Mapping;
mod reader;
mod row;
mod rows;
pub use rows::{Cells, Group, Groups, RowAt};
mod fold;
pub use fold::{Changes, Chosen, RecordAt};
mod encode;
mod preview;
pub mod quote;
pub use encode::{Mappings, Planned, Preview, Target, missing_rows};
mod outlook;
pub use outlook::Outlook;
#[cfg(test)]
mod tests;
