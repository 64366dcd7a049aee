/**
 * Sends mutated packets to a broker with simulated sockets (manual-broker.ts). Checks the broker's answers, and that
 * honest locks, which send only valid packets, are answered in time.
 */

import { testMac } from '../gateway/test-gateway.js';
import { SeededChance } from '../pair/seeded-chance.js';
import type { Teardown } from '../store/temp-folder.js';
import { MANUAL_SECRET, runLoopTurns, type SimulatedSocket, startManualBroker } from './manual-broker.js';
import {
  allowedReaction,
  cutAnywhere,
  endOfConnect,
  type MutatedStream,
  makeMutated,
  packetsOf,
} from './mutated-packets.js';
import { CONNACK_ACCEPTED, pubackHex, publishPacket } from './raw-lock.js';

const HONEST_LOCKS = 4;
/** Turns of the event loop within which an honest lock's ping must be answered. */
const HONEST_TURNS = 3;
/** Turns for a stream's CONNECT and for the packets after it. */
const STREAM_TURNS = 14;
/** The run ends after this many faults. */
const MAX_FAULTS = 10;

/** The faults and totals of a run. */
export interface MutatedRunResult {
  /** Faults, each with the seed of its stream. */
  readonly faults: string[];
  readonly streams: number;
  readonly mutated: number;
  /** Number of streams whose CONNECT was accepted, and number of streams whose connection the gateway closed. */
  readonly accepted: number;
  readonly closed: number;
  readonly uplinks: number;
  /** Maximum number of turns that an honest lock's ping waited for its PUBACK. */
  maxTurns: number;
  /** Connections that are open at the end, except for the honest locks'. */
  readonly openConnections: number;
}

/** Sends streams with at least `mutated` mutated packets in all, each stream with a different seed. */
export async function runMutated(test: Teardown, seed: number, mutated: number): Promise<MutatedRunResult> {
  const broker = await startManualBroker(test);
  const honest: SimulatedSocket[] = [];
  for (let index = 1; index <= HONEST_LOCKS; index++) honest.push(await broker.connect(testMac(index)));
  const totals = { faults: [] as string[], streams: 0, mutated: 0, accepted: 0, closed: 0, uplinks: 0, maxTurns: 0 };
  for (; totals.mutated < mutated && totals.faults.length < MAX_FAULTS; totals.streams++) {
    const chance = new SeededChance(seed + totals.streams);
    // Numbers from 100 on are no honest locks.
    const mac = testMac(100 + totals.streams);
    const stream = makeMutated(chance, { user: mac, secret: MANUAL_SECRET });
    const fault = await sendStream(broker, stream, chance, {
      honestSocket: honest[totals.streams % HONEST_LOCKS] as SimulatedSocket,
      // Packet ids go from 1 to 65,535.
      id: 1 + (totals.streams % 65_535),
      totals,
    });
    if (fault !== undefined) totals.faults.push(`seed ${seed + totals.streams}: ${fault}`);
    totals.mutated += stream.mutated;
  }
  return { ...totals, openConnections: broker.broker.connected - HONEST_LOCKS };
}

/** The honest lock's ping during a stream: its socket, its packet id, and the totals to add to. */
interface HonestPing {
  readonly honestSocket: SimulatedSocket;
  readonly id: number;
  readonly totals: { maxTurns: number; accepted: number; closed: number; uplinks: number };
}

/** Sends a stream while an honest lock sends a ping. Returns a fault of the answers; undefined if there is none. */
async function sendStream(
  { open, ingest }: Awaited<ReturnType<typeof startManualBroker>>,
  stream: MutatedStream,
  chance: SeededChance,
  { honestSocket, id, totals }: HonestPing,
): Promise<string | undefined> {
  const socket = open();
  const receivedBefore = honestSocket.received.length;
  ingest.removeTaken();
  honestSocket.send(publishPacket('up', Buffer.from('honest'), id));
  let waitedTurns = 0;
  for (const chunk of cutAnywhere(chance, stream)) {
    socket.send(chunk);
    if (honestSocket.received.length === receivedBefore) waitedTurns += 1;
    await runLoopTurns(1);
    ingest.answer();
  }
  for (; waitedTurns <= HONEST_TURNS && honestSocket.received.length === receivedBefore; waitedTurns++) {
    await runLoopTurns(1);
    ingest.answer();
  }
  const honestAnswer = honestSocket.received.slice(receivedBefore);
  totals.maxTurns = Math.max(totals.maxTurns, waitedTurns);
  for (let turn = 0; turn < STREAM_TURNS; turn++) {
    await runLoopTurns(1);
    ingest.answer();
  }
  const isOpen = !socket.destroyed;
  const uplinks = ingest.taken.filter(({ payload }) => payload !== 'honest').length;
  socket.endSending();
  await runLoopTurns(2);
  totals.closed += isOpen ? 0 : 1;
  totals.uplinks += uplinks;
  if (socket.received.startsWith(CONNACK_ACCEPTED)) totals.accepted += 1;
  if (honestAnswer !== pubackHex(id) || waitedTurns > HONEST_TURNS)
    return `an honest lock received ${JSON.stringify(honestAnswer)} within ${HONEST_TURNS} turns`;
  return faultOf(stream, Buffer.from(socket.received, 'hex'), { isOpen, uplinks });
}

/**
 * The fault of the received bytes; undefined if there is none. `isOpen` is whether the gateway left the connection
 * open, `uplinks` how many uplinks it stored; undefined if the test can't know.
 */
export function faultOf(
  { isAuthenticated, bytes }: MutatedStream,
  received: Buffer,
  { isOpen, uplinks }: { readonly isOpen: boolean | undefined; readonly uplinks?: number },
): string | undefined {
  const packets = packetsOf(received);
  const [connack, ...answers] = packets ?? [];
  const description = `sent ${bytes.toString('hex')}, received ${received.toString('hex')}`;
  if (packets === undefined) return `incomplete packets: ${description}`;
  if (connack === undefined) return isAuthenticated ? `no CONNACK: ${description}` : undefined;
  // A CONNACK is 20 02 00 and a return code: accepted, wrong protocol, wrong client id, or not authorized.
  if (!/^200200(00|01|02|05)$/.test(connack.toString('hex'))) return `wrong CONNACK: ${description}`;
  if (connack[3] !== 0)
    return answers.length > 0 || isOpen === true ? `more than a refusal: ${description}` : undefined;
  const expected = allowedReaction(bytes.subarray(endOfConnect(bytes)));
  const pubacks = answers.filter(([type]) => type === 0x40).map((each) => each.readUInt16BE(2));
  if (pubacks.some((id, index) => id !== expected.pubacks[index])) return `wrong PUBACKs: ${description}`;
  if (uplinks !== undefined && uplinks > expected.uplinks) return `uplinks that were not sent: ${description}`;
  if (isOpen === false && !expected.mayClose) return `it was closed without a reason: ${description}`;
  // An incomplete last packet may close the connection or not.
  return undefined;
}
