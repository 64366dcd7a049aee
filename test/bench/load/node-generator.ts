/**
 * The load generator for machines without a C++ compiler. Its plan file, commands and answers are those documented in
 * ping-generator.cc. It uses about as much CPU as the system it measures, so the figures are less meaningful.
 */
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { systemClock } from '../../../proto/clock.js';
import { connectPacket, publishPacket } from '../../helpers/mqtt/raw-lock.js';
import { percentile } from '../measure.js';
import { type PacedLock, sendBySchedule } from './pace-schedule.js';
import { SEQUENCE_BYTES, SEQUENCE_LIMIT, TIME_BYTES, writeVarint } from './ping-template.js';

const PUBACK = 0x40;
const PUBACK_BYTES = 4;
const CONNACK_BYTES = 4;
/** So long that the broker disconnects no lock that is silent between two rounds. */
const KEEPALIVE_SECONDS = 3600;
/** In place of a scheduled time, while the lock has no unacknowledged ping. */
const NOT_IN_FLIGHT = -1;

/** The result of one `flood`, `run` or `pace`; times in ms. */
export interface LoadResult {
  /** Sent pings, all of them acknowledged. */
  readonly pings: number;
  readonly ms: number;
  readonly p50_ms: number;
  readonly p99_ms: number;
  readonly max_ms: number;
}

/** The plan file: the broker's port, the ping, and the locks. */
interface Plan {
  port: number;
  /** The bytes of a ping; `sequenceAt` and `timeAt` are offsets in them. */
  uplink: Buffer;
  sequenceAt: number;
  firstSequence: number;
  timeAt: number;
  readonly locks: { readonly mac: string; readonly secret: string; readonly topic: string }[];
}

function readPlan(file: string): Plan {
  const plan: Plan = { port: 0, uplink: Buffer.alloc(0), sequenceAt: 0, firstSequence: 0, timeAt: 0, locks: [] };
  for (const line of readFileSync(file, 'utf8').trimEnd().split('\n')) {
    const [command, first = '', second = '', third = ''] = line.split(' ');
    if (command === 'port') plan.port = Number(first);
    else if (command === 'template') plan.uplink = Buffer.from(first, 'hex');
    else if (command === 'sequence') [plan.sequenceAt, plan.firstSequence] = [Number(first), Number(second)];
    else if (command === 'time') plan.timeAt = Number(first);
    else if (command === 'lock') plan.locks.push({ mac: first, secret: second, topic: third });
    else throw new Error(`not understood: ${line}`);
  }
  return plan;
}

/** One lock. Exits the program if the broker does anything but acknowledge its pings. */
class Lock implements PacedLock {
  onAck: () => void = () => undefined;
  /** From the scheduled time of the last ping to its PUBACK, ms. */
  latencyMs = 0;
  readonly #socket: Socket;
  readonly #packet: Buffer;
  readonly #packetIdOffset: number;
  readonly #plan: Plan;
  #sequence: number;
  #scheduledMs = NOT_IN_FLIGHT;

  private constructor(plan: Plan, topic: string, open: (take: (chunk: Buffer) => void) => Socket) {
    this.#plan = plan;
    this.#packet = publishPacket(topic, plan.uplink);
    // The packet id's two bytes are right before the uplink.
    this.#packetIdOffset = this.#packet.length - plan.uplink.length - 2;
    this.#sequence = plan.firstSequence;
    this.#socket = open((chunk) => this.#onData(chunk));
  }

  static connect(plan: Plan, { mac, secret, topic }: Plan['locks'][number]): Promise<Lock> {
    return new Promise((resolve, reject) => {
      // One buffer for all reads, so that reading allocates nothing.
      const buffer = Buffer.alloc(64);
      let isConnected = false;
      const lock = new Lock(plan, topic, (take) =>
        connect({
          port: plan.port,
          host: '127.0.0.1',
          noDelay: true,
          onread: {
            buffer,
            callback: (count) => {
              if (isConnected) take(buffer.subarray(0, count));
              // The last byte is the return code; 0 means that the lock is accepted.
              else if (count === CONNACK_BYTES && buffer[3] === 0) {
                isConnected = true;
                resolve(lock);
              } else reject(new Error('a lock was refused'));
              return true;
            },
          },
        }),
      );
      lock.#socket.on('error', reject).on('close', () => lock.#closed());
      lock.#socket.write(connectPacket({ user: mac, secret, keepalive: KEEPALIVE_SECONDS }));
    });
  }

  get isBusy(): boolean {
    return this.#scheduledMs !== NOT_IN_FLIGHT;
  }

  /** From 1 to 65,535, as MQTT demands. */
  get #packetId(): number {
    return (this.#sequence % 65_535) + 1;
  }

  /** Writes the next sequence number and time into the packet, and sends it. */
  send(scheduledMs: number): void {
    this.#sequence += 1;
    if (this.#socket.destroyed) fail('the broker closed a connection');
    if (this.#sequence >= SEQUENCE_LIMIT) fail('a lock has used up its sequences');
    const uplinkOffset = this.#packetIdOffset + 2;
    this.#packet.writeUInt16BE(this.#packetId, this.#packetIdOffset);
    writeVarint(this.#packet, uplinkOffset + this.#plan.sequenceAt, this.#sequence, SEQUENCE_BYTES);
    writeVarint(this.#packet, uplinkOffset + this.#plan.timeAt, systemClock.now(), TIME_BYTES);
    this.#scheduledMs = scheduledMs;
    this.#socket.write(this.#packet);
  }

  /** Not an error between two rounds, since the gateway may stop before the generator. */
  #closed(): void {
    if (this.isBusy) fail('the broker closed a connection');
  }

  /** Takes a PUBACK. It comes alone, because one ping at a time is in flight. */
  #onData(chunk: Buffer): void {
    if (chunk.length !== PUBACK_BYTES || chunk[0] !== PUBACK || chunk.readUInt16BE(2) !== this.#packetId)
      fail('an answer other than the expected PUBACK');
    this.latencyMs = performance.now() - this.#scheduledMs;
    this.#scheduledMs = NOT_IN_FLIGHT;
    this.onAck();
  }
}

/** Ends the program: a lock that does not work makes every figure wrong. */
function fail(what: string): never {
  console.error(`the load generator: ${what}`);
  process.exit(1);
}

/**
 * Sends pings as fast as they are acknowledged, at most `count`, for at most `spanMs`; adds the time from each PUBLISH
 * to its PUBACK to `latencies`.
 */
function flood(locks: readonly Lock[], count: number, spanMs: number, latencies: number[]): Promise<void> {
  const startedAt = performance.now();
  let sent = 0;
  return new Promise((resolve) => {
    const next = (lock: Lock): void => {
      const now = performance.now();
      if (sent < count && now - startedAt < spanMs) {
        sent += 1;
        lock.send(now);
      } else if (latencies.length === sent) resolve();
    };
    for (const lock of locks)
      lock.onAck = () => {
        latencies.push(lock.latencyMs);
        next(lock);
      };
    for (const lock of locks) next(lock);
  });
}

async function main(file: string): Promise<void> {
  const plan = readPlan(file);
  const locks: Lock[] = [];
  for (const lock of plan.locks) locks.push(await Lock.connect(plan, lock));
  console.log('{}');
  for await (const line of createInterface({ input: process.stdin })) {
    const [command, count, rate] = line.split(' ');
    const latencies: number[] = [];
    const startedAt = performance.now();
    if (command === 'flood') await flood(locks, Number(count), Number.POSITIVE_INFINITY, latencies);
    else if (command === 'run') await flood(locks, Number.POSITIVE_INFINITY, Number(count), latencies);
    else await sendBySchedule(locks, Number(count), Number(rate), (ms) => latencies.push(ms));
    const ms = performance.now() - startedAt;
    const [p50 = 0, p99 = 0, max = 0] = [0.5, 0.99, 1].map((share) => percentile(latencies, share));
    const result: LoadResult = { pings: latencies.length, ms, p50_ms: p50, p99_ms: p99, max_ms: max };
    console.log(JSON.stringify(result));
  }
  process.exit(0);
}

await main(process.argv[2] ?? '');
