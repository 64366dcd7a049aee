// The order of arrival does not matter (docs/protocol.md §3, Late data): locks with 20 % repeated and 20 % reordered
// uplinks, reboots and clocks that are up to ten years wrong cause one event for each uplink, and the same device state
// as uplinks in order. Tested with the gateway's ingest (which takes uplinks), judge (which checks them) and store, and
// for some locks over MQTT to a merchant's webhook receiver.

import { cpSync } from 'node:fs';
import t from 'tap';
import { Prng } from '../../firmware-sim/prng.js';
import { GatewayEvents } from '../../gateway/events.js';
import { Ingest, type Sender } from '../../gateway/ingest/ingest.js';
import type { DeviceState } from '../../gateway/locks/device-state.js';
import { startListening, stopListening } from '../../gateway/locks/listening.js';
import { Locks } from '../../gateway/locks/locks.js';
import type { Store } from '../../gateway/store/contract/store.js';
import { ManualClock, Minutes, Seconds } from '../../proto/clock.js';
import { findRule } from '../../proto/power/rules.js';
import { decodeUplink } from '../../proto/wire/codec.js';
import { formatMac } from '../../proto/wire/mac.js';
import { isPingUplink } from '../../proto/wire/ping.js';
import { NO_COMMANDS } from '../helpers/commands/no-commands.js';
import {
  type FleetUplink,
  fleetUplinks,
  NETWORK_DELAY,
  shuffleAndRepeat,
} from '../helpers/durability/fleet-uplinks.js';
import { MERCHANT, testGateway, testMac } from '../helpers/gateway/test-gateway.js';
import { testReceiver } from '../helpers/gateway/test-receiver.js';
import { quickOrLong } from '../helpers/house/test-length.js';
import { lockSender } from '../helpers/mqtt/lock-sender.js';
import { TestLock } from '../helpers/mqtt/test-lock.js';
import { START_MS } from '../helpers/pair/judged-uplinks.js';
import { openStore } from '../helpers/store/new-store.js';
import { type Teardown, tempFolder } from '../helpers/store/temp-folder.js';

/** The first number in `npm test`, the second in `npm run test:long`. */
const LOCKS = quickOrLong(200, 1000);
const SHARE_LATE = 0.2;
const SHARE_REPEATED = 0.2;
/** How many uplinks arrive before the clock advances. They are stored in one commit. */
const COMMIT_UPLINKS = 1000;
/** A limit for reading that is greater than the number of entries of any lock. */
const READ_LIMIT = 100_000;
/** How likely a lock is to connect again after an uplink. */
const RECONNECT_PROBABILITY = 0.02;

const seed = Number(process.env.LOCKGATE_SEED ?? 1);
t.comment(`LOCKGATE_SEED=${seed} node dist/test/firmware-sim/fleet-order.test.js: another seed is another fleet`);

/**
 * Members that may differ between two orders of arrival and are not compared (docs/protocol.md §3, Late data: only
 * `received_at`, `buffered` and the findings that depend on connections). All other members of the state must be equal.
 */
const MAY_DIFFER: Readonly<Record<string, readonly string[]>> = {
  'the time of arrival': ['receivedAtMs', 'nowMs', 'stateSinceMs', 'periodStateSinceMs', 'lastPeriodMs'],
  'the connection': [
    ...['isConnected', 'firstConnectionMs', 'connectedSinceMs', 'offlineSinceMs', 'activityMs'],
    ...['hasUplinks', 'closeSeen', 'listeningSinceMs', 'connections', 'isConnectionWhole', 'hasClosePing'],
    ...['connectionFirst', 'connectionLast', 'connectionHighest', 'connectionHighestBoot', 'networkPings'],
    ...['commandsSinceMs', 'windowSinceMs'],
  ],
  'findings about missing messages, which depend on the two above': [
    ...['dueMs', 'isUnexplainedReported', 'isOverdueReported', 'isWindowReported', 'isRecoveryReported'],
  ],
  'gaps in the sequence numbers, which depend on how long the judge waited': [
    ...['gapDueUplinks', 'gapDueMs', 'holeSinceMs', 'holeSinceUplinks', 'isHoleOverdue', 'lost', 'reported'],
  ],
};
const NOT_COMPARED = new Set(Object.values(MAY_DIFFER).flat());

/** The members of the state that don't depend on the order of arrival. */
function lastingState(json: string): unknown {
  return JSON.parse(json, (key, value) => (NOT_COMPARED.has(key) ? undefined : value));
}

/** An uplink that arrives from a lock, by the number of the lock. */
interface Arrival {
  readonly lock: number;
  readonly fleetUplink: FleetUplink;
}

/** What a gateway has stored at the end. */
interface FinalState {
  /** `lock boot/sequence bytes`, sorted. */
  readonly stored: readonly string[];
  /** The event ids of new uplinks, sorted. */
  readonly eventIds: readonly string[];
  readonly repeats: number;
  readonly states: readonly unknown[];
  /** The findings that depend only on an uplink's content. */
  readonly findings: readonly string[];
  /** Uplinks whose `buffered` is not what the wait between making and receiving them demands. */
  readonly wronglyBuffered: readonly string[];
}

/** Ingest, judge and store of a gateway, without listeners. */
class GatewayParts {
  readonly clock = new ManualClock(START_MS);
  readonly events = new GatewayEvents();
  readonly eventIds: string[] = [];
  repeats = 0;
  readonly store: Store;
  readonly senders: readonly Sender[];
  #locks: Locks | undefined;
  #ingest: Ingest | undefined;

  private constructor(store: Store, senders: readonly Sender[]) {
    this.store = store;
    this.senders = senders;
    this.events.on('uplink', ({ repeated, uplink, eventId }) => {
      if (repeated) this.repeats += 1;
      else if (isPingUplink(uplink)) this.eventIds.push(eventId);
    });
  }

  /** Opens the parts on a copy of the folder. */
  static async open(test: Teardown, provisioned: string): Promise<GatewayParts> {
    const folder = tempFolder(test);
    cpSync(provisioned, folder, { recursive: true });
    const store = await openStore(folder);
    const senders: Sender[] = [];
    for (let lock = 0; lock < LOCKS; lock++) senders.push(await lockSender(store, testMac(lock)));
    const parts = new GatewayParts(store, senders);
    await parts.listen();
    return parts;
  }

  async listen(): Promise<void> {
    const { store, clock, events } = this;
    const locks = new Locks(store, clock, (due) => {
      for (const { deviceId, mac } of due) ingest.recordEvent(deviceId, mac, { type: 'tick', atMs: clock.now() });
    });
    const ingest = new Ingest({ commands: NO_COMMANDS, store, locks, clock, events, onStored: () => undefined });
    await startListening({ locks, ingest, clock, lastRanMs: null });
    this.#locks = locks;
    this.#ingest = ingest;
  }

  get ingest(): Ingest {
    if (this.#ingest === undefined) throw new Error('the gateway is not running');
    return this.#ingest;
  }

  async end(): Promise<void> {
    if (this.#locks === undefined) return;
    await stopListening({ locks: this.#locks, ingest: this.ingest, clock: this.clock });
  }

  /** Tells the judge that a lock has connected. @param lock its number */
  connects(lock: number): void {
    const { deviceId, mac } = this.senders[lock] as Sender;
    const atMs = this.clock.now();
    this.ingest.recordEvent(deviceId, mac, { type: 'connect', source: 'lock', atMs });
  }
}

/** Makes a data folder in which the locks are registered. */
async function provisionedFolder(test: Teardown): Promise<string> {
  const folder = tempFolder(test);
  const store = await openStore(folder);
  await store.addMerchant(MERCHANT, START_MS);
  for (let lock = 0; lock < LOCKS; lock++) {
    const mac = testMac(lock);
    // Any bytes: no lock logs in.
    const secretHash = Buffer.from(mac);
    await store.addDevice({ mac, merchant: MERCHANT, simulated: false, secretHash, nowMs: START_MS });
  }
  await store.close();
  return folder;
}

/** Ingests the arrivals in order, and returns the final state. */
async function arrive(
  test: Teardown,
  provisioned: string,
  arrivals: readonly Arrival[],
  random: Prng,
): Promise<FinalState> {
  const parts = await GatewayParts.open(test, provisioned);
  /** How many uplinks the ingest refused. */
  let errors = 0;
  const answer = (error?: Error): void => {
    if (error !== undefined) errors += 1;
  };
  for (let lock = 0; lock < LOCKS; lock++) parts.connects(lock);
  for (let next = 0; next < arrivals.length; next += COMMIT_UPLINKS) {
    const batch = arrivals.slice(next, next + COMMIT_UPLINKS);
    const newestMs = Math.max(...batch.map(({ fleetUplink }) => fleetUplink.trueMs));
    parts.clock.advance(Math.max(newestMs + NETWORK_DELAY - parts.clock.now(), Seconds(1)));
    for (const { lock, fleetUplink } of batch) {
      parts.ingest.take(parts.senders[lock] as Sender, fleetUplink.bytes, answer);
      if (random.chance(RECONNECT_PROBABILITY)) parts.connects(lock);
    }
    await parts.ingest.idle();
    // Halfway the gateway restarts on its stored data.
    if (next < arrivals.length / 2 && next + COMMIT_UPLINKS >= arrivals.length / 2) {
      await parts.end();
      await parts.listen();
    }
  }
  await parts.end();
  if (errors > 0) throw new Error(`${errors} uplinks were refused`);
  const finalState = await readFinalState(parts);
  await parts.store.close();
  return finalState;
}

/** Reads what the gateway has stored. */
async function readFinalState(parts: GatewayParts): Promise<FinalState> {
  const [stored, states, findings, wronglyBuffered]: [string[], unknown[], string[], string[]] = [[], [], [], []];
  for (const { deviceId, mac } of parts.senders) {
    for await (const entries of parts.store.readLog(deviceId, READ_LIMIT)) {
      for (const entry of entries) {
        if (entry.type !== 'uplink') continue;
        const { boot, sequence, bytes, receivedAtMs, buffered } = entry.uplink;
        stored.push(uplinkText(mac, boot, sequence, bytes));
        const decoded = decodeUplink(bytes);
        if (!decoded.ok || buffered !== receivedAtMs - decoded.value.timeMs > Minutes(1))
          wronglyBuffered.push(`${mac} ${boot}/${sequence}`);
      }
    }
    const state = await parts.store.readDeviceState(deviceId);
    states.push(lastingState(state ?? 'null'));
    for (const { finding } of await parts.store.readFindings(deviceId, READ_LIMIT)) {
      const { rule, about } = finding;
      if (findRule(rule)?.restsOn === 'content') findings.push(`${mac} ${rule} ${about?.boot}/${about?.sequence}`);
    }
  }
  const { eventIds, repeats } = parts;
  return {
    stored: stored.sort(),
    eventIds: eventIds.sort(),
    repeats,
    states,
    findings: [...new Set(findings)].sort(),
    wronglyBuffered,
  };
}

function uplinkText(mac: string, boot: number, sequence: number, bytes: Buffer): string {
  return `${mac} ${boot}/${sequence} ${bytes.toString('hex')}`;
}

/** The arrivals of all locks in one random order that preserves the order of each lock. */
function interleave(random: Prng, fleet: readonly (readonly FleetUplink[])[]): Arrival[] {
  return fleet
    .flatMap((arrivals, lock) => {
      const places = arrivals.map(() => random.fraction()).sort((a, b) => a - b);
      return arrivals.map((fleetUplink, index) => ({ lock, fleetUplink, place: places[index] as number }));
    })
    .sort((a, b) => a.place - b.place);
}

t.test(
  'a fleet with repeated, late and reordered uplinks ends in the same state as with uplinks in order',
  async (t) => {
    const random = new Prng(`fleet ${seed}`);
    const fleet = Array.from({ length: LOCKS }, (_, lock) => fleetUplinks(random.fork(lock), START_MS));
    const allMade = fleet.flatMap((all, lock) => all.map((fleetUplink) => ({ lock, fleetUplink })));
    // `trueMs` is when the lock made the uplink by the true time; the uplink has the time of the lock's wrong clock.
    const inOrder = [...allMade].sort((a, b) => a.fleetUplink.trueMs - b.fleetUplink.trueMs);
    const arrivals = interleave(
      random,
      fleet.map((all) => shuffleAndRepeat(random, all, SHARE_LATE, SHARE_REPEATED)),
    );
    const repeats = arrivals.length - allMade.length;
    t.comment(`${allMade.length} uplinks, ${repeats} of them twice`);
    t.ok(Math.abs(repeats / allMade.length - SHARE_REPEATED) < 0.01, 'the share that arrives twice');

    const folder = await provisionedFolder(t);
    const afterOrdered = await arrive(t, folder, inOrder, random.fork('in order'));
    const afterShuffled = await arrive(t, folder, arrivals, random.fork('mangled'));
    const expected = allMade
      .map(({ lock, fleetUplink: { uplink, bytes } }) => uplinkText(testMac(lock), uplink.boot, uplink.sequence, bytes))
      .sort();
    const pings = allMade.filter(({ fleetUplink: { uplink } }) => isPingUplink(uplink)).length;
    for (const [name, finalState] of [
      ['in order', afterOrdered],
      ['out of order', afterShuffled],
    ] as const) {
      t.ok(same(finalState.stored, expected), `${name}: exactly the uplinks that were made are stored, once each`);
      t.equal(finalState.eventIds.length, pings, `${name}: an event for each ping`);
      t.equal(new Set(finalState.eventIds).size, pings, `${name}: each event has a unique id`);
      t.same(finalState.wronglyBuffered, [], `${name}: an uplink is buffered if it came over 60 s after its time`);
    }
    t.equal(afterOrdered.repeats, 0);
    t.equal(afterShuffled.repeats, repeats, 'repeats were recognised');
    t.ok(same(afterOrdered.eventIds, afterShuffled.eventIds), 'the same event ids');
    t.ok(afterOrdered.findings.length > LOCKS, `${afterOrdered.findings.length} findings depend on content`);
    t.ok(same(afterOrdered.findings, afterShuffled.findings), 'the findings are the same');
    const differing = fleet.flatMap((_, lock) =>
      JSON.stringify(afterOrdered.states[lock]) === JSON.stringify(afterShuffled.states[lock]) ? [] : [lock],
    );
    t.same(differing, [], 'the states of all locks are the same');
    for (const lock of differing.slice(0, 3))
      t.same(afterShuffled.states[lock], afterOrdered.states[lock], `lock ${lock}`);
    const state = afterOrdered.states[0] as DeviceState;
    t.hasProps(state.belief, ['power', 'batteryPercent', 'lockState', 'position', 'highWindow', 'state', 'periods']);
    const unknown = allMade.filter(({ fleetUplink: { uplink } }) =>
      reasonOf(uplink.body).startsWith('REASON_UNRECOGNIZED_'),
    );
    t.ok(unknown.length > LOCKS, `${unknown.length} uplinks with unknown reasons are stored unchanged`);
  },
);

/** Compares long lists without the cost of a printed difference. */
function same(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((text, index) => text === b[index]);
}

function reasonOf(body: FleetUplink['uplink']['body']): string {
  return body.kind === 'ack' ? '' : body.reason;
}

/** The first number in `npm test`, the second in `npm run test:long`. */
const MQTT_LOCKS = quickOrLong(15, 50);
/** Over how many connections, one after another, a lock sends its uplinks. */
const CONNECTIONS = 3;

t.test('over MQTT each ping reaches the merchant under a single id', async (t) => {
  const random = new Prng(`mqtt ${seed}`);
  const gateway = await testGateway(t);
  const receiver = await testReceiver(t);
  await gateway.accounts.addWebhookUrl({ url: receiver.url });
  // So long ago that all uplinks were made before now.
  const startMs = gateway.clock.now() - Minutes(400);
  /** The uplinks that were sent, by MAC, boot and sequence. */
  const sentByKey = new Map<string, FleetUplink>();

  const sendAll = async (number: number): Promise<void> => {
    const mac = testMac(number);
    const { secret } = await gateway.accounts.addDevice({ mac });
    const all = fleetUplinks(random.fork(number), startMs);
    const arrivals = shuffleAndRepeat(random, all, SHARE_LATE, SHARE_REPEATED);
    const perConnection = Math.ceil(arrivals.length / CONNECTIONS);
    for (let from = 0; from < arrivals.length; from += perConnection) {
      const lock = await TestLock.connect(t, gateway.mqttPort, mac, secret);
      await Promise.all(
        arrivals.slice(from, from + perConnection).map(async (fleetUplink) => {
          await lock.send(fleetUplink.bytes);
          sentByKey.set(`${formatMac(mac)} ${fleetUplink.uplink.boot}/${fleetUplink.uplink.sequence}`, fleetUplink);
        }),
      );
      await lock.client.endAsync();
    }
  };
  await Promise.all(Array.from({ length: MQTT_LOCKS }, (_, number) => sendAll(number)));

  const pings = [...sentByKey].filter(([, { uplink }]) => isPingUplink(uplink));
  await receiver.waitForRequests(pings.length);
  const idsByKey = new Map<string, Set<unknown>>();
  const keysById = new Map<unknown, Set<string>>();
  const faults: string[] = [];
  for (const { headers, json } of receiver.requests) {
    const key = `${json.mac_addr} ${json.boot}/${json.sequence}`;
    const id = headers['webhook-id'];
    idsByKey.set(key, (idsByKey.get(key) ?? new Set()).add(id));
    keysById.set(id, (keysById.get(id) ?? new Set()).add(key));
    const uplink = sentByKey.get(key)?.uplink;
    if (uplink === undefined || reasonOf(uplink.body) !== json.reason) faults.push(`${key}: reason ${json.reason}`);
    const waitedMs = Date.parse(String(json.received_at)) - (uplink?.timeMs ?? 0);
    if (json.buffered !== waitedMs > Minutes(1)) faults.push(`${key}: buffered ${json.buffered} after ${waitedMs} ms`);
  }
  t.same(faults, [], 'reasons (also unknown ones) and buffered are right');
  t.same([...idsByKey.keys()].sort(), pings.map(([key]) => key).sort(), `${pings.length} pings, and no others`);
  t.ok(
    [...idsByKey.values()].every((ids) => ids.size === 1) && [...keysById.values()].every((keys) => keys.size === 1),
    'each ping has one webhook id, and each id belongs to one ping',
  );
  t.equal(receiver.requests.length, pings.length, 'a receiver that answers gets each ping once');
  t.ok(receiver.requests.some(({ json }) => String(json.reason).startsWith('REASON_UNRECOGNIZED_')));
});
