/**
 * A commit's mark also has the last id that its slot (a gateway's part of the log) gave by then, so that the end of a
 * slot is read from the marks. So the log needs no index by slot, which cost each uplink about as much as its row. The
 * marks that are there get the end of their slot; those that an older version adds have no id. Shipped: must not
 * change.
 */
export const LAST_IDS = `
ALTER TABLE commit_mark ADD COLUMN last_id bigint;
UPDATE commit_mark m SET last_id = s.last_id FROM (
  SELECT slot, (SELECT max(u.id) FROM uplink u WHERE u.slot = n.slot) AS last_id FROM node n) s
WHERE s.slot = m.slot;
DROP INDEX uplink_of_slot;
`;
