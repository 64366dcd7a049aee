/**
 * For each slot (a gateway's part of the log), the number of the last addition of usage that its gateway has stored,
 * and that gateway's epoch (a random number of its process). An addition whose answer was lost is made again under its
 * number, and so counted once. Shipped: must not change.
 */
export const USAGE_MARKS = `
CREATE TABLE usage_mark (
  slot bigint PRIMARY KEY,
  epoch bigint NOT NULL,
  n bigint NOT NULL
);
`;
