/**
 * The locks of a long run, in a process of their own: each sends one ping a second, and after five in a hundred of its
 * pings it cuts its connection and comes back at once. Half of the cuts come before the PUBACK, so that the lock sends
 * the same bytes again. It takes one argument, a {@link SoakRequest} as JSON, answers `{}` when all are connected, and
 * obeys lines of stdin:
 *
 * - `still`: nothing new is sent; answers a {@link SoakTally} when every lock is connected and has all its PUBACKs.
 * - `go`: on with the load; answers `{}`.
 */
import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { systemClock } from '../../../proto/clock.js';
import { crowdLocks } from '../../bench/load/crowd-accounts.js';
import {
  FIRST_SEQUENCE,
  pingTemplate,
  putVarint,
  SEQUENCE_BYTES,
  SEQUENCE_LIMIT,
  TIME_BYTES,
} from '../../bench/load/ping-template.js';
import { connectPacket, puback, publishPacket, TAKEN } from '../mqtt/raw-lock.js';
import { SeededChance } from '../pair/seeded-chance.js';

export interface SoakRequest {
  readonly port: number;
  readonly locks: number;
  readonly boot: number;
  readonly seed: number;
}

/** What the locks wrote down. */
export interface SoakTally {
  /** Of each lock, in the order of the crowd: the sequence of its last acknowledged ping; all before it are too. */
  readonly last: readonly number[];
  /** Connections that were accepted. */
  readonly connects: number;
  /** Pings that were sent again after a cut. */
  readonly repeats: number;
  /** Turns of a lock that came while its ping before was still unanswered. */
  readonly late: number;
}

/** Each lock has a turn of this length, and one ping a second. */
const TURN_MS = 10;
const TURNS = 100;
/** quality.md §2: the share of pings after which the connection is cut. */
const CHURN = 0.05;
const KEEPALIVE_SECONDS = 300;
/** A connection that could not be made is tried again so much later. */
const RETRY_MS = 100;

const template = { value: pingTemplate(1) };

class SoakLock {
  last = FIRST_SEQUENCE;
  connects = 0;
  repeats = 0;
  late = 0;
  onChange: () => void = () => undefined;
  readonly #request: SoakRequest;
  readonly #hello: Buffer;
  readonly #chance: SeededChance;
  #socket: Socket | undefined;
  #isOpen = false;
  /** The ping that waits for its PUBACK, and the hex that the PUBACK must be. */
  #inFlight: { readonly packet: Buffer; readonly answer: string } | undefined;
  #heard = '';

  constructor(request: SoakRequest, account: { readonly mac: string; readonly secret: string }, seed: number) {
    this.#request = request;
    this.#hello = connectPacket({ user: account.mac, secret: account.secret, keepalive: KEEPALIVE_SECONDS });
    this.#chance = new SeededChance(seed);
    this.open();
  }

  /** Connected, and nothing of it waits for its PUBACK. */
  get isSettled(): boolean {
    return this.#isOpen && this.#inFlight === undefined;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  open(): void {
    const socket = connect({ port: this.#request.port, host: '127.0.0.1', noDelay: true });
    this.#socket = socket;
    this.#isOpen = false;
    this.#heard = '';
    socket.on('data', (piece: Buffer) => this.#take(socket, piece));
    socket.on('error', () => undefined);
    socket.on('close', () => {
      if (this.#socket !== socket) return;
      this.#isOpen = false;
      systemClock.after(RETRY_MS, () => this.open());
    });
    socket.write(this.#hello);
  }

  /** Its turn: the next ping, unless the one before is still on its way. */
  ping(): void {
    if (!this.#isOpen || this.#inFlight !== undefined) {
      this.late += 1;
      return;
    }
    const sequence = this.last + 1;
    if (sequence >= SEQUENCE_LIMIT) throw new Error('a lock has used up its sequences');
    const { bytes, sequenceAt, timeAt } = template.value;
    putVarint(bytes, sequenceAt, sequence, SEQUENCE_BYTES);
    putVarint(bytes, timeAt, systemClock.now(), TIME_BYTES);
    const id = (sequence % 65_535) + 1;
    this.#inFlight = { packet: publishPacket('up', bytes, id), answer: puback(id) };
    this.#socket?.write(this.#inFlight.packet);
    if (this.#chance.next() < CHURN / 2) this.#cut();
  }

  #take(socket: Socket, piece: Buffer): void {
    if (socket !== this.#socket) return;
    this.#heard += piece.toString('hex');
    if (!this.#isOpen) {
      if (this.#heard.length < TAKEN.length) return;
      if (this.#heard !== TAKEN) throw new Error(`a CONNECT was answered with ${this.#heard}`);
      this.#heard = '';
      this.#opened(socket);
      return;
    }
    const answer = this.#inFlight?.answer ?? '';
    if (this.#heard.length < answer.length) return;
    if (this.#heard !== answer) throw new Error(`a ping was answered with ${this.#heard} instead of ${answer}`);
    this.#heard = '';
    this.#inFlight = undefined;
    this.last += 1;
    if (this.#chance.next() < CHURN / 2) this.#cut();
    this.onChange();
  }

  #opened(socket: Socket): void {
    this.#isOpen = true;
    this.connects += 1;
    if (this.#inFlight !== undefined) {
      this.repeats += 1;
      socket.write(this.#inFlight.packet);
    }
    this.onChange();
  }

  /** By a reset or an orderly end, as it comes; the gateway hears of neither beforehand. */
  #cut(): void {
    const socket = this.#socket;
    this.#socket = undefined;
    this.#isOpen = false;
    if (this.#chance.next() < 0.5) socket?.resetAndDestroy();
    else socket?.end();
    socket?.on('close', () => this.open());
  }
}

class SoakCrowd {
  readonly locks: readonly SoakLock[];
  isGoing = false;
  #turn = 0;
  #startedMs = 0;
  #settled: (() => void) | undefined;

  constructor(request: SoakRequest) {
    template.value = pingTemplate(request.boot);
    this.locks = crowdLocks(request.locks).map((account, index) => {
      const lock = new SoakLock(request, account, request.seed + index);
      lock.onChange = () => this.#look();
      return lock;
    });
  }

  /** Resolves when all are connected and everything is answered. */
  async settle(): Promise<void> {
    this.isGoing = false;
    await new Promise<void>((resolve) => {
      this.#settled = resolve;
      this.#look();
    });
    this.#settled = undefined;
  }

  go(): void {
    this.isGoing = true;
    this.#turn = 0;
    this.#startedMs = performance.now();
    this.#next();
  }

  tally(): SoakTally {
    const sum = (of: 'connects' | 'repeats' | 'late'): number => this.locks.reduce((all, lock) => all + lock[of], 0);
    return {
      last: this.locks.map(({ last }) => last),
      connects: sum('connects'),
      repeats: sum('repeats'),
      late: sum('late'),
    };
  }

  #look(): void {
    if (this.#settled !== undefined && this.locks.every((lock) => lock.isSettled)) this.#settled();
  }

  /** All turns that are due by the clock: one that came late is made up for, so the rate holds. */
  #next(): void {
    if (!this.isGoing) return;
    const due = Math.floor((performance.now() - this.#startedMs) / TURN_MS);
    for (; this.#turn <= due; this.#turn += 1) {
      for (let index = this.#turn % TURNS; index < this.locks.length; index += TURNS) this.locks[index]?.ping();
    }
    systemClock.after(TURN_MS, () => this.#next());
  }
}

async function main(argument: string): Promise<void> {
  const crowd = new SoakCrowd(JSON.parse(argument) as SoakRequest);
  await crowd.settle();
  console.log('{}');
  for await (const line of createInterface({ input: process.stdin })) {
    if (line === 'go') crowd.go();
    else await crowd.settle();
    console.log(JSON.stringify(line === 'go' ? {} : crowd.tally()));
  }
  process.exit(0);
}

if (process.argv[1] === import.meta.filename) await main(process.argv[2] ?? '');
