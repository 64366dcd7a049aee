/**
 * What is remembered of one lock while a certificate's evidence is collected (evidence.ts): its last uplinks by kind,
 * its connection and its commands. Only `seen` grows with the trace, up to a limit that all locks share.
 */
import type { EarlierCommand } from '../../power/judge/belief.js';
import type { EffectiveState } from '../../power/model.js';
import type { Command, LockState, Position, PowerSettings } from '../../wire/ping.js';
import { SeenUplinks, type SeenUplinksLimit } from '../../wire/seen-uplinks.js';
import type { TraceLock } from '../trace.js';

/** Commands remembered for each lock, until they are acknowledged. */
const MAX_COMMANDS = 256;

export interface SentCommand {
  readonly command: Command;
  /** When it was sent, ms since the epoch. */
  readonly atMs: number;
  readonly expiresMs: number | undefined;
}

/** The uplink that was received last. */
export interface UplinkBefore {
  readonly boot: number;
  readonly sequence: number;
}

/** GPS pings of a theft or ride. Times are by the lock’s clock, ms since the epoch. */
export interface GpsRun {
  /** When the last GPS ping was made. */
  gpsMs: number;
  /** When the last cellular ping of the same trigger was made. */
  cellularMs: number;
  /** Whether a GPS ping came since the last cellular one. */
  hasGpsSince: boolean;
}

/** A silence that the lock announced. */
export interface Silence {
  readonly state: EffectiveState;
  /** The line of the announcement. */
  readonly line: number;
  /** When the last uplink was received, ms since the epoch. */
  sinceMs: number;
  /** Whether it has been reported as evidence. */
  isNoted: boolean;
}

/** See the top of this file. Before an event has happened, its time is minus infinity. */
export class LockMemory {
  /** Which uplinks have come, to recognise repeats. */
  readonly seen: SeenUplinks;
  /** The version that its last cellular ping reports; null before the first. */
  firmware: string | null = null;
  before: UplinkBefore | null = null;
  /** The state in which the last ping was made, and what that ping reports. */
  state: EffectiveState | null = null;
  lockState: LockState = 'unknown';
  batteryPercent: number | null = null;
  /** The silence that the lock is in; null if it has announced none. */
  silence: Silence | null = null;
  /** When each reason’s last cellular ping was made. */
  readonly cellularMs = new Map<string, number>();
  /** Whether the GPS ping of a state change or daily ping came since the last close-connection ping. */
  hasGpsToFollow = false;
  readonly theft: GpsRun = newRun();
  readonly ride: GpsRun = newRun();
  /** When the last cellular daily ping was made. */
  dailyMs = Number.NEGATIVE_INFINITY;
  /** When the last network ping on this connection was made. */
  networkPingMs = Number.NEGATIVE_INFINITY;
  /** The position of the last GPS ping, and when that was made. */
  position: Position | null = null;
  positionMs = Number.NEGATIVE_INFINITY;
  isConnected = false;
  /** Whether the trace has the connect of the current connection. */
  hasSeenConnect = false;
  /** Whether a close-connection ping came on the connection, and whether it is the last uplink so far. */
  hasClosePing = false;
  isClosePingLast = false;
  /** When the last uplink was received. */
  uplinkAtMs = Number.NEGATIVE_INFINITY;
  /** The lock state that an acknowledged command promises for the next ping. */
  promised: LockState | null = null;
  readonly commands = new Map<number, SentCommand>();

  /** @param header the entry for this lock in the header of the trace */
  constructor(limit: SeenUplinksLimit, header: TraceLock | undefined) {
    this.seen = new SeenUplinks(limit);
    if (header === undefined) return;
    this.isConnected = header.connected;
    this.lockState = header.lockState;
    for (const { id, ...sent } of header.commands ?? []) this.noteCommand(id, sent);
  }

  noteCommand(id: number, { command, atMs, expiresMs }: Omit<EarlierCommand, 'id'>): void {
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
