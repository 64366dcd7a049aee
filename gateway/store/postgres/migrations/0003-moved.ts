/**
 * The slot 0, of the dense ids that SQLite gives, may be there: in a store that was moved from SQLite. It is no
 * gateway's, and counts as released. Shipped: must not change.
 */
export const MOVED = `
ALTER TABLE node DROP CONSTRAINT node_slot_check;
ALTER TABLE node ADD CONSTRAINT node_slot_check CHECK (slot BETWEEN 0 AND 63);
`;
