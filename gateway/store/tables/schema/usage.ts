/**
 * The rows of the tables of SIM cards, usage, prices and statements. ../schema.ts says what all tables have in common.
 */
import type { Generated } from 'kysely';

/** An activated SIM. It belongs to the lock for ever, also after the device is removed. */
export interface SimTable {
  mac: string;
  activated_at_ms: number;
}

/** A lock's usage in a month (UTC) under a merchant. The `billed_` columns are the part that closed statements have. */
export interface UsageTable {
  /** For example `2026-11`. */
  month: string;
  mac: string;
  merchant_id: number;
  simulated: number;
  changed_at_ms: number;
  messages_up: number;
  messages_down: number;
  connections: number;
  bytes_up: number;
  bytes_down: number;
  billed_messages_up: Generated<number>;
  billed_messages_down: Generated<number>;
  billed_connections: Generated<number>;
  billed_bytes_up: Generated<number>;
  billed_bytes_down: Generated<number>;
}

/** A merchant's prices from a month on, until a later plan starts. Prices are decimal texts. */
export interface PricePlanTable {
  merchant_id: number;
  from_month: string;
  per_mb: string;
  per_sim: string;
  currency: string;
  set_at_ms: number;
}

/** A closed month of a merchant: written once, never changed. */
export interface StatementTable {
  merchant_id: number;
  month: string;
  closed_at_ms: number;
  /** JSON of a Statement. */
  body: string;
}
