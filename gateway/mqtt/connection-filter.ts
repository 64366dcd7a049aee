/**
 * Filters one connection's bytes between its socket and the broker library (aedes), which would buffer any unfinished
 * packet of up to 256 MB, from anybody.
 *
 * The library reads with `stream.read(null)` only, so the filter replaces `read` on the socket itself. A second stream
 * for each connection would cost memory, and most of our very many connections send very little.
 *
 * Once the CONNACK is out, the filter reads the socket itself. Whole uplinks take the fast path (uplink-fast-path.ts),
 * everything else goes to the library, in the order of arrival. While the library is still busy with what it was given,
 * everything that follows goes to the library too, so that nothing overtakes.
 */
import { Socket } from 'node:net';
import type { Milliseconds } from '../../proto/clock.js';
import { type NextPhases, nextPhase } from '../phase.js';
import type { Connection } from './listener.js';
import { readConnect } from './packets/connect-packet.js';
import { FrameCounter, firstPacket, packetEnd, uplinkPayloadOffset } from './packets/frames.js';
import { UP_TOPIC } from './packets/topics.js';
import type { RefusalCause } from './refusals/refusal-reason.js';
import type { WheelItem } from './timer-wheel.js';

/**
 * The life of a connection:
 *
 * - `handshake`: TLS is being negotiated. Only TLS connections start here.
 * - `connect`: the CONNECT is incomplete. Its bytes are held and checked; the library does not know the connection yet.
 * - `answering`: the library has the CONNECT and authenticates the client. Nothing else is passed to it.
 * - `open`: the client is authenticated. Everything passes, and packets are counted and checked. With the library's
 *   first read after the CONNACK the fast path starts, unless the connection has none.
 * - `closed`: the connection is being closed or is gone. Nothing passes, nothing is held.
 */
export type FilterPhase = 'handshake' | 'connect' | 'answering' | 'open' | 'closed';

const NEXT_PHASES: NextPhases<FilterPhase> = {
  handshake: ['connect', 'closed'],
  connect: ['answering', 'closed'],
  answering: ['open', 'closed'],
  open: ['closed'],
  closed: [],
};

/** What a filter reports to the connection guard. */
export interface FilterWatcher {
  /** The most bytes that a CONNECT may announce, and that any later packet may. */
  readonly maxBytes: { readonly connect: number; readonly packet: number };
  /** The gateway is stopping: nothing more is read. */
  readonly isClosing: boolean;
  /** The filter holds so many bytes more, or less. False where that is too much, and the connection was ended. */
  heldBytesChanged(filter: ConnectionFilter, change: number): boolean;
  /** The CONNECT is complete and well-formed. */
  connectComplete(filter: ConnectionFilter): void;
  /** An authenticated client sent something; `isPacket`: at least one packet was completed by it. */
  received(filter: ConnectionFilter, isPacket: boolean): void;
  /** The connection is to be closed; where a `returnCode` is given, a CONNACK with it is written first. */
  fault(filter: ConnectionFilter, cause: RefusalCause, returnCode?: number): void;
  /** The socket has an error. Once the library has the socket, it handles that. */
  socketFailed(filter: ConnectionFilter, error: Error): void;
  /** The socket is closed. */
  socketClosed(filter: ConnectionFilter): void;
}

/** Takes the uplinks of an authenticated connection, bypassing the library. */
export interface UplinkPath {
  /** Too many uplinks are unanswered: nothing more is read until there are fewer. */
  readonly isFull: boolean;
  /** Takes the payload of one PUBLISH to `up` at QoS 1 with packet id `id`. It must copy what it retains. */
  take(payload: Buffer, id: number): void;
}

/** The identity that a CONNECT claims; empty where it has none. */
export interface ClaimedIdentity {
  readonly clientId: string;
  readonly userName: string;
}

/** What may be read from an authenticated connection (budget/uplink-budget.ts). */
export interface ReadBudget {
  /** The budget is used up: nothing more is to be read for now. */
  readonly isSpent: boolean;
  /** Counts packets that arrived. */
  take(count: number): void;
  /** Calls {@link ConnectionFilter.readOn} once the budget has refilled. */
  hold(filter: ConnectionFilter): void;
  /** The connection has closed. */
  release(filter: ConnectionFilter): void;
}

const UP_TOPIC_BYTES = Buffer.from(UP_TOPIC);

const FILTER = Symbol('filter');
type FilteredSocket = Socket & { [FILTER]?: ConnectionFilter };

/** The filter that was installed on a stream. */
export function connectionFilterOf(stream: unknown): ConnectionFilter | undefined {
  return (stream as FilteredSocket)[FILTER];
}

/** The argument of `read`: Node passes a number or nothing, the library passes null. */
type ReadSize = number | null | undefined;

/** The original `read` of every socket, including TLS sockets. */
const socketRead = Socket.prototype.read as (this: Socket, size?: number) => Buffer | null;

/* Listeners shared by all streams, so that a connection needs no closures of its own. */

function readThroughFilter(this: FilteredSocket, size?: ReadSize): Buffer | null {
  return (this[FILTER] as ConnectionFilter).read(size);
}

function holdFirstBytes(this: FilteredSocket): void {
  this[FILTER]?.holdFirstBytes();
}

function receiveAtFilter(this: FilteredSocket, piece: Buffer): void {
  this[FILTER]?.receive(piece);
}

function readOnAtFilter(this: FilteredSocket): void {
  this[FILTER]?.readOn();
}

function failFilter(this: FilteredSocket, error: Error): void {
  const filter = this[FILTER] as ConnectionFilter;
  filter.watcher.socketFailed(filter, error);
}

function closeFilter(this: FilteredSocket): void {
  const filter = this[FILTER] as ConnectionFilter;
  filter.watcher.socketClosed(filter);
}

export class ConnectionFilter implements Connection, WheelItem {
  readonly stream: Socket;
  readonly raw: Socket;
  readonly address: string;
  /** Used by the timer wheel. */
  slot = 0;
  /* What the guard tracks for this connection. */
  /** How long an authenticated client may be silent. */
  maxSilence: Milliseconds = 0;
  /** There is no descriptor to spare for it: it gets CONNACK 3 as soon as its CONNECT is complete. */
  isSurplus = false;
  /** When its last packet arrived, by the guard's clock; before the first, when it connected. */
  receivedAtMs = 0;
  /** How many bytes of what it was sent it has read, and when that number last changed. */
  readBytes = 0;
  readAtMs = 0;
  /** It was sent something and may not have read all of it. */
  isAwaitingRead = false;
  readonly watcher: FilterWatcher;
  /** The identity that the CONNECT claims, until the client is authenticated. */
  claim: ClaimedIdentity | undefined;
  /** Set before {@link open}; without one everything goes to the library. */
  uplinkPath: UplinkPath | undefined;
  /** Set before {@link open}; without one there is no limit. */
  budget: ReadBudget | undefined;
  /** How many chunks from an authenticated client went to the library although the fast path is in use. */
  passedToLibrary = 0;
  #phase: FilterPhase;
  readonly #frames = new FrameCounter();
  /** Bytes held back from the library: the start of the CONNECT, later what arrived right behind it. */
  #bytes: Buffer | undefined;
  /** How many held bytes were reported to the watcher: 0 once the client is authenticated. */
  #countedBytes = 0;
  /** The CONNECT, until the library has read it. */
  #connect: Buffer | undefined;
  /** The library's `readable` listener, once the fast path is in use: called when there is something for it. */
  #notifyLibrary: (() => void) | undefined;
  /** Once the fast path is in use: what the library is to read next. */
  #forLibrary: Buffer | undefined;
  /** The socket is paused. */
  #isPaused = false;

  constructor({ stream, raw, address }: Connection, phase: 'handshake' | 'connect', watcher: FilterWatcher) {
    this.stream = stream;
    this.raw = raw;
    this.address = address;
    this.#phase = phase;
    this.watcher = watcher;
    (stream as FilteredSocket)[FILTER] = this;
    stream.read = readThroughFilter;
    stream.on('readable', holdFirstBytes);
    stream.on('error', failFilter);
    stream.on('close', closeFilter);
  }

  get phase(): FilterPhase {
    return this.#phase;
  }

  /** The TLS handshake is complete. */
  secured(): void {
    this.#enter('connect');
    this.holdFirstBytes();
  }

  /** The client is authenticated: from now on everything passes. The library reads once it has written the CONNACK. */
  open(): void {
    this.#enter('open');
    this.claim = undefined;
    this.#reportHeldBytes(0);
  }

  /** Lets nothing more through, and drops what it holds. */
  end(): void {
    this.#enter('closed');
    this.#reportHeldBytes(0);
    this.#bytes = undefined;
    this.#connect = undefined;
    this.#forLibrary = undefined;
    this.budget?.release(this);
  }

  #enter(phase: FilterPhase): void {
    this.#phase = nextPhase('a connection', NEXT_PHASES, this.#phase, phase);
  }

  /** Collects what has arrived until the CONNECT is complete. */
  holdFirstBytes(): void {
    if (this.#phase !== 'connect' || this.watcher.isClosing) return;
    const piece = socketRead.call(this.stream);
    if (piece === null) return;
    const bytes = joined(this.#bytes, piece);
    const first = firstPacket(bytes, this.watcher.maxBytes.connect);
    if (first.state === 'fault') return void this.watcher.fault(this, first.fault);
    const isWhole = first.state === 'complete';
    if (isWhole && !this.#checkConnect(bytes.subarray(0, first.size))) return;
    const rest = isWhole ? bytes.subarray(first.size) : bytes;
    if (!this.#holdBytes(rest.length === 0 ? undefined : rest) || !isWhole) return;
    this.#connect = bytes.subarray(0, first.size);
    this.#enter('answering');
    this.stream.removeListener('readable', holdFirstBytes);
    this.watcher.connectComplete(this);
    // The library waits for the socket's `readable` event.
    this.stream.emit('readable');
  }

  /** Whether a CONNECT is allowed by MQTT. Where it is not, the connection was closed. */
  #checkConnect(connect: Buffer): boolean {
    const { clientId, userName, fault, returnCode } = readConnect(connect);
    this.claim = { clientId, userName };
    if (fault !== undefined) this.watcher.fault(this, fault, returnCode);
    return fault === undefined;
  }

  /** What the library gets when it reads from the socket. Node calls the same method, but never with null. */
  read(size: ReadSize): Buffer | null {
    // Node calls read(0) to trigger the next read from the system.
    if (size === 0) return socketRead.call(this.stream, 0);
    if (this.#notifyLibrary !== undefined)
      return size === null ? this.#readForLibrary() : socketRead.call(this.stream, size);
    if (this.#connect !== undefined) {
      const connect = this.#connect;
      this.#connect = undefined;
      return connect;
    }
    if (this.#phase !== 'open' || this.watcher.isClosing) return null;
    // The lock's previous connection may have used up the budget. The library waits until `readOn` notifies it.
    if (this.isOverBudget) {
      this.budget?.hold(this);
      return null;
    }
    if (this.uplinkPath !== undefined && this.#startFastPath()) return null;
    const piece = this.#readSocket();
    return piece !== null && this.#countPackets(piece) ? piece : null;
  }

  /** Takes a chunk from an authenticated client, once the fast path is in use. */
  receive(piece: Buffer): void {
    if (this.#phase !== 'open') return;
    if (this.watcher.isClosing) return void this.stream.pause();
    if (!this.#countPackets(piece)) return;
    if (this.#forLibrary === undefined) this.#dispatch(piece);
    else this.#passToLibrary(piece);
    this.readOn();
  }

  /** Nothing is read from it, since its budget is used up. Its silence is then our doing. */
  get isOverBudget(): boolean {
    return this.budget?.isSpent === true;
  }

  /** Resumes reading, or pauses it, depending on whether there is a reason to wait. */
  readOn(): void {
    const { stream } = this;
    if (this.#phase !== 'open' || !stream.writable) return;
    if (this.#notifyLibrary === undefined) return void stream.emit('readable');
    const isBehind = stream.writableNeedDrain;
    if (isBehind && !stream.listeners('drain').includes(readOnAtFilter)) stream.once('drain', readOnAtFilter);
    const isSpent = this.isOverBudget;
    if (isSpent) this.budget?.hold(this);
    const mustPause = isBehind || isSpent || this.#forLibrary !== undefined || this.uplinkPath?.isFull === true;
    if (mustPause === this.#isPaused) return;
    this.#isPaused = mustPause;
    if (mustPause) stream.pause();
    else stream.resume();
  }

  /** Counts the packets of an authenticated client. False where one is malformed and the connection was closed. */
  #countPackets(piece: Buffer): boolean {
    const { complete } = this.#frames;
    const fault = this.#frames.pass(piece, this.watcher.maxBytes.packet);
    const packets = this.#frames.complete - complete;
    if (packets > 0) this.budget?.take(packets);
    if (fault === undefined) this.watcher.received(this, packets > 0);
    else this.watcher.fault(this, fault);
    return fault === undefined;
  }

  /**
   * From now on the filter reads with `data` events, and notifies the library when there is something for it. The
   * library reads for the first time when it has written the CONNACK, so nothing can be answered before that.
   */
  #startFastPath(): boolean {
    const { stream } = this;
    const [notifyLibrary, ...others] = stream.listeners('readable') as (() => void)[];
    if (notifyLibrary === undefined || others.length > 0) {
      // It is unclear which listener is the library's. Then everything goes to the library, as without a fast path.
      this.uplinkPath = undefined;
      return false;
    }
    this.#notifyLibrary = notifyLibrary;
    stream.removeListener('readable', notifyLibrary);
    if (this.#bytes !== undefined) stream.unshift(this.#bytes);
    this.#bytes = undefined;
    stream.on('data', receiveAtFilter);
    stream.resume();
    return true;
  }

  /** Passes each packet on, in order: uplinks to the fast path, everything else to the library. */
  #dispatch(piece: Buffer): void {
    /** Everything before this offset has been passed on. */
    let given = 0;
    for (let at = this.#frames.firstPacketAt; at < piece.length; ) {
      const end = packetEnd(piece, at);
      if (end === 0) break;
      const payloadAt = uplinkPayloadOffset(piece, at, end, UP_TOPIC_BYTES);
      if (payloadAt > 0) {
        if (at > given) this.#passToLibrary(piece.subarray(given, at));
        if (!this.#isTaking()) return;
        given = at;
        // The library is still busy with what came before.
        if (this.#forLibrary !== undefined) break;
        this.uplinkPath?.take(
          piece.subarray(payloadAt, end),
          ((piece[payloadAt - 2] as number) << 8) | (piece[payloadAt - 1] as number),
        );
        given = end;
      }
      at = end;
    }
    if (given < piece.length && this.#isTaking()) this.#passToLibrary(given === 0 ? piece : piece.subarray(given));
  }

  /** Whether the connection still accepts input. */
  #isTaking(): boolean {
    return this.#phase === 'open' && this.stream.writable;
  }

  /** Hands a chunk to the library, which reads it at once or when it is done with the previous one. */
  #passToLibrary(piece: Buffer): void {
    this.passedToLibrary += 1;
    this.#forLibrary = this.#forLibrary === undefined ? piece : Buffer.concat([this.#forLibrary, piece]);
    this.#notifyLibrary?.call(this.stream);
  }

  #readForLibrary(): Buffer | null {
    const piece = this.#forLibrary;
    if (piece === undefined) return null;
    this.#forLibrary = undefined;
    if (this.#isPaused) this.readOn();
    return piece;
  }

  #readSocket(): Buffer | null {
    const piece = socketRead.call(this.stream);
    const before = this.#bytes;
    if (before === undefined) return piece;
    this.#bytes = undefined;
    return piece === null ? before : Buffer.concat([before, piece]);
  }

  #holdBytes(bytes: Buffer | undefined): boolean {
    this.#bytes = bytes;
    return this.#reportHeldBytes(bytes?.buffer.byteLength ?? 0);
  }

  #reportHeldBytes(bytes: number): boolean {
    const change = bytes - this.#countedBytes;
    this.#countedBytes = bytes;
    return change === 0 || this.watcher.heldBytesChanged(this, change);
  }
}

/** Appends `piece`. The buffer doubles when it is full, so that bytes that arrive one by one are cheap to hold. */
function joined(before: Buffer | undefined, piece: Buffer): Buffer {
  if (before === undefined && piece.buffer.byteLength === piece.length) return piece;
  const filled = before?.length ?? 0;
  const length = filled + piece.length;
  // Only a buffer that was allocated here has spare room that is ours.
  const fits = before !== undefined && before.buffer.byteLength >= length;
  const room = fits ? before.buffer : Buffer.allocUnsafeSlow(before === undefined ? length : 2 * length).buffer;
  const whole = Buffer.from(room, 0, length);
  if (!fits && before !== undefined) whole.set(before);
  whole.set(piece, filled);
  return whole;
}
