-- Stored offsets: last_offset is the next offset to read, moved only by the transaction that writes the rows of the offsets passed over.
-- A low fillfactor and no index on changing columns keep the updates of a row on its page.
CREATE TABLE @offsets@ (
    topic text COLLATE "C" NOT NULL CHECK (char_length(topic) BETWEEN 1 AND 249),
    partition_id integer NOT NULL CHECK (partition_id >= 0),
    last_offset bigint NOT NULL CHECK (last_offset >= 0),
    consumer_group text COLLATE "C" NOT NULL CHECK (char_length(consumer_group) BETWEEN 1 AND 255),
    owner_epoch bigint NOT NULL DEFAULT 0,
    owner_token uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    owner text,
    cluster_id text COLLATE "C",
    topic_id text COLLATE "C",
    sink text COLLATE "C",
    leader_epoch integer,
    record_timestamp timestamptz,
    state text COLLATE "C",
    state_reason text,
    state_since timestamptz,
    updated_at timestamptz NOT NULL DEFAULT CURRENT_TIMESTAMP,
    PRIMARY KEY (consumer_group, topic, partition_id)
) WITH (fillfactor = 50);

-- How many partitions of a topic have a row above, and by which policy the first of them began.
CREATE TABLE IF NOT EXISTS @topics@ (
    consumer_group text COLLATE "C" NOT NULL CHECK (char_length(consumer_group) BETWEEN 1 AND 255),
    topic text COLLATE "C" NOT NULL CHECK (char_length(topic) BETWEEN 1 AND 249),
    topic_id text COLLATE "C",
    partition_count integer NOT NULL CHECK (partition_count >= 0),
    start_policy text NOT NULL,
    resolved_at timestamptz NOT NULL DEFAULT CURRENT_TIMESTAMP,
    PRIMARY KEY (consumer_group, topic)
);

-- Append-only: what moved or stopped a partition outside the normal flow.
CREATE TABLE IF NOT EXISTS @events@ (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT CURRENT_TIMESTAMP,
    who text NOT NULL,
    consumer_group text COLLATE "C" NOT NULL,
    topic text COLLATE "C" NOT NULL,
    partition_id integer NOT NULL,
    kind text NOT NULL,
    old_offset bigint,
    new_offset bigint,
    reason text NOT NULL
);

-- Bad records with their bytes, written by the transaction that passes over them; under policy dead-letter only. One that comes again raises attempts and
-- last_seen, and is new again. The bytes are those of the record: whoever may read this table may read them.
-- record_headers: as in Kafka's record format 2, a zigzag varint for their number, then for each the length of its name, the name, the length of its value
-- or -1 for none, the value; NULL without headers.
CREATE TABLE IF NOT EXISTS @dead_letters@ (
    consumer_group text COLLATE "C" NOT NULL CHECK (char_length(consumer_group) BETWEEN 1 AND 255),
    topic text COLLATE "C" NOT NULL CHECK (char_length(topic) BETWEEN 1 AND 249),
    partition_id integer NOT NULL CHECK (partition_id >= 0),
    record_offset bigint NOT NULL CHECK (record_offset >= 0),
    record_timestamp timestamptz,
    record_key bytea,
    record_value bytea,
    record_headers bytea,
    class text COLLATE "C" NOT NULL CHECK (class IN ('decode', 'value', 'constraint', 'mapping')),
    reason text COLLATE "C" NOT NULL,
    sql_state text COLLATE "C",
    target_table text,
    target_column text,
    first_seen timestamptz NOT NULL DEFAULT CURRENT_TIMESTAMP,
    last_seen timestamptz NOT NULL DEFAULT CURRENT_TIMESTAMP,
    attempts integer NOT NULL DEFAULT 1 CHECK (attempts >= 1),
    status text COLLATE "C" NOT NULL DEFAULT 'new' CHECK (status IN ('new', 'replayed', 'discarded')),
    PRIMARY KEY (consumer_group, topic, partition_id, record_offset)
);
