/**
 * Which gateway wrote an entry of the audit log, and which one last noted a notice: its epoch, a random number of the
 * process, which each transaction sets (../fence.ts). So a start ends what ended gateways left open, and nothing of
 * those that run. Null: written by an earlier version. Shipped: must not change.
 */
export const EPOCHS = `
ALTER TABLE audit ADD COLUMN epoch bigint DEFAULT nullif(current_setting('lockgate.epoch', true), '')::bigint;
ALTER TABLE notice ADD COLUMN epoch bigint;
CREATE FUNCTION lockgate_note_epoch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' OR NEW.count <> OLD.count THEN
    NEW.epoch := nullif(current_setting('lockgate.epoch', true), '')::bigint;
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER notice_epoch BEFORE INSERT OR UPDATE ON notice
  FOR EACH ROW EXECUTE FUNCTION lockgate_note_epoch();
`;
