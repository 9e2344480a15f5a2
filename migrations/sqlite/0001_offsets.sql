-- Stored offsets: last_offset is the next offset to read, moved only by the transaction that writes the rows of the offsets passed over.
-- Times are UTC as text, 2026-11-30T20:06:00.000Z.
CREATE TABLE @offsets@ (
    topic TEXT NOT NULL CHECK (length(topic) BETWEEN 1 AND 249),
    partition_id INTEGER NOT NULL CHECK (partition_id BETWEEN 0 AND 2147483647),
    last_offset INTEGER NOT NULL CHECK (last_offset >= 0),
    consumer_group TEXT NOT NULL CHECK (length(consumer_group) BETWEEN 1 AND 255),
    owner_epoch INTEGER NOT NULL DEFAULT 0,
    owner_token TEXT NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000' CHECK (length(owner_token) = 36),
    owner TEXT,
    cluster_id TEXT,
    topic_id TEXT,
    sink TEXT,
    leader_epoch INTEGER,
    record_timestamp TEXT,
    state TEXT,
    state_reason TEXT,
    state_since TEXT,
    updated_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    PRIMARY KEY (consumer_group, topic, partition_id)
) STRICT, WITHOUT ROWID;

-- How many partitions of a topic have a row above, and by which policy the first of them began.
CREATE TABLE IF NOT EXISTS @topics@ (
    consumer_group TEXT NOT NULL CHECK (length(consumer_group) BETWEEN 1 AND 255),
    topic TEXT NOT NULL CHECK (length(topic) BETWEEN 1 AND 249),
    topic_id TEXT,
    partition_count INTEGER NOT NULL CHECK (partition_count >= 0),
    start_policy TEXT NOT NULL,
    resolved_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    PRIMARY KEY (consumer_group, topic)
) STRICT, WITHOUT ROWID;

-- Append-only: what moved or stopped a partition outside the normal flow.
CREATE TABLE IF NOT EXISTS @events@ (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    who TEXT NOT NULL,
    consumer_group TEXT NOT NULL,
    topic TEXT NOT NULL,
    partition_id INTEGER NOT NULL,
    kind TEXT NOT NULL,
    old_offset INTEGER,
    new_offset INTEGER,
    reason TEXT NOT NULL
) STRICT;

-- Records that could not become rows, written in the transaction that passes over their offsets. Headers are in the form of Kafka's record format.
CREATE TABLE IF NOT EXISTS @dead_letters@ (
    consumer_group TEXT NOT NULL,
    topic TEXT NOT NULL,
    partition_id INTEGER NOT NULL,
    record_offset INTEGER NOT NULL,
    record_timestamp TEXT,
    record_key BLOB,
    record_value BLOB,
    record_headers BLOB,
    class TEXT NOT NULL,
    reason TEXT NOT NULL,
    sql_state TEXT,
    target_table TEXT,
    target_column TEXT,
    first_seen TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    last_seen TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    attempts INTEGER NOT NULL DEFAULT 1,
    status TEXT NOT NULL DEFAULT 'new',
    PRIMARY KEY (consumer_group, topic, partition_id, record_offset)
) STRICT;
