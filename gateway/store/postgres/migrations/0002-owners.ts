/**
 * Which gateway owns what, if several share the database. Shipped: must not change.
 *
 * A gateway is named by its slot (the part of the log of uplinks that it writes) and its epoch (a random number of the
 * process). `source` says whether the row is about a lock itself or the phones that act for it. A row in `release_wish`
 * asks a gateway (`asked_…`) to release a lock; `released` says that the owner has done so, and any gateway may take
 * the lock. `ended_epoch` has the gateways that were declared dead, with the time at which they certainly still ran. A
 * duty is what one gateway does for all.
 */
export const OWNERS = `
CREATE TABLE device_owner (
  device_id bigint NOT NULL,
  source text COLLATE "C" NOT NULL,
  slot bigint NOT NULL,
  epoch bigint NOT NULL,
  released boolean NOT NULL,
  PRIMARY KEY (device_id, source)
);
CREATE INDEX device_owner_by_epoch ON device_owner (epoch);
CREATE TABLE release_wish (
  device_id bigint NOT NULL,
  source text COLLATE "C" NOT NULL,
  asked_slot bigint NOT NULL,
  asked_epoch bigint NOT NULL,
  at timestamptz NOT NULL,
  PRIMARY KEY (device_id, source)
);
CREATE INDEX release_wish_by_asked ON release_wish (asked_slot, asked_epoch);
CREATE TABLE ended_epoch (
  epoch bigint PRIMARY KEY,
  slot bigint NOT NULL,
  last_ran_ms double precision NOT NULL
);
CREATE TABLE duty (
  name text COLLATE "C" PRIMARY KEY,
  slot bigint NOT NULL,
  epoch bigint NOT NULL
);
`;
