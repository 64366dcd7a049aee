/**
 * The lock that a person drives by hand, its world, and its line: without a gateway, where time stands until it is told
 * to go on, or against one, where it goes by itself.
 */

import { fleetMacs } from '../../../../firmware-sim/fleet/fleet.js';
import type { OpenLink } from '../../../../firmware-sim/link/link.js';
import { MemoryGateway } from '../../../../firmware-sim/link/memory-link.js';
import { mqttLinks } from '../../../../firmware-sim/link/mqtt-link.js';
import type { DiaryEntry } from '../../../../firmware-sim/lock/diary.js';
import { Lock } from '../../../../firmware-sim/lock/lock.js';
import { QueueClock } from '../../../../firmware-sim/lock/queue-clock.js';
import { Prng } from '../../../../firmware-sim/prng.js';
import { DirectedWorld } from '../../../../firmware-sim/world/directed-world.js';
import { AMSTERDAM } from '../../../../firmware-sim/world/routes/city.js';
import { readWayFile } from '../../../../firmware-sim/world/routes/way-file.js';
import type { WaypointPath } from '../../../../firmware-sim/world/routes/waypoint-route.js';
import type { WorldBeginning } from '../../../../firmware-sim/world/world.js';
import {
  type Clock,
  Hours,
  type Milliseconds,
  Minutes,
  RunClock,
  Seconds,
  systemClock,
} from '../../../../proto/clock.js';
import { LockgateError } from '../../../../proto/errors.js';
import { POWER_MODEL } from '../../../../proto/power/model.js';
import { isSilent, keepsConnection, NEVER, rowOf } from '../../../../proto/power/step/reading.js';
import { commandToJson } from '../../../../proto/trace/writer.js';
import { formatMac, type Mac } from '../../../../proto/wire/mac.js';
import type { Command, Downlink } from '../../../../proto/wire/ping.js';
import type { GatewayClient } from '../../../client.js';

/** Told of all that happens to the lock, in order; `atMs` is the lock's clock. */
export type DiaryListener = (atMs: number, entry: DiaryEntry) => void;

export interface ShellSite {
  readonly lock: Lock;
  readonly world: DirectedWorld;
  readonly mac: Mac;
  /** For people: where the lock connects; null without a gateway. */
  readonly url: string | null;
  /** Reads the way of a file, for a ride along it. @throws LockgateError `input-…` for a file that can't be ridden */
  readWay(file: string): Promise<void>;
  nowMs(): number;
  /** Lets so much time pass. Against a gateway it is waited for, until `signal` fires. */
  pass(span: Milliseconds, signal: AbortSignal): Promise<void>;
  /** Sends a command. Returns what is to be said of it. @throws LockgateError where nobody can */
  send(command: Command): Promise<string>;
  stop(): Promise<void>;
}

/** How the lock is found. */
export interface ShellBeginning extends Pick<WorldBeginning, 'power' | 'batteryPercent'> {
  readonly seed: string;
}

const FIRMWARE_VERSION = '2.4.1';
/** Ways of files that are kept. */
const MOST_WAYS = 10;

interface Parts {
  readonly mac: Mac;
  readonly clock: Clock;
  readonly openLink: OpenLink;
  readonly told: DiaryListener;
  readonly bootsBefore?: number;
}

function lockOf(
  { seed, power, batteryPercent }: ShellBeginning,
  parts: Parts,
): Pick<ShellSite, 'lock' | 'world' | 'mac' | 'readWay'> {
  const { mac, clock, openLink, told, bootsBefore } = parts;
  const prng = new Prng(seed).fork('shell');
  const files = new Map<string, WaypointPath>();
  const world = new DirectedWorld({
    prng: prng.fork('world'),
    city: AMSTERDAM,
    beginning: {
      lockState: 'locked',
      batteryPercent,
      power,
      ebikeVolts: null,
      tetherState: 'detached',
      covered: true,
      skyOpen: true,
    },
    place: { eastMeters: 0, northMeters: 0 },
    places: new Map(),
    files,
  });
  const lock = new Lock({
    mac,
    firmwareVersion: FIRMWARE_VERSION,
    clock,
    world,
    openLink,
    chance: prng.fork('lock').uint32(),
    diary: (_mac, atMs, entry) => told(atMs, entry),
    ...(bootsBefore !== undefined && { bootsBefore }),
  });
  const readWay = async (file: string): Promise<void> => {
    const way = await readWayFile(file, AMSTERDAM);
    // A ride that has begun needs its file no more.
    const [oldest] = files.keys();
    if (files.size >= MOST_WAYS && oldest !== undefined) files.delete(oldest);
    files.set(file, way);
  };
  return { lock, world, mac, readWay };
}

/** A lock without a gateway: what it connects to takes everything. */
export function virtualSite(beginning: ShellBeginning, startMs: number, told: DiaryListener): ShellSite {
  const clock = new QueueClock(startMs);
  const waiting: Downlink[] = [];
  let commands = 0;
  const gateway = new MemoryGateway({}, clock);
  const mac = fleetMacs(beginning.seed, 1)[0] as Mac;
  /** Commands wait for a connection, as a gateway has them wait (protocol.md §1). */
  const deliver = (): void => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      if (next.expiresMs > clock.now()) gateway.send(mac, next);
    }
  };
  const parts = lockOf(beginning, {
    mac,
    clock,
    openLink: gateway.open,
    told: (atMs, entry) => {
      told(atMs, entry);
      if (entry.type === 'connected') clock.after(0, deliver);
    },
  });
  return {
    ...parts,
    url: null,
    nowMs: () => clock.now(),
    pass: async (span) => clock.run(clock.now() + span),
    send: async (command) => {
      commands += 1;
      waiting.push({ id: commands, command, expiresMs: clock.now() + expiresAfter(command) });
      if (!gateway.isConnected(mac)) return `command ${commands} waits for the lock to connect`;
      clock.after(0, deliver);
      return `command ${commands} is sent`;
    },
    stop: async () => await parts.lock.stop(),
  };
}

/** Protocol.md §1. */
function expiresAfter({ type }: Command): Milliseconds {
  return type === 'unlock' || type === 'lock' || type === 'siren' ? Minutes(2) : Hours(24);
}

/** What a live lock needs of its gateway. */
export interface LiveLine {
  readonly address: Parameters<typeof mqttLinks>[0];
  readonly url: string;
  readonly mac: Mac;
  readonly secret: string;
  readonly startMs: number;
  readonly speed: number;
  /** Null where the operator's interface isn't known. */
  readonly client: GatewayClient | null;
}

/** A lock against a gateway, over MQTT. */
export function liveSite(beginning: ShellBeginning, line: LiveLine, told: DiaryListener): ShellSite {
  const { address, url, mac, secret, client } = line;
  const clock = new RunClock(line.startMs, line.speed);
  const openLink = mqttLinks(address, () => secret);
  // A name that was used must not be used again: seconds never repeat.
  const bootsBefore = Math.floor(systemClock.now() / Seconds(1));
  const parts = lockOf(beginning, { mac, clock, openLink, told, bootsBefore });
  return {
    ...parts,
    url,
    nowMs: () => clock.now(),
    pass: (span, signal) => waited(clock, span, signal),
    send: async (command) => {
      if (client === null)
        throw new LockgateError('input-shell', 'a command needs the operator’s interface: leave --secrets out');
      const { type, ...parameters } = commandToJson(command);
      const airplane = command.type === 'set-power' && command.airplane === true;
      const { commands } = await client.post<{ commands: readonly SentJson[] }>('/commands', {
        type,
        parameters,
        macs: [formatMac(mac)],
        ...(airplane && { confirm_airplane: true }),
        asked_by: 'sim shell',
      });
      const [sent] = commands;
      if (sent?.error !== undefined) throw new LockgateError('input-shell', sent.error.detail);
      return `command ${sent?.id} is ${sent?.state}`;
    },
    stop: async () => await parts.lock.stop(),
  };
}

interface SentJson {
  readonly id?: number;
  readonly state?: string;
  readonly error?: { readonly detail: string };
}

async function waited(clock: Clock, span: Milliseconds, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const end = (): void => {
      timer.cancel();
      // The signal lasts for the whole session: a listener of each wait would pile up there.
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = clock.after(span, end);
    signal.addEventListener('abort', end, { once: true });
  });
}

/** Whether nothing goes on any more, but what a lock does all day: it sleeps, or keeps its connection. */
export function isQuiet({ lock: { state }, world }: ShellSite, nowMs: number): boolean {
  if (world.isBusy || state.moving || state.tracking !== 'none' || state.inFlight) return false;
  const searches = state.stateGpsUntilMs !== NEVER || state.periodGpsUntilMs !== NEVER || state.locating.length > 0;
  if (searches || state.locking.length > 0 || state.locatingByCell.length > 0) return false;
  const row = rowOf(POWER_MODEL, state.stateName);
  if (state.link === 'down') return !state.covered || isSilent(row) || (state.waiting.length === 0 && !state.resetDue);
  return state.link === 'up' && state.waiting.length === 0 && keepsConnection(row, state.highWindow, nowMs);
}
