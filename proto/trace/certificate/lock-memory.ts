/**
 * What evidence of a certificate remembers about one lock: its last uplinks by kind, its connection and its commands.
 * Bounded: nothing here grows with the trace but `seen`, which all locks share a limit for.
 */
import type { CommandBefore } from '../../power/judge/belief.js';
import type { EffectiveState } from '../../power/model.js';
import type { Command, LockState, Position, PowerSettings } from '../../wire/ping.js';
import { SeenUplinks, type SeenUplinksLimit } from '../../wire/seen-uplinks.js';
import type { TraceLock } from '../trace.js';

/** Commands remembered for each lock, until they are acknowledged. */
const MAX_COMMANDS = 256;

export interface SentCommand {
  readonly command: Command;
  readonly atMs: number;
  readonly expiresMs: number | undefined;
}

/** The uplink before, by receipt. */
export interface UplinkBefore {
  readonly boot: number;
  readonly sequence: number;
}

/** A run of GPS pings of one reason. Times are the lock’s, ms since the epoch. */
export interface GpsRun {
  gpsMs: number;
  cellularMs: number;
  /** Whether a GPS ping came since the last cellular one. */
  hasGpsSince: boolean;
}

/** A silence that the lock announced. */
export interface Silence {
  readonly state: EffectiveState;
  /** The line of the announcement. */
  readonly line: number;
  sinceMs: number;
  isNoted: boolean;
}

/** See the head of this file. Times start at minus infinity: never. */
export class LockMemory {
  readonly seen: SeenUplinks;
  /** As its last cellular ping says; null before the first. */
  firmware: string | null = null;
  before: UplinkBefore | null = null;
  /** Of the last ping. */
  state: EffectiveState | null = null;
  lockState: LockState = 'unknown';
  batteryPercent: number | null = null;
  silence: Silence | null = null;
  /** When each reason’s last cellular ping was made. */
  readonly cellularMs = new Map<string, number>();
  /** The reason whose GPS ping came since the last close-connection ping. */
  hasGpsToFollow = false;
  readonly theft: GpsRun = newRun();
  readonly ride: GpsRun = newRun();
  dailyMs = Number.NEGATIVE_INFINITY;
  networkPingMs = Number.NEGATIVE_INFINITY;
  position: Position | null = null;
  positionMs = Number.NEGATIVE_INFINITY;
  isConnected = false;
  /** Whether the trace has the connection’s begin. */
  hasSeenConnect = false;
  hasClosePing = false;
  isClosePingLast = false;
  uplinkAtMs = Number.NEGATIVE_INFINITY;
  /** The lock state that an acknowledged command promises for the next ping. */
  promised: LockState | null = null;
  readonly commands = new Map<number, SentCommand>();

  constructor(bound: SeenUplinksLimit, header: TraceLock | undefined) {
    this.seen = new SeenUplinks(bound);
    if (header === undefined) return;
    this.isConnected = header.connected;
    this.lockState = header.lockState;
    for (const { id, ...sent } of header.commands ?? []) this.noteCommand(id, sent);
  }

  noteCommand(id: number, { command, atMs, expiresMs }: Omit<CommandBefore, 'id'>): void {
    this.commands.set(id, { command, atMs, expiresMs });
    if (this.commands.size > MAX_COMMANDS) this.commands.delete(this.commands.keys().next().value as number);
  }

  connect(): void {
    this.isConnected = true;
    this.hasSeenConnect = true;
    this.hasClosePing = false;
    this.isClosePingLast = false;
    this.networkPingMs = Number.NEGATIVE_INFINITY;
  }
}

function newRun(): GpsRun {
  return { gpsMs: Number.NEGATIVE_INFINITY, cellularMs: Number.NEGATIVE_INFINITY, hasGpsSince: false };
}

/** Whether the power settings are what a set-power asked for. */
export function isAsAsked(power: PowerSettings, command: Command): boolean {
  if (command.type !== 'set-power') return false;
  const { mode, rideTracking, airplane, recovery } = command;
  return (
    (mode === undefined || mode === power.mode) &&
    (rideTracking === undefined || rideTracking === power.rideTracking) &&
    (airplane === undefined || airplane === power.airplane) &&
    (recovery === undefined || recovery === power.recovery)
  );
}
