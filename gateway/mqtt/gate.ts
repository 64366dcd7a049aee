/**
 * One connection's gate: it stands between the socket and the broker library, which would buffer any unfinished packet
 * up to 256 MB, from anybody. Before the CONNECT it holds the bytes itself, as few as may be; then it lets the library
 * have the CONNECT and nothing else until that is accepted; then everything, by the way of a counter of packets.
 *
 * The library reads with `stream.read()` alone, so that is where the gate stands: no second stream for each connection,
 * since there are very many that say very little.
 */
import { Socket } from 'node:net';
import type { Milliseconds } from '../../proto/clock.js';
import { FrameCounter, firstPacket } from './frames.js';
import type { Connection } from './listener.js';
import type { OnWheel } from './wheel.js';

/**
 * - `handshake`: TLS is being agreed on.
 * - `connect`: the CONNECT is not whole yet.
 * - `answering`: the CONNECT is being judged; nothing more is read for the library.
 * - `open`: the client is authenticated.
 * - `over`: it has ended, or is to.
 */
export type GatePhase = 'handshake' | 'connect' | 'answering' | 'open' | 'over';

/** What the gate tells the door of. */
export interface GateWatcher {
  /** The most bytes a CONNECT may announce, and any packet after it. */
  readonly most: { readonly connect: number; readonly packet: number };
  /** Nothing is read any more: the gateway stops. */
  readonly isClosing: boolean;
  /** The gate holds so many bytes more, or less. False where that is too much, and the connection was ended. */
  held(gate: Gate, change: number): boolean;
  connectIsWhole(gate: Gate): void;
  /** Something came from an authenticated client; whether a packet came to its end with it. */
  heard(gate: Gate, isPacket: boolean): void;
  fault(gate: Gate, why: string): void;
  /** The socket has an error, the library's business once it has the socket. */
  failed(gate: Gate, error: Error): void;
  /** The socket is closed. */
  gone(gate: Gate): void;
}

const GATE = Symbol('gate');
type Guarded = Socket & { [GATE]?: Gate };

/** The gate that a stream was given. */
export function gateOf(stream: unknown): Gate | undefined {
  return (stream as Guarded)[GATE];
}

/** What every socket reads with, a TLS one too. */
const socketRead = Socket.prototype.read as (this: Socket, size?: number) => Buffer | null;

/* One function of each for all streams, so that a connection costs none of its own. */

function readThroughGate(this: Guarded, size?: number): Buffer | null {
  return (this[GATE] as Gate).read(size);
}

function holdFirstBytes(this: Guarded): void {
  this[GATE]?.holdFirstBytes();
}

function failGate(this: Guarded, error: Error): void {
  const gate = this[GATE] as Gate;
  gate.watcher.failed(gate, error);
}

function closeGate(this: Guarded): void {
  const gate = this[GATE] as Gate;
  gate.watcher.gone(gate);
}

export class Gate implements Connection, OnWheel {
  readonly stream: Socket;
  readonly raw: Socket;
  readonly address: string;
  phase: GatePhase;
  slot = 0;
  /** How long it may be silent, once it is open. */
  idleLimit: Milliseconds = 0;
  /** When its last packet came, by the door's clock. */
  heardAtMs = 0;
  /** How much it has read of what it was sent, as of when; the door's, to find those that read no more. */
  readBytes = 0;
  readAtMs = 0;
  readonly watcher: GateWatcher;
  readonly #frames = new FrameCounter();
  /** What has come and isn't the library's yet: the beginning of the CONNECT, later what came right behind it. */
  #bytes: Buffer | undefined;
  /** How many bytes the watcher knows to be held: none once the client is authenticated. */
  #counted = 0;
  /** The CONNECT, until the library has read it. */
  #connect: Buffer | undefined;

  constructor({ stream, raw, address }: Connection, phase: 'handshake' | 'connect', watcher: GateWatcher) {
    this.stream = stream;
    this.raw = raw;
    this.address = address;
    this.phase = phase;
    this.watcher = watcher;
    (stream as Guarded)[GATE] = this;
    stream.read = readThroughGate;
    stream.on('readable', holdFirstBytes);
    stream.on('error', failGate);
    stream.on('close', closeGate);
  }

  /** Lets everything through from now on; the library asks for it as soon as it has written the CONNACK. */
  open(): void {
    this.phase = 'open';
    this.#count(0);
  }

  /** Lets nothing through any more, and keeps nothing. */
  end(): void {
    this.phase = 'over';
    this.#count(0);
    this.#bytes = undefined;
    this.#connect = undefined;
  }

  /** Takes what has come, until the CONNECT is whole. */
  holdFirstBytes(): void {
    if (this.phase !== 'connect' || this.watcher.isClosing) return;
    const piece = socketRead.call(this.stream);
    if (piece === null) return;
    const bytes = joined(this.#bytes, piece);
    const first = firstPacket(bytes, this.watcher.most.connect);
    if (first.state === 'fault') return void this.watcher.fault(this, first.why);
    const isWhole = first.state === 'complete';
    const rest = isWhole ? bytes.subarray(first.size) : bytes;
    if (!this.#hold(rest.length === 0 ? undefined : rest) || !isWhole) return;
    this.#connect = bytes.subarray(0, first.size);
    this.phase = 'answering';
    this.stream.removeListener('readable', holdFirstBytes);
    this.watcher.connectIsWhole(this);
    // The library waits for the socket to say that there is something.
    this.stream.emit('readable');
  }

  /** What the library gets when it reads from the socket. */
  read(size?: number): Buffer | null {
    // Node's own way to say: go and look whether there is more.
    if (size === 0) return socketRead.call(this.stream, 0);
    if (this.#connect !== undefined) {
      const connect = this.#connect;
      this.#connect = undefined;
      return connect;
    }
    if (this.phase !== 'open' || this.watcher.isClosing) return null;
    const piece = this.#readOpen();
    if (piece === null) return null;
    const { complete } = this.#frames;
    const why = this.#frames.pass(piece, this.watcher.most.packet);
    if (why !== undefined) {
      this.watcher.fault(this, why);
      return null;
    }
    this.watcher.heard(this, this.#frames.complete > complete);
    return piece;
  }

  #readOpen(): Buffer | null {
    const piece = socketRead.call(this.stream);
    const before = this.#bytes;
    if (before === undefined) return piece;
    this.#bytes = undefined;
    return piece === null ? before : Buffer.concat([before, piece]);
  }

  #hold(bytes: Buffer | undefined): boolean {
    this.#bytes = bytes;
    return this.#count(bytes?.buffer.byteLength ?? 0);
  }

  #count(bytes: number): boolean {
    const change = bytes - this.#counted;
    this.#counted = bytes;
    return change === 0 || this.watcher.held(this, change);
  }
}

/** Both in one, in a buffer that doubles: bytes that come one by one are kept in hardly more room than they take. */
function joined(before: Buffer | undefined, piece: Buffer): Buffer {
  if (before === undefined && piece.buffer.byteLength === piece.length) return piece;
  const filled = before?.length ?? 0;
  const length = filled + piece.length;
  // Only what was allocated here has room behind it that is ours.
  const fits = before !== undefined && before.buffer.byteLength >= length;
  const room = fits ? before.buffer : Buffer.allocUnsafeSlow(before === undefined ? length : 2 * length).buffer;
  const whole = Buffer.from(room, 0, length);
  if (!fits && before !== undefined) whole.set(before);
  whole.set(piece, filled);
  return whole;
}
