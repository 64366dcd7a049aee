/**
 * A program that simulates the locks of a soak test (soak-run.ts) in a separate process. Each lock sends one ping a
 * second. After 5 % of its pings it cuts its connection and reconnects at once. Half of the cuts come before the
 * PUBACK, so that the lock sends the same bytes again. The program takes one argument, a {@link SoakRequest} as JSON.
 * It prints `{}` when all locks are connected, and then reads commands from stdin:
 *
 * - `still`: stop sending; prints a {@link SoakTally} when every lock is connected and has all its PUBACKs.
 * - `go`: start sending; prints `{}`.
 */
import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { systemClock } from '../../../proto/clock.js';
import { lockLogins } from '../../bench/load/lock-logins.js';
import {
  pingTemplate,
  SEQUENCE_BEFORE_FIRST,
  SEQUENCE_BYTES,
  SEQUENCE_LIMIT,
  TIME_BYTES,
  writeVarint,
} from '../../bench/load/ping-template.js';
import { CONNACK_ACCEPTED, connectPacket, pubackHex, publishPacket } from '../mqtt/raw-lock.js';
import { SeededChance } from '../pair/seeded-chance.js';

/** What the program is started with. */
export interface SoakRequest {
  /** The gateway's MQTT port. */
  readonly port: number;
  /** The number of locks. */
  readonly locks: number;
  /** The boot number of all pings, which no other run uses. */
  readonly boot: number;
  readonly seed: number;
}

/** What the locks counted. */
export interface SoakTally {
  /** For each lock, the sequence number of its last acknowledged ping. All earlier pings are acknowledged too. */
  readonly lastAcked: readonly number[];
  /** The number of accepted connections. */
  readonly connects: number;
  /** The number of pings sent again after a cut. */
  readonly repeats: number;
  /** The number of times that a lock skipped its ping because the previous ping was unanswered. */
  readonly skippedTurns: number;
}

/** A second is divided into turns of this length. Each lock sends a ping in one of the turns. */
const TURN_MS = 10;
const TURNS_PER_SECOND = 100;
/** The share of pings after which the lock cuts its connection (quality.md §2). */
const CUT_PROBABILITY = 0.05;
/** The keepalive interval of locks (protocol.md §1). */
const KEEPALIVE_SECONDS = 300;
/** The wait before a failed connection is tried again. */
const RETRY_MS = 100;

/**
 * The bytes of a ping, into which each lock writes its sequence and the time before it sends them. Replaced at the
 * start by those with the run's boot number.
 */
const template = { value: pingTemplate(1) };

/** One lock, which reconnects whenever its connection closes. */
class SoakLock {
  /** The next ping has the sequence after it: as long as none is acknowledged, this is one that no ping has. */
  lastAcked = SEQUENCE_BEFORE_FIRST;
  connects = 0;
  repeats = 0;
  skippedTurns = 0;
  /** Called after each CONNACK and PUBACK. */
  onChange: () => void = () => undefined;
  readonly #request: SoakRequest;
  readonly #connectPacket: Buffer;
  readonly #chance: SeededChance;
  #socket: Socket | undefined;
  /** Whether the gateway has accepted the connection. */
  #isOpen = false;
  /** The ping that waits for its PUBACK, and the expected PUBACK in hex. */
  #inFlight: { readonly packet: Buffer; readonly answer: string } | undefined;
  #receivedHex = '';

  constructor(request: SoakRequest, account: { readonly mac: string; readonly secret: string }, seed: number) {
    this.#request = request;
    this.#connectPacket = connectPacket({ user: account.mac, secret: account.secret, keepalive: KEEPALIVE_SECONDS });
    this.#chance = new SeededChance(seed);
    this.open();
  }

  /** Whether the lock is connected and no ping waits for its PUBACK. */
  get isIdle(): boolean {
    return this.#isOpen && this.#inFlight === undefined;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  open(): void {
    const socket = connect({ port: this.#request.port, host: '127.0.0.1', noDelay: true });
    this.#socket = socket;
    this.#isOpen = false;
    this.#receivedHex = '';
    socket.on('data', (chunk: Buffer) => this.#receive(socket, chunk));
    socket.on('error', () => undefined);
    socket.on('close', () => {
      if (this.#socket !== socket) return;
      this.#isOpen = false;
      systemClock.after(RETRY_MS, () => this.open());
    });
    socket.write(this.#connectPacket);
  }

  /** Sends the next ping, unless the previous ping is unanswered. */
  ping(): void {
    if (!this.#isOpen || this.#inFlight !== undefined) {
      this.skippedTurns += 1;
      return;
    }
    const sequence = this.lastAcked + 1;
    if (sequence >= SEQUENCE_LIMIT) throw new Error('a lock has used up its sequences');
    const { bytes, sequenceAt, timeAt } = template.value;
    writeVarint(bytes, sequenceAt, sequence, SEQUENCE_BYTES);
    writeVarint(bytes, timeAt, systemClock.now(), TIME_BYTES);
    const id = (sequence % 65_535) + 1;
    this.#inFlight = { packet: publishPacket('up', bytes, id), answer: pubackHex(id) };
    this.#socket?.write(this.#inFlight.packet);
    if (this.#chance.next() < CUT_PROBABILITY / 2) this.#cut();
  }

  #receive(socket: Socket, chunk: Buffer): void {
    if (socket !== this.#socket) return;
    this.#receivedHex += chunk.toString('hex');
    if (!this.#isOpen) {
      if (this.#receivedHex.length < CONNACK_ACCEPTED.length) return;
      if (this.#receivedHex !== CONNACK_ACCEPTED) throw new Error(`a CONNECT was answered with ${this.#receivedHex}`);
      this.#receivedHex = '';
      this.#onConnected(socket);
      return;
    }
    const answer = this.#inFlight?.answer ?? '';
    if (this.#receivedHex.length < answer.length) return;
    if (this.#receivedHex !== answer)
      throw new Error(`a ping was answered with ${this.#receivedHex} instead of ${answer}`);
    this.#receivedHex = '';
    this.#inFlight = undefined;
    this.lastAcked += 1;
    if (this.#chance.next() < CUT_PROBABILITY / 2) this.#cut();
    this.onChange();
  }

  #onConnected(socket: Socket): void {
    this.#isOpen = true;
    this.connects += 1;
    if (this.#inFlight !== undefined) {
      this.repeats += 1;
      socket.write(this.#inFlight.packet);
    }
    this.onChange();
  }

  /** Cuts the TCP connection without a DISCONNECT, by a reset or an orderly close at random. */
  #cut(): void {
    const socket = this.#socket;
    this.#socket = undefined;
    this.#isOpen = false;
    if (this.#chance.next() < 0.5) socket?.resetAndDestroy();
    else socket?.end();
    socket?.on('close', () => this.open());
  }
}

/** All locks of the test. */
class SoakLocks {
  readonly locks: readonly SoakLock[];
  isSending = false;
  /** The next turn, counted from the start of sending. */
  #turn = 0;
  /** When sending started, ms of the process's monotonic clock. */
  #startedMs = 0;
  #onAllIdle: (() => void) | undefined;

  constructor(request: SoakRequest) {
    template.value = pingTemplate(request.boot);
    this.locks = lockLogins(request.locks).map((account, index) => {
      const lock = new SoakLock(request, account, request.seed + index);
      lock.onChange = () => this.#checkAllIdle();
      return lock;
    });
  }

  /** Stops sending. Resolves when all locks are connected and all pings are answered. */
  async stopSending(): Promise<void> {
    this.isSending = false;
    await new Promise<void>((resolve) => {
      this.#onAllIdle = resolve;
      this.#checkAllIdle();
    });
    this.#onAllIdle = undefined;
  }

  startSending(): void {
    this.isSending = true;
    this.#turn = 0;
    this.#startedMs = performance.now();
    this.#runDueTurns();
  }

  tally(): SoakTally {
    const sum = (of: 'connects' | 'repeats' | 'skippedTurns'): number =>
      this.locks.reduce((all, lock) => all + lock[of], 0);
    return {
      lastAcked: this.locks.map(({ lastAcked }) => lastAcked),
      connects: sum('connects'),
      repeats: sum('repeats'),
      skippedTurns: sum('skippedTurns'),
    };
  }

  #checkAllIdle(): void {
    if (this.#onAllIdle !== undefined && this.locks.every((lock) => lock.isIdle)) this.#onAllIdle();
  }

  /** Runs all due turns. A late turn is made up for, so that the rate is constant. */
  #runDueTurns(): void {
    if (!this.isSending) return;
    const dueTurn = Math.floor((performance.now() - this.#startedMs) / TURN_MS);
    for (; this.#turn <= dueTurn; this.#turn += 1) {
      for (let index = this.#turn % TURNS_PER_SECOND; index < this.locks.length; index += TURNS_PER_SECOND)
        this.locks[index]?.ping();
    }
    systemClock.after(TURN_MS, () => this.#runDueTurns());
  }
}

/** The process of the locks: `go` starts their pings; any other line stops them and asks for the tally. */
async function main(argument: string): Promise<void> {
  const soakLocks = new SoakLocks(JSON.parse(argument) as SoakRequest);
  await soakLocks.stopSending();
  console.log('{}');
  for await (const line of createInterface({ input: process.stdin })) {
    if (line === 'go') soakLocks.startSending();
    else await soakLocks.stopSending();
    console.log(JSON.stringify(line === 'go' ? {} : soakLocks.tally()));
  }
  process.exit(0);
}

if (process.argv[1] === import.meta.filename) await main(process.argv[2] ?? '');
