//! A case as data: tables, keys, records, and what they come to. `{schema}` in a text is the schema that the case runs in, where a database has schemas.

/// A database that the table runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Database {
    Postgres,
    Sqlite,
}

/// A record. Its offset is its place among those of its partition.
#[derive(Clone, Debug)]
pub(crate) struct Rec {
    pub(crate) topic: String,
    pub(crate) partition: i32,
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) headers: Vec<(String, Option<Vec<u8>>)>,
    pub(crate) timestamp: i64,
}

impl Rec {
    pub(crate) fn at(mut self, topic: &str, partition: i32) -> Self {
        (self.topic, self.partition) = (topic.to_owned(), partition);
        self
    }

    pub(crate) fn header(mut self, name: &str, value: Option<&str>) -> Self {
        self.headers.push((name.to_owned(), value.map(|value| value.as_bytes().to_vec())));
        self
    }

    pub(crate) fn timestamp(mut self, milliseconds: i64) -> Self {
        self.timestamp = milliseconds;
        self
    }
}

/// A record of topic `t`, partition 0.
fn rec(key: Option<&[u8]>, value: Option<&[u8]>) -> Rec {
    Rec {
        topic: "t".to_owned(),
        partition: 0,
        key: key.map(<[u8]>::to_vec),
        value: value.map(<[u8]>::to_vec),
        headers: Vec::new(),
        timestamp: 0,
    }
}

/// Without a key.
pub(crate) fn v(value: &str) -> Rec {
    rec(None, Some(value.as_bytes()))
}

/// With a key.
pub(crate) fn kv(key: &str, value: &str) -> Rec {
    rec(Some(key.as_bytes()), Some(value.as_bytes()))
}

/// A key without a value.
pub(crate) fn gone(key: &str) -> Rec {
    rec(Some(key.as_bytes()), None)
}

/// A bad record: topic, partition and offset, the reason's code, the column.
pub(crate) type BadAt = (&'static str, i32, i64, &'static str, Option<&'static str>);

/// What the records of a case become, when they come in one batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Books {
    pub(crate) read: usize,
    pub(crate) written: usize,
    pub(crate) collapsed: usize,
    pub(crate) deleted: usize,
    pub(crate) skipped: usize,
    pub(crate) bad: usize,
}

/// What must be there afterwards, on one database or on all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expected {
    pub(crate) rows: Vec<(String, Vec<String>)>,
    pub(crate) bad: Vec<BadAt>,
    pub(crate) books: Option<Books>,
}

/// Where a database differs, and why.
#[derive(Clone, Debug)]
pub(crate) struct Differs {
    pub(crate) database: Database,
    pub(crate) why: &'static str,
    pub(crate) expected: Expected,
}

/// A case.
#[derive(Clone, Debug, Default)]
pub(crate) struct Case {
    ddl: Vec<(Option<Database>, String)>,
    /// `{"table":{...},"tables":{...}}`, as the file has it.
    pub(crate) keys: String,
    pub(crate) records: Vec<Rec>,
    expected: Expected,
    differs: Vec<Differs>,
    /// Records that make the batch large: `{n}` becomes a number.
    pub(crate) fillers: Vec<Rec>,
    /// Takes their rows away again.
    pub(crate) unfill: String,
    /// So many records that they are not written one by one, but in halves.
    pub(crate) whole: bool,
}

impl Case {
    /// Tables on every database, and the keys of `[sinks.x.table]`.
    pub(crate) fn new(ddl: &str, table: &str) -> Self {
        Self {
            ddl: vec![(None, ddl.to_owned())],
            keys: format!(r#"{{"table":{{{table}}}}}"#),
            ..Self::default()
        }
    }

    /// Statements for one database, behind those for all.
    pub(crate) fn then_on(mut self, database: Database, ddl: &str) -> Self {
        self.ddl.push((Some(database), ddl.to_owned()));
        self
    }

    /// Keys by topic instead of one table for all.
    pub(crate) fn tables(mut self, tables: &str) -> Self {
        self.keys = format!(r#"{{"tables":{{{tables}}}}}"#);
        self
    }

    /// Too many records to be written one by one.
    pub(crate) fn whole(mut self) -> Self {
        self.whole = true;
        self
    }

    pub(crate) fn records(mut self, records: impl IntoIterator<Item = Rec>) -> Self {
        self.records.extend(records);
        self
    }

    /// What a query answers in the end: columns joined by `|`.
    pub(crate) fn rows<const N: usize>(mut self, query: &str, rows: [&str; N]) -> Self {
        self.expected.rows.push((query.to_owned(), rows.map(str::to_owned).to_vec()));
        self
    }

    pub(crate) fn bad<const N: usize>(mut self, bad: [BadAt; N]) -> Self {
        self.expected.bad = bad.to_vec();
        self
    }

    /// Written, collapsed, deleted and skipped, when all records come in one batch.
    pub(crate) fn books(mut self, [written, collapsed, deleted, skipped]: [usize; 4]) -> Self {
        self.expected.books = Some(Books { written, collapsed, deleted, skipped, ..Books::default() });
        self
    }

    /// Another outcome on one database, with the reason.
    pub(crate) fn differs(
        mut self,
        database: Database,
        why: &'static str,
        change: impl FnOnce(Self) -> Self,
    ) -> Self {
        let other = change(Self { expected: self.expected.clone(), ..Self::default() });
        self.differs.push(Differs { database, why, expected: other.expected });
        self
    }

    /// Forgets the rows expected so far; within [`Case::differs`].
    pub(crate) fn no_rows(mut self) -> Self {
        self.expected.rows.clear();
        self
    }

    /// Records of the case's shapes, `{n}` in them a number from 1,000 on, and the statement that takes their rows away.
    pub(crate) fn fillers(mut self, fillers: impl IntoIterator<Item = Rec>, unfill: &str) -> Self {
        self.fillers.extend(fillers);
        self.unfill = unfill.to_owned();
        self
    }

    pub(crate) fn ddl_on(&self, database: Database) -> impl Iterator<Item = &str> {
        let here = move |on: &Option<Database>| on.is_none_or(|on| on == database);
        self.ddl.iter().filter(move |(on, _)| here(on)).map(|(_, sql)| sql.as_str())
    }

    /// What is expected of a database, the books complete.
    pub(crate) fn expected_on(&self, database: Database) -> Expected {
        let differs = self.differs.iter().find(|differs| differs.database == database);
        if let Some(differs) = differs {
            assert!(!differs.why.is_empty(), "a difference without a reason");
        }
        let mut expected = differs.map_or(&self.expected, |differs| &differs.expected).clone();
        if let Some(books) = &mut expected.books {
            (books.read, books.bad) = (self.records.len(), expected.bad.len());
            let total = books.written + books.collapsed + books.deleted + books.skipped + books.bad;
            assert_eq!(total, books.read, "the expected books do not balance: {books:?}");
        }
        expected.bad.sort_unstable();
        expected
    }
}
