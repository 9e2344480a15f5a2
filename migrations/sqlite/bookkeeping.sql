-- Which versions of the tables of oncesink stand in this file. Its own table, so that no other tool's bookkeeping is touched.
CREATE TABLE IF NOT EXISTS @migrations@ (
    offsets_table TEXT NOT NULL,
    version INTEGER NOT NULL,
    applied_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    PRIMARY KEY (offsets_table, version)
) STRICT;
