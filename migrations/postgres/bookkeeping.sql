-- Which versions of the tables of oncesink stand in this schema. Its own table, so that no other tool's bookkeeping is touched.
CREATE TABLE IF NOT EXISTS @migrations@ (
    offsets_table text COLLATE "C" NOT NULL,
    version integer NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT CURRENT_TIMESTAMP,
    PRIMARY KEY (offsets_table, version)
);
