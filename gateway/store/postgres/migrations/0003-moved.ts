/**
 * Allows a row for slot 0 in the table `node`. Gateways have the slots 1 to 63; slot 0 has the uplinks of a store that
 * was moved from SQLite, whose ids are simply 1, 2, 3 …. No gateway may claim it. Shipped: must not change.
 */
export const MOVED = `
ALTER TABLE node DROP CONSTRAINT node_slot_check;
ALTER TABLE node ADD CONSTRAINT node_slot_check CHECK (slot BETWEEN 0 AND 63);
`;
