/**
 * Drops the log's index by slot (a gateway's part of the log): it cost each uplink about as much as its row without
 * indexes, and the few reads that used it have others. Shipped: must not change.
 */
export const SLOT_INDEX = `
DROP INDEX uplink_of_slot;
`;
