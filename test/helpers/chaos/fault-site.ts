/** What the faults of a chaos run act on, and where they say that a promise was broken meanwhile. */
import { type Milliseconds, monotonicMs, Seconds } from '../../../proto/clock.js';
import { realDelay } from '../clocks/change-signal.js';
import type { SeededChance } from '../pair/seeded-chance.js';
import type { ReplicatedPostgres } from '../store/postgres/replicated.js';
import type { PostgresServer } from '../store/postgres/server.js';
import type { KeptGateway } from './kept-gateway.js';

/** How often a fault checks what it waits for. */
const CHECK_INTERVAL = Seconds(0.05);

export interface FaultSite {
  readonly gateways: readonly KeptGateway[];
  readonly server: () => PostgresServer;
  /** The primary and its standby; undefined if the run's database has no standby. */
  readonly replicated: ReplicatedPostgres | undefined;
  readonly database: string;
  readonly chance: SeededChance;
  /** Whether the servers' disks can be filled (server-disk.ts). */
  readonly hasFullDisk: boolean;
  /** How many uplinks are acknowledged so far. */
  readonly acked: () => Promise<number>;
  /** Sends no more commands, and waits until all are answered. Returns false if they are not within a minute. */
  readonly pauseCommands: () => Promise<boolean>;
  readonly resumeCommands: () => void;
  /** From now on, or no longer, what is acknowledged will be lost by a restore, for which no gateway is to blame. */
  readonly setLosing: (isLosing: boolean) => Promise<void>;
  /** Prints a sentence about the run. */
  readonly note: (sentence: string) => void;
  /** Reports a broken promise, as a sentence. */
  readonly onBroken: (sentence: string) => void;
}

/** Whether all gateways say that they are ready. */
export async function areReady({ gateways }: Pick<FaultSite, 'gateways'>): Promise<boolean> {
  const all = await Promise.all(gateways.map((gateway) => gateway.readiness()));
  return all.every((readiness) => readiness === 'ready');
}

/** Takes the database from gateways: their connections are reset, and new ones refused. */
export function cutOff(gateways: readonly KeptGateway[]): void {
  for (const { proxy } of gateways) {
    proxy.isRefusing = true;
    proxy.cut();
  }
}

/** Undoes {@link cutOff}. */
export function letThrough(gateways: readonly KeptGateway[]): void {
  for (const { proxy } of gateways) proxy.isRefusing = false;
}

/** Waits until something holds. Returns false if it does not within the limit. */
export async function holdsWithin(limit: Milliseconds, holds: () => Promise<boolean>): Promise<boolean> {
  for (const endMs = monotonicMs() + limit; monotonicMs() < endMs; await realDelay(CHECK_INTERVAL))
    if (await holds()) return true;
  return false;
}
