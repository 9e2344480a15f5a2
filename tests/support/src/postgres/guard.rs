//! The trigger that every test database carries: a stored offset that goes back without an event row of the same
//! transaction that says so is an error.
//!
//! Deferred to COMMIT, so that the event row may come after the update.
//!
//! What it refuses it also counts, in a sequence, which no rollback undoes: a sink that was refused and recovered has passed no test, since only this
//! trigger stood between it and doubled rows.

/// "Of the same transaction" is asked as "visible and still in progress", since a row written behind a savepoint bears
/// the number of the subtransaction.
///
/// For the search path's `kafka_offsets` and `oncesink_events`. The error is of class XX, which no sink may take for a
/// bad record or a reason to try again.
pub(super) const TRIGGER: &str = r"
CREATE SEQUENCE IF NOT EXISTS silent_rewinds;
CREATE OR REPLACE FUNCTION refuse_silent_rewind() RETURNS trigger
LANGUAGE plpgsql AS $body$
DECLARE
    told boolean;
BEGIN
    EXECUTE format(
        'SELECT EXISTS (
            SELECT FROM %I.oncesink_events
            WHERE consumer_group = $1 AND topic = $2 AND partition_id = $3
              AND pg_xact_status(((pg_current_xact_id()::text::bigint >> 32 << 32)
                      + xmin::text::bigint)::text::xid8) = ''in progress'')',
        TG_TABLE_SCHEMA)
    INTO told USING NEW.consumer_group, NEW.topic, NEW.partition_id;
    IF NOT told THEN
        PERFORM nextval(format('%I.silent_rewinds', TG_TABLE_SCHEMA));
        RAISE EXCEPTION 'silent rewind of %/% in group %: % to %',
            NEW.topic, NEW.partition_id, NEW.consumer_group, OLD.last_offset, NEW.last_offset
            USING ERRCODE = 'XX001';
    END IF;
    RETURN NULL;
END
$body$;
DROP TRIGGER IF EXISTS refuse_silent_rewind ON kafka_offsets;
CREATE CONSTRAINT TRIGGER refuse_silent_rewind
    AFTER UPDATE ON kafka_offsets
    DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW
    WHEN (NEW.last_offset < OLD.last_offset)
    EXECUTE FUNCTION refuse_silent_rewind();
";

/// How often it refused.
pub(super) const REFUSED: &str = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM silent_rewinds";
