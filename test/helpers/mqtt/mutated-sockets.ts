/** Sends mutated packets over real sockets to a gateway in a separate process, while honest locks ping. */
import { readdirSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { monotonicMs } from '../../../proto/clock.js';
import { ChangeSignal, realDelay } from '../clocks/change-signal.js';
import type { GatewayChild } from '../gateway/gateway-child.js';
import { testBytes, testMac } from '../gateway/test-gateway.js';
import { SeededChance } from '../pair/seeded-chance.js';
import { cutAnywhere, endOfConnect, type Identity, makeMutated } from './mutated-packets.js';
import { faultOf } from './mutated-run.js';
import { PubackLock, uplinkPacket } from './puback-lock.js';

/** Streams that are sent at the same time, each by a different lock. */
const CONCURRENT_STREAMS = 48;
const HONEST_LOCKS = 8;
/** Maximum number of locks in a run: each run of a test uses different MACs. */
const MAX_LOCKS_PER_RUN = 100;
/** Time limit for any answer, long enough for slow machines. */
const DEADLINE_SECONDS = 60;
/** The run ends after this many faults. */
const MAX_FAULTS = 10;
const CONNACK_BYTES = 4;

/** The faults and totals of a run. */
export interface SocketRunResult {
  readonly faults: string[];
  streams: number;
  mutated: number;
  /** The number of streams whose CONNECT was accepted. */
  accepted: number;
  /** How long each ping of an honest lock waited for its PUBACK, ms. */
  readonly waitsMs: number[];
}

/** Sends streams with at least `mutated` mutated packets in all, each with a different seed. `run` counts the runs. */
export async function runOverSockets(
  child: GatewayChild,
  run: number,
  seed: number,
  mutated: number,
): Promise<SocketRunResult> {
  const totals: SocketRunResult = { faults: [], streams: 0, mutated: 0, accepted: 0, waitsMs: [] };
  const isDone = (): boolean => totals.mutated >= mutated || totals.faults.length >= MAX_FAULTS;
  const identities: Identity[] = [];
  for (let number = 1; number <= HONEST_LOCKS + CONCURRENT_STREAMS; number++) {
    const user = testMac(run * MAX_LOCKS_PER_RUN + number);
    identities.push({ user, secret: await child.addLock(user) });
  }
  const honest = identities.slice(0, HONEST_LOCKS).map((identity) => pingUntilDone(child, identity, totals, isDone));
  const hostile = identities.slice(HONEST_LOCKS).map(async (identity) => {
    while (!isDone()) {
      const streamSeed = seed + totals.streams++;
      const chance = new SeededChance(streamSeed);
      const stream = makeMutated(chance, identity);
      const received = await sendChunks(child.mqttPort, cutAnywhere(chance, stream), stream.isAuthenticated);
      // What the gateway did inside, such as closing the connection, can't be seen from here.
      const fault = faultOf(stream, received, { isOpen: undefined });
      if (fault !== undefined) totals.faults.push(`LOCKGATE_SEED=${streamSeed} LOCKGATE_MUTATED=1: ${fault}`);
      // The return code of the CONNACK.
      if (received[3] === 0) totals.accepted += 1;
      totals.mutated += stream.mutated;
    }
  });
  await Promise.all([...honest, ...hostile]);
  return totals;
}

/** The number of open descriptors of a process, once it has not changed for two seconds. Only on Linux. */
export async function stableDescriptorCount(pid: number): Promise<number> {
  let count = 0;
  for (let unchangedPolls = 0; unchangedPolls < 20; unchangedPolls++) {
    const current = readdirSync(`/proc/${pid}/fd`).length;
    if (current !== count) unchangedPolls = 0;
    count = current;
    await realDelay(100);
  }
  return count;
}

/** Pings as a lock, one uplink at a time, until the run is done. @throws Error if an uplink is not acknowledged */
async function pingUntilDone(
  child: GatewayChild,
  { user, secret }: Identity,
  totals: SocketRunResult,
  isDone: () => boolean,
): Promise<void> {
  const changeSignal = new ChangeSignal();
  const lock = await PubackLock.connect(child.mqttPort, user, secret, () => changeSignal.notify());
  for (let sequence = 1; !isDone(); sequence++) {
    const fromMs = monotonicMs();
    lock.socket.write(uplinkPacket(1 + (sequence % 65_535), testBytes(sequence)));
    await changeSignal.waitUntil(
      () => lock.acked.length >= sequence,
      DEADLINE_SECONDS,
      () => `the PUBACK of ${user}'s ${sequence}`,
    );
    totals.waitsMs.push(monotonicMs() - fromMs);
    await realDelay(5);
  }
  lock.socket.destroy();
  await lock.closed;
}

/** Sends chunks over one connection and closes the client's side. Returns all received bytes. */
async function sendChunks(port: number, chunks: readonly Buffer[], isAuthenticated: boolean): Promise<Buffer> {
  const socket: Socket = connect(port, '127.0.0.1');
  socket.setNoDelay(true);
  socket.on('error', () => undefined);
  let received = Buffer.alloc(0);
  const changeSignal = new ChangeSignal();
  let isClosed = false;
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    changeSignal.notify();
  });
  socket.on('close', () => {
    isClosed = true;
    changeSignal.notify();
  });
  const waitUntil = (holds: () => boolean, what: string): Promise<void> =>
    changeSignal.waitUntil(
      () => isClosed || holds(),
      DEADLINE_SECONDS,
      () => what,
    );
  let sentBytes = 0;
  const connectBytes = isAuthenticated ? (endOfConnect(Buffer.concat(chunks)) ?? 0) : 0;
  for (const chunk of chunks) {
    socket.write(chunk);
    sentBytes += chunk.length;
    // Bytes after the CONNECT wait for the CONNACK, except bytes in the same chunk.
    if (isAuthenticated && sentBytes >= connectBytes)
      await waitUntil(() => received.length >= CONNACK_BYTES, 'the CONNACK');
  }
  socket.end();
  await waitUntil(() => false, 'the end of the connection');
  return received;
}
