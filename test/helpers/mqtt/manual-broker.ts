/**
 * A broker that a test controls completely. Sockets are simulated, so that the test decides into which chunks bytes are
 * cut. Ingest (the part that stores uplinks, the locks' messages) answers when the test tells it to. After each step
 * the test awaits {@link runLoopTurns}; then the broker has finished its work.
 */
import { Duplex } from 'node:stream';
import type { Keys } from '../../../gateway/data-folder/keys.js';
import { GatewayEvents } from '../../../gateway/events.js';
import type { Answer, DeviceEvent, Ingest, Sender } from '../../../gateway/ingest/ingest.js';
import { Broker } from '../../../gateway/mqtt/broker.js';
import type { BrokerOptions } from '../../../gateway/mqtt/broker-options.js';
import type { Connection } from '../../../gateway/mqtt/listener.js';
import type { Store } from '../../../gateway/store/contract/store.js';
import { afterThisTurn, systemClock } from '../../../proto/clock.js';
import type { Mac } from '../../../proto/wire/mac.js';
import type { Teardown } from '../store/temp-folder.js';
import { connectPacket } from './raw-lock.js';

/** The secret of every lock of the broker. */
export const MANUAL_SECRET = 'lgs_hand';
/** More turns of the event loop than any step takes. A CONNECT takes the most. */
const MAX_TURNS = 30;

/** Resolves after some turns of the event loop, when work that was started is done. */
export async function runLoopTurns(count = 6): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise<void>(afterThisTurn);
}

/** The gateway's side of a connection; the other side is the test. */
export class SimulatedSocket extends Duplex {
  /** The gateway counts bytes at `_handle`, the operating system's socket, which a simulated socket does not have. */
  readonly _handle = null;
  readonly bytesRead = 0;
  bytesWritten = 0;
  /** The number of writes by the gateway. */
  writes = 0;
  /** Whether the client reads. While false, written bytes stay in the buffer. */
  isReading = true;
  readonly #chunks: Buffer[] = [];
  #hasEnded = false;
  #finishWrite: () => void = () => undefined;

  constructor() {
    super({ allowHalfOpen: false });
  }

  /** All bytes that the gateway has written, hex. */
  get received(): string {
    return Buffer.concat(this.#chunks).toString('hex');
  }

  /** Sends chunks, unless the connection is closed. */
  send(...chunks: readonly Buffer[]): void {
    for (const chunk of chunks) if (!this.#hasEnded && !this.destroyed) this.push(chunk);
  }

  /** Closes the client's side. */
  endSending(): void {
    if (!this.#hasEnded && !this.destroyed) this.push(null);
    this.#hasEnded = true;
  }

  // `send` pushes what the gateway reads, so there is nothing to do when it wants more.
  override _read(): void {}

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.writes += 1;
    this.bytesWritten += chunk.length;
    this.#chunks.push(chunk);
    if (this.isReading) done();
    else this.#finishWrite = done;
  }

  /** Reads the waiting bytes, and keeps reading. */
  resumeReading(): void {
    this.isReading = true;
    this.#finishWrite();
  }

  override _final(done: () => void): void {
    done();
    // The client closes its side too.
    this.endSending();
  }
}

/** An uplink that ingest received, with the function that answers it. */
export interface TakenUplink {
  readonly sender: Sender;
  readonly payload: string;
  readonly answer: Answer;
}

/** Takes uplinks like the real ingest, and answers them in order when the test calls {@link answer}. */
export class ManualIngest {
  readonly taken: TakenUplink[] = [];
  readonly recordedEvents: { readonly mac: Mac; readonly event: DeviceEvent }[] = [];
  /** Why a payload is refused at once, as when too many wait; undefined if it is not. */
  refusalOf: (payload: string) => Error | undefined = () => undefined;
  /** The error with which a payload is answered when it can't be stored; undefined for an acknowledgement. */
  failureOf: (payload: string) => Error | undefined = () => undefined;
  #answered = 0;

  take(sender: Sender, bytes: Uint8Array, answer: Answer): void {
    const payload = Buffer.from(bytes).toString('latin1');
    const refused = this.refusalOf(payload);
    if (refused !== undefined) answer(refused);
    else this.taken.push({ sender, payload, answer });
  }

  recordEvent(_deviceId: number, mac: Mac, event: DeviceEvent, announce: () => void = () => undefined): void {
    this.recordedEvents.push({ mac, event });
    announce();
  }

  /** The number of uplinks that wait for an answer. */
  get waitingCount(): number {
    return this.taken.length - this.#answered;
  }

  /** Answers the first `count` waiting uplinks at once, as a commit does. */
  answer(count = this.waitingCount): void {
    for (const { payload, answer } of this.taken.slice(this.#answered, this.#answered + count)) {
      this.#answered += 1;
      answer(this.failureOf(payload));
    }
  }

  /** Removes and returns all payloads that were taken, answered or not. */
  removeTaken(): string[] {
    this.#answered = 0;
    return this.taken.splice(0).map(({ payload }) => payload);
  }

  async stop(): Promise<void> {
    this.answer();
  }
}

/** Starts a broker that accepts every lock; it is closed after the test. */
export async function startManualBroker(test: Teardown, options: Partial<BrokerOptions> = {}) {
  const ingest = new ManualIngest();
  const events = new GatewayEvents();
  const credential = { id: 1, secretHash: Buffer.alloc(32, MANUAL_SECRET), expiresAtMs: null, isRevoked: false };
  const findLock = async (mac: Mac) => {
    // Any number that differs for each lock. A MAC has no separators here.
    const deviceId = Number.parseInt(mac, 16);
    return { deviceId, merchantId: 1, simulated: false, credentials: [credential] };
  };
  const counts = { messagesUp: 0, messagesDown: 0 };
  // The parts of a gateway that the broker needs; of each, only the members that it uses.
  const broker = await Broker.start({
    host: '127.0.0.1',
    port: 0,
    store: { findLock } as unknown as Store,
    keys: { hashSecret: (secret: string | Buffer) => Buffer.alloc(32, secret) } as unknown as Keys,
    ingest: ingest as unknown as Ingest,
    usage: {
      meter: { opened: () => undefined, accepted: () => counts },
      sims: { activate: async () => undefined },
    } as unknown as BrokerOptions['usage'],
    events,
    clock: systemClock,
    wallClock: systemClock,
    ...options,
  });
  test.teardown(() => broker.close());

  /** Opens a connection that has sent nothing yet. */
  const open = (): SimulatedSocket => {
    const socket = new SimulatedSocket();
    const stream = socket as unknown as Connection['stream'];
    broker.take({ stream, raw: stream, address: 'hand', headerBytes: 0 });
    return socket;
  };

  /** Opens an authenticated connection of a lock. `extraBytes` are sent in the same chunk as the CONNECT. */
  const connect = async (
    mac: Mac,
    extraBytes: Buffer = Buffer.alloc(0),
    prepare: (socket: SimulatedSocket) => void = () => undefined,
  ): Promise<SimulatedSocket> => {
    const socket = open();
    prepare(socket);
    socket.send(Buffer.concat([connectPacket({ user: mac, secret: MANUAL_SECRET }), extraBytes]));
    for (let turn = 0; turn < MAX_TURNS && socket.received === ''; turn++) await runLoopTurns(1);
    await runLoopTurns();
    return socket;
  };
  return { broker, ingest, events, counts, open, connect };
}
