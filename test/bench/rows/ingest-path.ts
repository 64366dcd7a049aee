/**
 * The bench's row `ingest-path`: CPU time of the gateway's ingest from a PUBLISH's payload to its answer. There is no
 * broker, and the store writes nothing: a commit just resolves in a later turn of the event loop. 1,000 locks each have
 * one unacknowledged GPS ping of some fifty bytes, with ride tracking on, so that it breaks no rule of the power model.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { GatewayEvents } from '../../../gateway/events.js';
import { Ingest, type Sender } from '../../../gateway/ingest/ingest.js';
import { Locks } from '../../../gateway/locks/locks.js';
import { ALL_STORED, type CommitResult } from '../../../gateway/store/contract/log/commit-result.js';
import { openStore, sqliteUrl } from '../../../gateway/store/open-store.js';
import { afterThisTurn, systemClock } from '../../../proto/clock.js';
import { decodeUplink, encodeUplink } from '../../../proto/wire/codec.js';
import { type Mac, macFromWire } from '../../../proto/wire/mac.js';
import type { Uplink } from '../../../proto/wire/ping.js';
import { NO_COMMANDS } from '../../helpers/commands/no-commands.js';
import { withOverrides } from '../../helpers/durability/sabotage.js';
import { lockSender } from '../../helpers/mqtt/lock-sender.js';
import { RIDE_PING, RIDE_POWER } from '../../helpers/sim/ride-ping.js';
import { cpuSeconds, measureRates, roundCount } from '../measure.js';
import { type BenchOptions, type BenchRow, ratioTo } from '../row.js';

const LOCKS = 1000;
const PINGS_PER_LOCK = 40;
/** When the merchant and the locks are added. Any time would do. */
const ADDED_AT_MS = 1;

/** A ping of a ride, as the head comment describes it. */
function gpsPing(sequence: number): Uplink {
  return {
    boot: 7,
    sequence,
    timeMs: systemClock.now(),
    power: RIDE_POWER,
    kept: 0,
    dropped: 0,
    body: RIDE_PING,
  };
}

/** An ingest on a store that writes nothing, and the locks that send to it. */
async function makeIngest(folder: string): Promise<{ ingest: Ingest; senders: Sender[] }> {
  const store = await openStore(sqliteUrl(folder));
  await store.addMerchant('Bench', ADDED_AT_MS);
  const macs = Array.from(
    { length: LOCKS },
    (_, index) => macFromWire(`A4C138${index.toString(16).padStart(6, '0').toUpperCase()}`) as Mac,
  );
  // The hash is not that of a secret: without a broker, nobody logs in.
  await store.addDevices(
    macs.map((mac) => ({ mac, merchant: 'Bench', simulated: false, secretHash: Buffer.from(mac), nowMs: ADDED_AT_MS })),
  );
  const senders = await Promise.all(macs.map((mac) => lockSender(store, mac)));
  const resolveLater = (): Promise<CommitResult> => {
    return new Promise((resolve) => afterThisTurn(() => resolve(ALL_STORED)));
  };
  const fastStore = withOverrides(store, { append: resolveLater });
  const locks = new Locks(fastStore, systemClock, () => undefined);
  const events = new GatewayEvents();
  const ingest = new Ingest({
    store: fastStore,
    locks,
    clock: systemClock,
    events,
    onStored: () => undefined,
    commands: NO_COMMANDS,
  });
  for (const { deviceId, mac } of senders)
    ingest.recordEvent(deviceId, mac, { type: 'connect', source: 'lock', atMs: systemClock.now() });
  await ingest.idle();
  return { ingest, senders };
}

/** Each lock sends all `payloads`, the next one when the previous one is answered. */
function flood(ingest: Ingest, senders: readonly Sender[], payloads: readonly Uint8Array[]): Promise<void> {
  let unfinishedLocks = senders.length;
  return new Promise((resolve, reject) => {
    const sendNext = (sender: Sender, payloadIndex: number): void => {
      const payload = payloads[payloadIndex];
      if (payload === undefined) {
        unfinishedLocks -= 1;
        if (unfinishedLocks === 0) resolve();
      } else
        ingest.take(sender, payload, (error) =>
          error === undefined ? sendLater(sender, payloadIndex + 1) : reject(error),
        );
    };
    const answered: (readonly [Sender, number])[] = [];
    // As with sockets: locks that are answered in one turn of the event loop send together in a later one.
    const sendLater = (sender: Sender, payloadIndex: number): void => {
      if (answered.push([sender, payloadIndex]) === 1)
        afterThisTurn(() => {
          for (const each of answered.splice(0)) sendNext(...each);
        });
    };
    for (const sender of senders) sendNext(sender, 0);
  });
}

/** The row `ingest-path`, compared with only decoding the same bytes. */
export async function benchIngestPath({ quick }: BenchOptions): Promise<BenchRow> {
  const folder = mkdtempSync(path.join(tmpdir(), 'lockgate-bench-'));
  try {
    const { ingest, senders } = await makeIngest(folder);
    let sequence = 0;
    // All locks send the same bytes, so that encoding them hardly counts in the measured time.
    const makePayloads = (): Uint8Array[] =>
      Array.from({ length: PINGS_PER_LOCK }, () => encodeUplink(gpsPing(++sequence)));
    let payloads = makePayloads();
    const ingestAll = async (): Promise<number> => {
      payloads = makePayloads();
      await flood(ingest, senders, payloads);
      return LOCKS * PINGS_PER_LOCK;
    };
    const decodeAll = (): number => {
      for (let lock = 0; lock < LOCKS; lock++) for (const payload of payloads) decodeUplink(payload);
      return LOCKS * PINGS_PER_LOCK;
    };
    const [rates, peerRates] = await measureRates([ingestAll, decodeAll], cpuSeconds, roundCount(quick));
    await ingest.stop();
    if (rates === undefined || peerRates === undefined) throw new Error('nothing was measured');
    return {
      name: 'ingest-path',
      title: 'from a payload to its commit and answer, without broker and store',
      unit: 'pings/s of one core',
      rates,
      against: [ratioTo('decoding it', rates, peerRates, {})],
      details: [],
    };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
