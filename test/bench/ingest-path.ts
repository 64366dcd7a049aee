/**
 * CPU time of the path between "a PUBLISH's payload is here" and "the store has it, answer", without a broker: 1,000
 * locks, each with one GPS ping of some fifty bytes in flight, ride tracking on, so that `judge` has nothing to find.
 *
 *     node dist/test/bench/ingest-path.js [--store none|sqlite] [--pings N]
 *
 * With `none` a commit resolves in a later turn of the event loop and is forgotten: what is left is the ingest itself.
 * Times are those of the process, all threads together; run it under `--cpu-prof` to see where they go.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { GatewayEvents } from '../../gateway/events.js';
import { Ingest, type Sender } from '../../gateway/ingest.js';
import { Locks } from '../../gateway/locks.js';
import { openSqliteStore } from '../../gateway/store/sqlite-store.js';
import { afterThisTurn, systemClock } from '../../proto/clock.js';
import { decodeUplink, encodeUplink } from '../../proto/codec.js';
import { type Mac, macFromWire } from '../../proto/mac.js';
import type { Uplink } from '../../proto/ping.js';
import { judgeInPlace } from '../../proto/power-judge.js';
import { newBelief } from '../../proto/power-judge-belief.js';
import { newVerdict } from '../../proto/power-judge-event.js';
import { POWER_MODEL } from '../../proto/power-model.js';
import { lockSender } from '../helpers/lock-sender.js';
import { NO_COMMANDS } from '../helpers/no-commands.js';
import { overriding } from '../helpers/sabotage.js';

const LOCKS = 1000;
const ROUNDS = 5;

function gpsPing(sequence: number): Uplink {
  return {
    boot: 7,
    sequence,
    timeMs: systemClock.now(),
    power: { mode: 'MID', rideTracking: true, airplane: false, recovery: false },
    kept: 0,
    dropped: 0,
    body: {
      kind: 'gps',
      reason: 'REASON_UNLOCKED_PING',
      lockState: 'unlocked',
      batteryPercent: 81,
      ebikeVolts: null,
      tetherState: 'detached',
      position: { latitudeDegrees: 52.37, longitudeDegrees: 4.89, uncertaintyMeters: 8 },
      speedMetersPerSecond: 3,
      directionDegrees: 90,
    },
  };
}

/** CPU microseconds that one of `count` takes. */
async function cpuOf(count: number, work: () => void | Promise<void>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / count;
}

async function makeIngest(folder: string, isStored: boolean): Promise<{ ingest: Ingest; senders: Sender[] }> {
  const store = await openSqliteStore(folder);
  await store.addMerchant('Bench', 1);
  const macs = Array.from(
    { length: LOCKS },
    (_, at) => macFromWire(`A4C138${at.toString(16).padStart(6, '0').toUpperCase()}`) as Mac,
  );
  await store.addDevices(
    macs.map((mac) => ({ mac, merchant: 'Bench', simulated: false, secretHash: Buffer.from(mac), nowMs: 1 })),
  );
  const senders = await Promise.all(macs.map((mac) => lockSender(store, mac)));
  const later = (): Promise<void> => new Promise((resolve) => afterThisTurn(resolve));
  const used = isStored ? store : overriding(store, { append: later });
  const locks = new Locks(used, systemClock, () => undefined);
  const events = new GatewayEvents();
  const ingest = new Ingest({
    store: used,
    locks,
    clock: systemClock,
    events,
    onStored: () => undefined,
    commands: NO_COMMANDS,
  });
  for (const { deviceId, mac } of senders)
    ingest.happen(deviceId, mac, { type: 'connect', source: 'lock', atMs: systemClock.now() });
  await ingest.idle();
  return { ingest, senders };
}

/** Each lock sends its next ping when the one before is answered, until it has sent all of `payloads`. */
function flood(ingest: Ingest, senders: readonly Sender[], payloads: readonly Uint8Array[]): Promise<void> {
  let left = senders.length;
  return new Promise((resolve, reject) => {
    const next = (sender: Sender, at: number): void => {
      const payload = payloads[at];
      if (payload === undefined) {
        left -= 1;
        if (left === 0) resolve();
      } else ingest.take(sender, payload, (error) => (error === undefined ? soon(sender, at + 1) : reject(error)));
    };
    const answered: (readonly [Sender, number])[] = [];
    // As over sockets: what is answered in one turn comes back in a later one, together.
    const soon = (sender: Sender, at: number): void => {
      if (answered.push([sender, at]) === 1)
        afterThisTurn(() => {
          for (const each of answered.splice(0)) next(...each);
        });
    };
    for (const sender of senders) next(sender, 0);
  });
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { store: { type: 'string', default: 'none' }, pings: { type: 'string', default: '200000' } },
  });
  const perLock = Math.ceil(Number(values.pings) / ROUNDS / LOCKS);
  const folder = mkdtempSync(path.join(tmpdir(), 'lockgate-ingest-'));
  const { ingest, senders } = await makeIngest(folder, values.store === 'sqlite');
  for (let round = 0; round < ROUNDS; round++) {
    const payloads = Array.from({ length: perLock }, (_, at) => encodeUplink(gpsPing(round * perLock + at + 1)));
    const whole = await cpuOf(LOCKS * perLock, () => flood(ingest, senders, payloads));
    console.log(`round ${round + 1}: ${whole.toFixed(2)} µs CPU per ping, ${payloads[0]?.length} bytes each`);
  }
  await ingest.stop();
  const parts = await splitOf(LOCKS * perLock);
  console.log(`of that, by themselves: decode ${parts.decode.toFixed(2)}, judge ${parts.judge.toFixed(2)}`);
  rmSync(folder, { recursive: true });
  process.exit(0);
}

async function splitOf(count: number): Promise<{ decode: number; judge: number }> {
  const bytes = encodeUplink(gpsPing(1));
  const belief = newBelief(POWER_MODEL, 'A4:C1:38:00:00:00', systemClock.now(), { isConnected: true });
  const decode = await cpuOf(count, () => {
    for (let at = 0; at < count; at++) decodeUplink(bytes);
  });
  const uplink = gpsPing(0);
  const judge = await cpuOf(count, () => {
    for (let sequence = 1; sequence <= count; sequence++) {
      const event = {
        type: 'uplink',
        source: 'lock',
        credential: 1,
        copy: 'new',
        uplink: { ...uplink, sequence },
        atMs: uplink.timeMs,
      } as const;
      judgeInPlace(POWER_MODEL, belief, event, newVerdict());
    }
  });
  return { decode, judge };
}

await main();
