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
