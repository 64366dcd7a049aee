/**
 * The simulated lock that a user controls in the shell, with its simulated surroundings (its world) and its connection.
 * Without a gateway, time is frozen until the shell advances it; with a gateway, time passes by itself.
 */

import { fleetMacs } from '../../../../firmware-sim/fleet/fleet.js';
import { commandLifetime } from '../../../../firmware-sim/link/command-queue.js';
import type { OpenLink } from '../../../../firmware-sim/link/link.js';
import { MemoryGateway } from '../../../../firmware-sim/link/memory-link.js';
import { mqttLinks } from '../../../../firmware-sim/link/mqtt-link.js';
import type { DiaryEntry } from '../../../../firmware-sim/lock/diary.js';
import { Lock } from '../../../../firmware-sim/lock/lock.js';
import { Prng } from '../../../../firmware-sim/prng.js';
import { VirtualClock } from '../../../../firmware-sim/virtual-clock.js';
import { DirectedWorld } from '../../../../firmware-sim/world/directed-world.js';
import { AMSTERDAM } from '../../../../firmware-sim/world/routes/city.js';
import { readRouteInCity } from '../../../../firmware-sim/world/routes/route-file.js';
import type { WaypointPath } from '../../../../firmware-sim/world/routes/waypoint-route.js';
import type { InitialState } from '../../../../firmware-sim/world/world.js';
import { type Clock, type Milliseconds, RunClock, Seconds, systemClock } from '../../../../proto/clock.js';
import { LockgateError } from '../../../../proto/errors.js';
import { POWER_MODEL } from '../../../../proto/power/model.js';
import { isSilent, keepsConnection, NEVER, rowOfState } from '../../../../proto/power/step/reading.js';
import { commandToJson } from '../../../../proto/trace/writer.js';
import { formatMac, type Mac } from '../../../../proto/wire/mac.js';
import type { Command, Downlink } from '../../../../proto/wire/ping.js';
import type { GatewayClient } from '../../../client.js';
import { passOrAbort } from '../../../terminal/pass-or-abort.js';

/** Called with each diary entry of the lock, in order; `atMs` is the time by the lock's clock. */
export type DiaryListener = (atMs: number, entry: DiaryEntry) => void;

/** The lock and everything that the shell can do with it. */
export interface ShellDevice {
  readonly lock: Lock;
  readonly world: DirectedWorld;
  readonly mac: Mac;
  /** The address where the lock connects, to display; null without a gateway. */
  readonly url: string | null;
  /** Reads a route file for a later ride along it. @throws LockgateError `input-…` if the file has no usable route */
  readRoute(file: string): Promise<void>;
  nowMs(): number;
  /** Lets simulated time pass. With a gateway waits for it, or until `signal` fires. */
  pass(span: Milliseconds, signal: AbortSignal): Promise<void>;
  /** Sends a command to the lock. Returns a sentence with the result. @throws LockgateError if it can't be sent */
  send(command: Command): Promise<string>;
  stop(): Promise<void>;
}

/** The lock's first state. */
export interface ShellInitialState extends Pick<InitialState, 'power' | 'batteryPercent'> {
  readonly seed: string;
}

/** The version that the lock reports at its boot. */
const FIRMWARE_VERSION = '2.4.1';
/** The number of route files whose paths are held in memory. */
const MAX_ROUTES = 10;

/** What {@link lockOf} needs. */
interface LockParts {
  readonly mac: Mac;
  readonly clock: Clock;
  readonly openLink: OpenLink;
  readonly onEntry: DiaryListener;
  readonly bootsBefore?: number;
}

/** Creates the lock and its world. */
function lockOf(
  { seed, power, batteryPercent }: ShellInitialState,
  parts: LockParts,
): Pick<ShellDevice, 'lock' | 'world' | 'mac' | 'readRoute'> {
  const { mac, clock, openLink, onEntry, bootsBefore } = parts;
  const prng = new Prng(seed).fork('shell');
  /** Paths of route files, by file name. */
  const paths = new Map<string, WaypointPath>();
  const world = new DirectedWorld({
    prng: prng.fork('world'),
    city: AMSTERDAM,
    initialState: {
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
    files: paths,
  });
  const lock = new Lock({
    mac,
    firmwareVersion: FIRMWARE_VERSION,
    clock,
    world,
    openLink,
    jitterSeed: prng.fork('lock').uint32(),
    diary: (_mac, atMs, entry) => onEntry(atMs, entry),
    ...(bootsBefore !== undefined && { bootsBefore }),
  });
  const readRoute = async (file: string): Promise<void> => {
    const path = await readRouteInCity(file, AMSTERDAM);
    // A ride that has started no longer needs its path, so the oldest path can be dropped.
    const [oldest] = paths.keys();
    if (paths.size >= MAX_ROUTES && oldest !== undefined) paths.delete(oldest);
    paths.set(file, path);
  };
  return { lock, world, mac, readRoute };
}

/**
 * A lock without a real gateway: a simulated gateway in this process acknowledges all uplinks (messages of the lock).
 */
export function virtualDevice(initialState: ShellInitialState, startMs: number, onEntry: DiaryListener): ShellDevice {
  const clock = new VirtualClock(startMs);
  const waitingCommands: Downlink[] = [];
  let lastCommandId = 0;
  const gateway = new MemoryGateway({}, clock);
  const mac = fleetMacs(initialState.seed, 1)[0] as Mac;
  /** Sends the commands that waited for a connection, as a gateway does (protocol.md §1). */
  const deliver = (): void => {
    for (let next = waitingCommands.shift(); next !== undefined; next = waitingCommands.shift()) {
      if (next.expiresMs > clock.now()) gateway.send(mac, next);
    }
  };
  const parts = lockOf(initialState, {
    mac,
    clock,
    openLink: gateway.open,
    onEntry: (atMs, entry) => {
      onEntry(atMs, entry);
      // After 0 ms: the entry is made in the middle of the lock's step, in which no command may arrive.
      if (entry.type === 'connected') clock.after(0, deliver);
    },
  });
  return {
    ...parts,
    url: null,
    nowMs: () => clock.now(),
    pass: async (span) => clock.run(clock.now() + span),
    send: async (command) => {
      lastCommandId += 1;
      waitingCommands.push({ id: lastCommandId, command, expiresMs: clock.now() + commandLifetime(command) });
      if (!gateway.isConnected(mac)) return `command ${lastCommandId} waits for the lock to connect`;
      // Runs when the shell next lets time pass.
      clock.after(0, deliver);
      return `command ${lastCommandId} is sent`;
    },
    stop: async () => await parts.lock.stop(),
  };
}

/** The gateway of a live lock, and the lock's credentials. */
export interface LiveConnection {
  readonly address: Parameters<typeof mqttLinks>[0];
  readonly url: string;
  readonly mac: Mac;
  readonly secret: string;
  readonly startMs: number;
  readonly speed: number;
  /** The operator interface; null if it is unknown. */
  readonly client: GatewayClient | null;
}

/** A lock that connects to a gateway over MQTT. */
export function liveDevice(
  initialState: ShellInitialState,
  connection: LiveConnection,
  onEntry: DiaryListener,
): ShellDevice {
  const { address, url, mac, secret, client } = connection;
  const clock = new RunClock(connection.startMs, connection.speed);
  const openLink = mqttLinks(address, () => secret);
  // The boot number is the current second, which never repeats: an uplink's key (boot and sequence) must be unique.
  const bootsBefore = Math.floor(systemClock.now() / Seconds(1));
  const parts = lockOf(initialState, { mac, clock, openLink, onEntry, bootsBefore });
  return {
    ...parts,
    url,
    nowMs: () => clock.now(),
    pass: (span, signal) => passOrAbort(clock, span, signal),
    send: async (command) => {
      if (client === null)
        throw new LockgateError('input-shell', 'a command needs the operator’s interface: omit --secrets');
      const { type, ...parameters } = commandToJson(command);
      const switchesAirplaneOn = command.type === 'set-power' && command.airplane === true;
      const { commands } = await client.post<{ commands: readonly SentJson[] }>('/commands', {
        type,
        parameters,
        macs: [formatMac(mac)],
        ...(switchesAirplaneOn && { confirm_airplane: true }),
        asked_by: 'sim shell',
      });
      const [sent] = commands;
      if (sent?.error !== undefined) throw new LockgateError('input-shell', sent.error.detail);
      return `command ${sent?.id} is ${sent?.state}`;
    },
    stop: async () => await parts.lock.stop(),
  };
}

/** The operator interface's answer about a command. */
interface SentJson {
  readonly id?: number;
  readonly state?: string;
  readonly error?: { readonly detail: string };
}

/** Whether the lock is quiet: it sleeps, or has a connection that it keeps open, and nothing else is in progress. */
export function isQuiet({ lock: { state }, world }: ShellDevice, nowMs: number): boolean {
  if (world.isBusy || state.moving || state.tracking !== 'none' || state.inFlight) return false;
  // A GPS fix is searched for the ping of a state change, for the daily ping, or for a command.
  const isSearchingGps =
    state.stateGpsUntilMs !== NEVER || state.periodGpsUntilMs !== NEVER || state.locatingByGps.length > 0;
  if (isSearchingGps || state.locking.length > 0 || state.locatingByCell.length > 0) return false;
  const powerState = rowOfState(POWER_MODEL, state.stateName);
  // Without a connection the lock sleeps if it can't connect, must not, or has nothing to send.
  if (state.link === 'down')
    return !state.covered || isSilent(powerState) || (state.waiting.length === 0 && !state.resetDue);
  return state.link === 'up' && state.waiting.length === 0 && keepsConnection(powerState, state.highWindow, nowMs);
}
