/** Sends mutated packets to a controlled broker (hand-broker.ts), and checks that honest locks are answered in time. */

import { testMac } from '../gateway/test-gateway.js';
import { SeededChance } from '../pair/seeded-chance.js';
import type { Teardown } from '../store/temp-folder.js';
import { type HandSocket, handBroker, turns } from './hand-broker.js';
import { connectEnd, cutAnywhere, expectedOf, type MutatedStream, makeMutated, packetsOf } from './mutated-packets.js';
import { ACCEPTED, puback, publishPacket } from './raw-lock.js';

const SECRET = 'lgs_hand';
const HONEST_LOCKS = 4;
/** Turns of the event loop within which an honest lock's ping must be answered. */
const HONEST_TURNS = 3;
/** Turns for a stream's CONNECT and for the packets after it. */
const STREAM_TURNS = 14;
const MAX_FAULTS = 10;

export interface MutatedSeen {
  /** Faults, each with the seed of its stream. */
  readonly faults: string[];
  readonly streams: number;
  readonly mutated: number;
  /** Number of streams whose CONNECT was accepted, and of streams whose connection the gateway closed. */
  readonly letIn: number;
  readonly ended: number;
  readonly uplinks: number;
  /** Maximum number of turns that an honest lock's ping waited for its PUBACK. */
  maxTurns: number;
  /** Connections that are open at the end, except for the honest locks'. */
  readonly left: number;
}

/** Sends streams with at least `mutated` mutated packets in all, each stream with a different seed. */
export async function runMutated(test: Teardown, seed: number, mutated: number): Promise<MutatedSeen> {
  const site = await handBroker(test);
  const honest: HandSocket[] = [];
  for (let index = 1; index <= HONEST_LOCKS; index++) honest.push(await site.connect(testMac(index)));
  const seen = { faults: [] as string[], streams: 0, mutated: 0, letIn: 0, ended: 0, uplinks: 0, maxTurns: 0 };
  for (; seen.mutated < mutated && seen.faults.length < MAX_FAULTS; seen.streams++) {
    const chance = new SeededChance(seed + seen.streams);
    const mac = testMac(100 + seen.streams);
    const stream = makeMutated(chance, { user: mac, secret: SECRET });
    const fault = await sendStream(site, stream, chance, {
      ping: honest[seen.streams % HONEST_LOCKS] as HandSocket,
      id: 1 + (seen.streams % 65_535),
      seen,
    });
    if (fault !== undefined) seen.faults.push(`seed ${seed + seen.streams}: ${fault}`);
    seen.mutated += stream.mutated;
  }
  return { ...seen, left: site.broker.connected - HONEST_LOCKS };
}

interface HonestLock {
  readonly ping: HandSocket;
  readonly id: number;
  readonly seen: { maxTurns: number; letIn: number; ended: number; uplinks: number };
}

/** Sends a stream while an honest lock pings. Returns a fault of the answers; undefined if there is none. */
async function sendStream(
  { open, ingest }: Awaited<ReturnType<typeof handBroker>>,
  stream: MutatedStream,
  chance: SeededChance,
  { ping, id, seen }: HonestLock,
): Promise<string | undefined> {
  const socket = open();
  const heardBefore = ping.received.length;
  ingest.taken.length = 0;
  ingest.forget();
  ping.send(publishPacket('up', Buffer.from('honest'), id));
  let waited = 0;
  for (const piece of cutAnywhere(chance, stream)) {
    socket.send(piece);
    if (ping.received.length === heardBefore) waited += 1;
    await turns(1);
    ingest.answer();
  }
  for (; waited <= HONEST_TURNS && ping.received.length === heardBefore; waited++) {
    await turns(1);
    ingest.answer();
  }
  const pong = ping.received.slice(heardBefore);
  seen.maxTurns = Math.max(seen.maxTurns, waited);
  for (let turn = 0; turn < STREAM_TURNS; turn++) {
    await turns(1);
    ingest.answer();
  }
  const isOpen = !socket.destroyed;
  const uplinks = ingest.taken.filter(({ payload }) => payload !== 'honest').length;
  socket.endSending();
  await turns(2);
  seen.ended += isOpen ? 0 : 1;
  seen.uplinks += uplinks;
  if (socket.received.startsWith(ACCEPTED)) seen.letIn += 1;
  if (pong !== puback(id) || waited > HONEST_TURNS)
    return `an honest lock received ${JSON.stringify(pong)} within ${HONEST_TURNS} turns`;
  return faultOf(stream, Buffer.from(socket.received, 'hex'), { isOpen, uplinks });
}

/** The fault of the received bytes; undefined if there is none. */
export function faultOf(
  { isAuthenticated, bytes }: MutatedStream,
  heard: Buffer,
  { isOpen, uplinks }: { readonly isOpen: boolean | undefined; readonly uplinks?: number },
): string | undefined {
  const packets = packetsOf(heard);
  const [connack, ...answers] = packets ?? [];
  const said = `sent ${bytes.toString('hex')}, received ${heard.toString('hex')}`;
  if (packets === undefined) return `incomplete packets: ${said}`;
  if (connack === undefined) return isAuthenticated ? `no CONNACK: ${said}` : undefined;
  if (!/^200200(00|01|02|05)$/.test(connack.toString('hex'))) return `wrong CONNACK: ${said}`;
  if (connack[3] !== 0) return answers.length > 0 || isOpen === true ? `more than a refusal: ${said}` : undefined;
  const expected = expectedOf(bytes.subarray(connectEnd(bytes)));
  const pubacks = answers.filter(([type]) => type === 0x40).map((each) => each.readUInt16BE(2));
  if (pubacks.some((id, index) => id !== expected.pubacks[index])) return `wrong PUBACKs: ${said}`;
  if (uplinks !== undefined && uplinks > expected.uplinks) return `uplinks that were not sent: ${said}`;
  if (isOpen === false && !expected.ends) return `it was closed without a reason: ${said}`;
  // An incomplete last packet may close the connection or not.
  return undefined;
}
