/**
 * The number of the last addition of usage that each gateway has stored, by its slot (the part of the log that it
 * writes) and its epoch (a random number of the process). An addition whose answer was lost is made again under its
 * number, and so counted once. Released: must not change.
 */
export const USAGE_MARKS = `
CREATE TABLE usage_mark (
  slot bigint PRIMARY KEY,
  epoch bigint NOT NULL,
  n bigint NOT NULL
);
`;
