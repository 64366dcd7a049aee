/** Sends mutated packets over real sockets to a gateway in a separate process, while honest locks ping. */
import { readdirSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { monotonicMs } from '../../../proto/clock.js';
import { Bell, oddMoment } from '../clocks/bell.js';
import type { GatewayChild } from '../gateway/gateway-child.js';
import { testBytes, testMac } from '../gateway/test-gateway.js';
import { SeededChance } from '../pair/seeded-chance.js';
import { connectEnd, cutAnywhere, type Identity, makeMutated } from './mutated-packets.js';
import { faultOf } from './mutated-run.js';
import { publishPacket, RawLock } from './raw-mqtt.js';

/** Streams that run at a time, each with a different lock. */
const WORKERS = 48;
const HONEST_LOCKS = 8;
/** Maximum number of locks in a run: each run uses different MACs. */
const MAX_LOCKS_PER_RUN = 100;
/** Time limit for any answer, long enough for slow machines. */
const DEADLINE_SECONDS = 60;
const MAX_FAULTS = 10;
const CONNACK_BYTES = 4;

export interface SocketsSeen {
  readonly faults: string[];
  streams: number;
  mutated: number;
  letIn: number;
  /** How long each ping of an honest lock waited for its PUBACK, ms. */
  readonly waitsMs: number[];
}

/** Sends streams with at least `mutated` mutated packets in all, each with a different seed. `run` counts the runs. */
export async function runOverSockets(
  child: GatewayChild,
  run: number,
  seed: number,
  mutated: number,
): Promise<SocketsSeen> {
  const seen: SocketsSeen = { faults: [], streams: 0, mutated: 0, letIn: 0, waitsMs: [] };
  const isDone = (): boolean => seen.mutated >= mutated || seen.faults.length >= MAX_FAULTS;
  const identities: Identity[] = [];
  for (let number = 1; number <= HONEST_LOCKS + WORKERS; number++) {
    const user = testMac(run * MAX_LOCKS_PER_RUN + number);
    identities.push({ user, secret: await child.addLock(user) });
  }
  const honest = identities.slice(0, HONEST_LOCKS).map((identity) => pingOn(child, identity, seen, isDone));
  const hostile = identities.slice(HONEST_LOCKS).map(async (identity) => {
    while (!isDone()) {
      const streamSeed = seed + seen.streams++;
      const chance = new SeededChance(streamSeed);
      const stream = makeMutated(chance, identity);
      const heard = await sendChunks(child.mqttPort, cutAnywhere(chance, stream), stream.isAuthenticated);
      const fault = faultOf(stream, heard, { isOpen: undefined });
      if (fault !== undefined) seen.faults.push(`LOCKGATE_SEED=${streamSeed} LOCKGATE_MUTATED=1: ${fault}`);
      if (heard[3] === 0) seen.letIn += 1;
      seen.mutated += stream.mutated;
    }
  });
  await Promise.all([...honest, ...hostile]);
  return seen;
}

/** The number of open descriptors of a process, once it has not changed for two seconds. Only on Linux. */
export async function settledDescriptors(pid: number): Promise<number> {
  let count = 0;
  for (let same = 0; same < 20; same++) {
    const now = readdirSync(`/proc/${pid}/fd`).length;
    if (now !== count) same = 0;
    count = now;
    await oddMoment(100);
  }
  return count;
}

/** Pings as a lock, one uplink at a time, until the run is done. @throws Error if an uplink is not acknowledged */
async function pingOn(
  child: GatewayChild,
  { user, secret }: Identity,
  seen: SocketsSeen,
  isDone: () => boolean,
): Promise<void> {
  const bell = new Bell();
  const lock = await RawLock.connect(child.mqttPort, user, secret, () => bell.ring());
  for (let sequence = 1; !isDone(); sequence++) {
    const fromMs = monotonicMs();
    lock.socket.write(publishPacket(1 + (sequence % 65_535), testBytes(sequence)));
    await bell.until(
      () => lock.acked.length >= sequence,
      DEADLINE_SECONDS,
      () => `the PUBACK of ${user}'s ${sequence}`,
    );
    seen.waitsMs.push(monotonicMs() - fromMs);
    await oddMoment(5);
  }
  lock.socket.destroy();
  await lock.closed;
}

/** Sends chunks over one connection and closes the client's side. Returns all received bytes. */
async function sendChunks(port: number, pieces: readonly Buffer[], isLetIn: boolean): Promise<Buffer> {
  const socket: Socket = connect(port, '127.0.0.1');
  socket.setNoDelay(true);
  socket.on('error', () => undefined);
  let heard = Buffer.alloc(0);
  const bell = new Bell();
  let isClosed = false;
  socket.on('data', (piece: Buffer) => {
    heard = Buffer.concat([heard, piece]);
    bell.ring();
  });
  socket.on('close', () => {
    isClosed = true;
    bell.ring();
  });
  const until = (holds: () => boolean, what: string): Promise<void> =>
    bell.until(
      () => isClosed || holds(),
      DEADLINE_SECONDS,
      () => what,
    );
  let said = 0;
  const connectBytes = isLetIn ? (connectEnd(Buffer.concat(pieces)) ?? 0) : 0;
  for (const piece of pieces) {
    socket.write(piece);
    said += piece.length;
    // After the CONNECT, wait for the CONNACK: bytes in the same chunk are processed then too.
    if (isLetIn && said >= connectBytes) await until(() => heard.length >= CONNACK_BYTES, 'the CONNACK');
  }
  socket.end();
  await until(() => false, 'the end of the connection');
  return heard;
}
