/**
 * Filters one connection's bytes between its socket and the broker library (aedes). Without the filter, the library
 * would buffer unfinished packets of up to 256 MB from any client.
 *
 * The library reads only with `stream.read(null)`, so the filter replaces `read` on the socket. A second stream for
 * each connection would cost memory, and most of the gateway's very many connections send very little.
 *
 * Once the CONNACK is written, the filter reads the socket itself. Complete uplinks take the fast path
 * (uplink-fast-path.ts); everything else goes to the library, in the order of arrival. While the library is busy with
 * earlier bytes, all later bytes go to the library too, so that no packet overtakes another.
 */
import { Socket } from 'node:net';
import type { Milliseconds } from '../../proto/clock.js';
import { type NextPhases, nextPhase } from '../phase.js';
import type { Connection } from './listener.js';
import { readConnect } from './packets/connect-packet.js';
import { FrameCounter, firstPacket, packetEnd, uplinkPayloadOffset } from './packets/frames.js';
import { UP_TOPIC } from './packets/topics.js';
import type { RefusalCause } from './refusals/refusal-reason.js';
import type { Session } from './sessions.js';
import type { TimerWheelItem } from './timer-wheel.js';

/**
 * The phases of a connection:
 *
 * - `handshake`: TLS is being negotiated. Only TLS connections start here.
 * - `connect`: the CONNECT is incomplete. Its bytes are held and checked; the library does not know the connection yet.
 * - `answering`: the library has the CONNECT and authenticates the client. Nothing else is passed to it.
 * - `open`: the client is authenticated. Everything passes, and packets are counted and checked. The fast path, if the
 *   connection has one, starts with the library's first read after the CONNACK.
 * - `closed`: the connection is being closed or is closed. Nothing passes, nothing is held.
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
  /** Maximum length, in bytes, that a CONNECT or a later packet may announce. */
  readonly maxBytes: { readonly connect: number; readonly packet: number };
  /** The gateway is stopping: nothing more is read. */
  readonly isClosing: boolean;
  /**
   * The filter holds `change` more bytes, or fewer if negative. Returns false if that is too much: the connection was
   * then closed.
   */
  heldBytesChanged(filter: ConnectionFilter, change: number): boolean;
  /** The CONNECT is complete and well-formed. */
  connectComplete(filter: ConnectionFilter): void;
  /** An authenticated client sent bytes. `isPacket`: they completed at least one packet. */
  received(filter: ConnectionFilter, isPacket: boolean): void;
  /** The connection must be closed. If `returnCode` is given, a CONNACK with this code is written first. */
  fault(filter: ConnectionFilter, cause: RefusalCause, returnCode?: number): void;
  /** The socket has an error. Not called after {@link ConnectionFilter.handOver}: the library handles errors then. */
  socketFailed(filter: ConnectionFilter, error: Error): void;
  /** The gateway is closing the connection, and reads and drops what still arrives (lingering-close.ts). */
  lingering(filter: ConnectionFilter): void;
  /** The socket is closed. */
  socketClosed(filter: ConnectionFilter): void;
}

/** Takes the uplinks of an authenticated connection, bypassing the library. */
export interface UplinkPath {
  /** Whether too many uplinks are unanswered, so that nothing more may be read. */
  readonly isFull: boolean;
  /** Takes the payload of one PUBLISH to `up` at QoS 1. The path must copy what it retains. */
  take(payload: Buffer, packetId: number): void;
  /** Writes the PUBACKs that wait. Must be called before a write that must not overtake them. */
  write(): void;
}

/** The identity that a CONNECT claims; empty strings if it has none. */
export interface ClaimedIdentity {
  readonly clientId: string;
  readonly userName: string;
}

/** Limits what is read from an authenticated connection (budget/uplink-budget.ts). */
export interface ReadBudget {
  /** Whether the budget is used up, so that nothing more may be read. */
  readonly isSpent: boolean;
  /** Counts packets that arrived. */
  take(count: number): void;
  /** Calls {@link ConnectionFilter.updateReading} once the budget has refilled. */
  hold(filter: ConnectionFilter): void;
  /** Must be called when the connection has closed. */
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

function receiveInFilter(this: FilteredSocket, chunk: Buffer): void {
  this[FILTER]?.receive(chunk);
}

function resumeFilter(this: FilteredSocket): void {
  this[FILTER]?.updateReading();
}

function failFilter(this: FilteredSocket, error: Error): void {
  const filter = this[FILTER] as ConnectionFilter;
  filter.watcher.socketFailed(filter, error);
}

function closeFilter(this: FilteredSocket): void {
  const filter = this[FILTER] as ConnectionFilter;
  filter.watcher.socketClosed(filter);
}

export class ConnectionFilter implements Connection, TimerWheelItem {
  readonly stream: Socket;
  readonly raw: Socket;
  readonly address: string;
  readonly headerBytes: number;
  /** Used by the timer wheel. */
  slot = 0;
  /* What the guard tracks for this connection. */
  /** How long an authenticated client may be silent. */
  maxSilence: Milliseconds = 0;
  /**
   * The connection has a file descriptor that is reserved for other uses, so it can't stay: it gets CONNACK 3 when its
   * CONNECT is complete.
   */
  usesReservedDescriptor = false;
  /** When the last packet arrived, by the guard's clock; before the first packet, when the client connected. */
  receivedAtMs = 0;
  /** How many of the bytes sent to it the client has read, and when this number last changed, by the guard's clock. */
  readBytes = 0;
  readAtMs = 0;
  /** The client was sent something and may not have read all of it. */
  isAwaitingRead = false;
  readonly watcher: FilterWatcher;
  /** The identity that the CONNECT claims, until the client is authenticated. */
  claim: ClaimedIdentity | undefined;
  /** Must be set before {@link open}; if undefined, everything goes to the library. */
  uplinkPath: UplinkPath | undefined;
  /** Must be set before {@link open}; if undefined, there is no limit. */
  budget: ReadBudget | undefined;
  /** The gateway is closing the connection gracefully (lingering-close.ts). */
  isLingering = false;
  /** The keepalive that the CONNECT asks for, in seconds. */
  keepalive = 0;
  /** The session of the client; undefined before it is authenticated and after it has disconnected. */
  session: Session | undefined;
  /** How many chunks from an authenticated client went to the library while the fast path is in use; for tests. */
  passedToLibrary = 0;
  #phase: FilterPhase;
  readonly #frames = new FrameCounter();
  /** Bytes held back from the library: the start of the CONNECT, later bytes that arrived together with its end. */
  #bytes: Buffer | undefined;
  /** How many held bytes were reported to the watcher: 0 once the client is authenticated. */
  #countedBytes = 0;
  /** The CONNECT, until the library has read it. */
  #connect: Buffer | undefined;
  /**
   * The library's `readable` listener, set once the fast path is in use. Called when there are bytes for the library.
   */
  #notifyLibrary: (() => void) | undefined;
  /** Set once the fast path is in use: the bytes that the library reads next. */
  #forLibrary: Buffer | undefined;
  #isPaused = false;

  constructor(
    { stream, raw, address, headerBytes }: Connection,
    phase: 'handshake' | 'connect',
    watcher: FilterWatcher,
  ) {
    this.stream = stream;
    this.raw = raw;
    this.address = address;
    this.headerBytes = headerBytes;
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

  /** Must be called when the TLS handshake is complete. */
  secured(): void {
    this.#enter('connect');
    this.holdFirstBytes();
  }

  /** Must be called when the client is authenticated. The library reads once it has written the CONNACK. */
  open(): void {
    this.#enter('open');
    this.claim = undefined;
    this.#reportHeldBytes(0);
  }

  /** Must be called immediately before the library gets the socket. From then on, the library listens for errors. */
  handOver(): void {
    // With a third listener Node would allocate room for seventeen more.
    this.stream.removeListener('error', failFilter);
  }

  /** Whether nothing of a CONNECT has arrived. */
  get isEmpty(): boolean {
    return this.#bytes === undefined;
  }

  /** Passes nothing on any more, and drops the held bytes. */
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

  /** Collects the received bytes until the CONNECT is complete. */
  holdFirstBytes(): void {
    if (this.#phase !== 'connect' || this.watcher.isClosing) return;
    const chunk = socketRead.call(this.stream);
    if (chunk === null) return;
    const bytes = append(this.#bytes, chunk);
    const first = firstPacket(bytes, this.watcher.maxBytes.connect);
    if (first.state === 'fault') return void this.watcher.fault(this, first.fault);
    const isComplete = first.state === 'complete';
    if (isComplete && !this.#checkConnect(bytes.subarray(0, first.size))) return;
    const heldBytes = isComplete ? bytes.subarray(first.size) : bytes;
    if (!this.#holdBytes(heldBytes.length === 0 ? undefined : heldBytes) || !isComplete) return;
    this.#connect = bytes.subarray(0, first.size);
    this.#enter('answering');
    this.stream.removeListener('readable', holdFirstBytes);
    this.watcher.connectComplete(this);
    // The library waits for the socket's `readable` event.
    this.stream.emit('readable');
  }

  /** Whether MQTT allows the CONNECT. If not, closes the connection. */
  #checkConnect(connect: Buffer): boolean {
    const { clientId, userName, fault, returnCode } = readConnect(connect);
    this.claim = { clientId, userName };
    if (fault !== undefined) this.watcher.fault(this, fault, returnCode);
    return fault === undefined;
  }

  /** Replaces `read` of the socket. The library calls it with null; Node calls it too, but never with null. */
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
    // The lock's previous connection may have used up the budget. `updateReading` notifies the library later.
    if (this.isOverBudget) {
      this.budget?.hold(this);
      return null;
    }
    if (this.uplinkPath !== undefined && this.#startFastPath()) return null;
    const chunk = this.#readSocket();
    return chunk !== null && this.#countPackets(chunk) ? chunk : null;
  }

  /** Takes a chunk from an authenticated client, once the fast path is in use. */
  receive(chunk: Buffer): void {
    if (this.#phase !== 'open') return;
    if (this.watcher.isClosing) return void this.stream.pause();
    if (!this.#countPackets(chunk)) return;
    if (this.#forLibrary === undefined) this.#dispatch(chunk);
    else this.#passToLibrary(chunk);
    this.updateReading();
  }

  /** Whether nothing is read because the budget is used up. The client's silence must then not count against it. */
  get isOverBudget(): boolean {
    return this.budget?.isSpent === true;
  }

  /** Resumes reading, or pauses it, depending on whether there is a reason to wait. */
  updateReading(): void {
    const { stream } = this;
    if (this.#phase !== 'open' || !stream.writable) return;
    // Without the fast path the library reads, and is only told to look again.
    if (this.#notifyLibrary === undefined) return void stream.emit('readable');
    const isWriteBufferFull = stream.writableNeedDrain;
    if (isWriteBufferFull && !stream.listeners('drain').includes(resumeFilter)) stream.once('drain', resumeFilter);
    const isSpent = this.isOverBudget;
    if (isSpent) this.budget?.hold(this);
    const mustPause =
      isWriteBufferFull || isSpent || this.#forLibrary !== undefined || this.uplinkPath?.isFull === true;
    if (mustPause === this.#isPaused) return;
    this.#isPaused = mustPause;
    if (mustPause) stream.pause();
    else stream.resume();
  }

  /**
   * Counts the packets of an authenticated client. Returns false if one is malformed; the connection was then closed.
   */
  #countPackets(chunk: Buffer): boolean {
    const completeBefore = this.#frames.complete;
    const fault = this.#frames.pass(chunk, this.watcher.maxBytes.packet);
    const packetCount = this.#frames.complete - completeBefore;
    if (packetCount > 0) this.budget?.take(packetCount);
    if (fault === undefined) this.watcher.received(this, packetCount > 0);
    else this.watcher.fault(this, fault);
    return fault === undefined;
  }

  /**
   * Starts reading with `data` events; the library is notified when there are bytes for it. The library first reads
   * when it has written the CONNACK, so no answer can precede the CONNACK.
   */
  #startFastPath(): boolean {
    const { stream } = this;
    const [notifyLibrary, ...others] = stream.listeners('readable') as (() => void)[];
    if (notifyLibrary === undefined || others.length > 0) {
      // It is unclear which listener is the library's, so everything goes to the library.
      this.uplinkPath = undefined;
      return false;
    }
    this.#notifyLibrary = notifyLibrary;
    stream.removeListener('readable', notifyLibrary);
    if (this.#bytes !== undefined) stream.unshift(this.#bytes);
    this.#bytes = undefined;
    stream.on('data', receiveInFilter);
    stream.resume();
    return true;
  }

  /** Passes each packet on, in order: uplinks to the fast path, everything else to the library. */
  #dispatch(chunk: Buffer): void {
    /** Everything before this offset has been passed on. */
    let passedTo = 0;
    for (let packetAt = this.#frames.firstPacketAt; packetAt < chunk.length; ) {
      const end = packetEnd(chunk, packetAt);
      if (end === 0) break;
      const payloadAt = uplinkPayloadOffset(chunk, packetAt, end, UP_TOPIC_BYTES);
      if (payloadAt > 0) {
        if (packetAt > passedTo) this.#passToLibrary(chunk.subarray(passedTo, packetAt));
        if (!this.#acceptsInput()) return;
        passedTo = packetAt;
        // The library is still busy with earlier bytes.
        if (this.#forLibrary !== undefined) break;
        // The two bytes before the payload.
        const packetId = ((chunk[payloadAt - 2] as number) << 8) | (chunk[payloadAt - 1] as number);
        this.uplinkPath?.take(chunk.subarray(payloadAt, end), packetId);
        passedTo = end;
      }
      packetAt = end;
    }
    if (passedTo < chunk.length && this.#acceptsInput())
      this.#passToLibrary(passedTo === 0 ? chunk : chunk.subarray(passedTo));
  }

  /** Whether the connection still accepts input. */
  #acceptsInput(): boolean {
    return this.#phase === 'open' && this.stream.writable;
  }

  /** Hands a chunk to the library, which reads it at once or after the previous chunk. */
  #passToLibrary(chunk: Buffer): void {
    this.passedToLibrary += 1;
    this.#forLibrary = this.#forLibrary === undefined ? chunk : Buffer.concat([this.#forLibrary, chunk]);
    this.#notifyLibrary?.call(this.stream);
  }

  #readForLibrary(): Buffer | null {
    const chunk = this.#forLibrary;
    if (chunk === undefined) return null;
    this.#forLibrary = undefined;
    if (this.#isPaused) this.updateReading();
    return chunk;
  }

  /** Reads from the socket. The held bytes come first. */
  #readSocket(): Buffer | null {
    const chunk = socketRead.call(this.stream);
    const held = this.#bytes;
    if (held === undefined) return chunk;
    this.#bytes = undefined;
    return chunk === null ? held : Buffer.concat([held, chunk]);
  }

  /** Holds these bytes. Counts the whole memory that they keep alive, which may be larger than they are. */
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

/** Appends a chunk to the held bytes. A full buffer doubles, so that bytes that arrive one by one are cheap to hold. */
function append(held: Buffer | undefined, chunk: Buffer): Buffer {
  // A chunk that is a part of a larger memory is copied, so that the rest of that memory is not held too.
  if (held === undefined && chunk.buffer.byteLength === chunk.length) return chunk;
  const heldLength = held?.length ?? 0;
  const length = heldLength + chunk.length;
  // Only a buffer that this function allocated has unused space after its bytes.
  const fits = held !== undefined && held.buffer.byteLength >= length;
  const memory = fits ? held.buffer : Buffer.allocUnsafeSlow(held === undefined ? length : 2 * length).buffer;
  const bytes = Buffer.from(memory, 0, length);
  if (!fits && held !== undefined) bytes.set(held);
  bytes.set(chunk, heldLength);
  return bytes;
}
