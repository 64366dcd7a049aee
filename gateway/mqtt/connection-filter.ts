/**
 * One connection's gate: it stands between the socket and the broker library, which would buffer any unfinished packet
 * up to 256 MB, from anybody. Before the CONNECT it holds the bytes itself, as few as may be; then it lets the library
 * have the CONNECT and nothing else until that is accepted; then everything, by the way of a counter of packets.
 *
 * The library reads with `stream.read(null)` alone, so that is where the gate stands: no second stream for each
 * connection, since there are very many that say very little.
 *
 * Once the CONNACK is out the gate reads for itself and the library gets what isn't the lane's (uplink-fast-path.ts):
 * whole uplinks go the lane's way, everything else is the library's, in the order in which it came. While the library
 * is not done with what it has got, all that comes behind it is the library's too, so that nothing overtakes.
 */
import { Socket } from 'node:net';
import type { Milliseconds } from '../../proto/clock.js';
import type { Connection } from './listener.js';
import { readConnect } from './packets/connect-packet.js';
import { FrameCounter, firstPacket, packetEnd, payloadOfUplink } from './packets/frames.js';
import { UP_TOPIC } from './packets/topics.js';
import type { RefusalCause } from './refusals/refusal-reason.js';
import type { WheelItem } from './timer-wheel.js';

/**
 * - `handshake`: TLS is being agreed on.
 * - `connect`: the CONNECT is not whole yet.
 * - `answering`: the CONNECT is being judged; nothing more is read for the library.
 * - `open`: the client is authenticated.
 * - `over`: it has ended, or is to.
 */
export type FilterPhase = 'handshake' | 'connect' | 'answering' | 'open' | 'over';

/** What the gate tells the door of. */
export interface FilterWatcher {
  /** The most bytes a CONNECT may announce, and any packet after it. */
  readonly most: { readonly connect: number; readonly packet: number };
  /** Nothing is read any more: the gateway stops. */
  readonly isClosing: boolean;
  /** The gate holds so many bytes more, or less. False where that is too much, and the connection was ended. */
  held(gate: ConnectionFilter, change: number): boolean;
  connectIsWhole(gate: ConnectionFilter): void;
  /** Something came from an authenticated client; whether a packet came to its end with it. */
  heard(gate: ConnectionFilter, isPacket: boolean): void;
  /** The connection is to be ended; `returnCode` of a CONNACK is written before, where there is one. */
  fault(gate: ConnectionFilter, cause: RefusalCause, returnCode?: number): void;
  /** The socket has an error, the library's business once it has the socket. */
  failed(gate: ConnectionFilter, error: Error): void;
  /** The socket is closed. */
  gone(gate: ConnectionFilter): void;
}

/** Takes the uplinks of an authenticated connection past the library. */
export interface UplinkPath {
  /** It has enough to answer: nothing more is read until that is less. */
  readonly isFull: boolean;
  /** Takes the payload of one PUBLISH to `up` at QoS 1 with packet id `id`. The payload is not to be kept. */
  take(payload: Buffer, id: number): void;
}

/** Who a CONNECT says that it comes from; empty where it doesn't say. */
export interface ConnectClaimed {
  readonly clientId: string;
  readonly userName: string;
}

/** What may be read from an authenticated connection (budget/uplink-budget.ts). */
export interface ReadBudget {
  /** Nothing more is to be read for now. */
  readonly isSpent: boolean;
  /** So many packets came. */
  take(count: number): void;
  /** Calls {@link ConnectionFilter.readOn} once there is something to spend. */
  hold(gate: ConnectionFilter): void;
  /** The connection has ended. */
  release(gate: ConnectionFilter): void;
}

const UP = Buffer.from(UP_TOPIC);

const FILTER = Symbol('gate');
type Guarded = Socket & { [FILTER]?: ConnectionFilter };

/** The gate that a stream was given. */
export function connectionFilterOf(stream: unknown): ConnectionFilter | undefined {
  return (stream as Guarded)[FILTER];
}

/** How much is to be read: Node asks by number or not at all, the library with null. */
type ReadSize = number | null | undefined;

/** What every socket reads with, a TLS one too. */
const socketRead = Socket.prototype.read as (this: Socket, size?: number) => Buffer | null;

/* One function of each for all streams, so that a connection costs none of its own. */

function readThroughFilter(this: Guarded, size?: ReadSize): Buffer | null {
  return (this[FILTER] as ConnectionFilter).read(size);
}

function holdFirstBytes(this: Guarded): void {
  this[FILTER]?.holdFirstBytes();
}

function passFilter(this: Guarded, piece: Buffer): void {
  this[FILTER]?.pass(piece);
}

function readOnAtFilter(this: Guarded): void {
  this[FILTER]?.readOn();
}

function failFilter(this: Guarded, error: Error): void {
  const gate = this[FILTER] as ConnectionFilter;
  gate.watcher.failed(gate, error);
}

function closeFilter(this: Guarded): void {
  const gate = this[FILTER] as ConnectionFilter;
  gate.watcher.gone(gate);
}

export class ConnectionFilter implements Connection, WheelItem {
  readonly stream: Socket;
  readonly raw: Socket;
  readonly address: string;
  phase: FilterPhase;
  slot = 0;
  /** How long it may be silent, once it is open. */
  idleLimit: Milliseconds = 0;
  /** There is no descriptor for it: it is turned away, to come back later, as soon as its CONNECT is there. */
  isSurplus = false;
  /** When its last packet came, by the door's clock; before that, when it connected. */
  heardAtMs = 0;
  /** How much it has read of what it was sent, as of when; the door's, to find those that read no more. */
  readBytes = 0;
  readAtMs = 0;
  /** It was sent something and may not have read it; the door's. */
  isSentTo = false;
  readonly watcher: FilterWatcher;
  /** Who the client says that it is, from its CONNECT until it is let in. */
  claim: ConnectClaimed | undefined;
  /** Set before the gate opens; without one all goes to the library. */
  uplinkPath: UplinkPath | undefined;
  /** Set before the gate opens; without one there is no limit. */
  budget: ReadBudget | undefined;
  /** How many pieces of what an authenticated client said went to the library though there is a lane. */
  passedOn = 0;
  readonly #frames = new FrameCounter();
  /** What has come and isn't the library's yet: the beginning of the CONNECT, later what came right behind it. */
  #bytes: Buffer | undefined;
  /** How many bytes the watcher knows to be held: none once the client is authenticated. */
  #counted = 0;
  /** The CONNECT, until the library has read it. */
  #connect: Buffer | undefined;
  /** Once the lane is in use: how the library is told that there is something to read. */
  #tellLibrary: (() => void) | undefined;
  /** Once the lane is in use: what the library is to read. */
  #forLibrary: Buffer | undefined;
  /** Nothing is read for now. */
  #isHeld = false;

  constructor({ stream, raw, address }: Connection, phase: 'handshake' | 'connect', watcher: FilterWatcher) {
    this.stream = stream;
    this.raw = raw;
    this.address = address;
    this.phase = phase;
    this.watcher = watcher;
    (stream as Guarded)[FILTER] = this;
    stream.read = readThroughFilter;
    stream.on('readable', holdFirstBytes);
    stream.on('error', failFilter);
    stream.on('close', closeFilter);
  }

  /** Lets everything through from now on; the library asks for it as soon as it has written the CONNACK. */
  open(): void {
    this.phase = 'open';
    this.claim = undefined;
    this.#count(0);
  }

  /** Lets nothing through any more, and keeps nothing. */
  end(): void {
    this.phase = 'over';
    this.#count(0);
    this.#bytes = undefined;
    this.#connect = undefined;
    this.#forLibrary = undefined;
    this.budget?.release(this);
  }

  /** Takes what has come, until the CONNECT is whole. */
  holdFirstBytes(): void {
    if (this.phase !== 'connect' || this.watcher.isClosing) return;
    const piece = socketRead.call(this.stream);
    if (piece === null) return;
    const bytes = joined(this.#bytes, piece);
    const first = firstPacket(bytes, this.watcher.most.connect);
    if (first.state === 'fault') return void this.watcher.fault(this, first.fault);
    const isWhole = first.state === 'complete';
    if (isWhole && !this.#mayConnect(bytes.subarray(0, first.size))) return;
    const rest = isWhole ? bytes.subarray(first.size) : bytes;
    if (!this.#hold(rest.length === 0 ? undefined : rest) || !isWhole) return;
    this.#connect = bytes.subarray(0, first.size);
    this.phase = 'answering';
    this.stream.removeListener('readable', holdFirstBytes);
    this.watcher.connectIsWhole(this);
    // The library waits for the socket to say that there is something.
    this.stream.emit('readable');
  }

  /** Whether MQTT has nothing against a CONNECT. Where it has, the connection was ended. */
  #mayConnect(connect: Buffer): boolean {
    const { clientId, userName, fault, returnCode } = readConnect(connect);
    this.claim = { clientId, userName };
    if (fault !== undefined) this.watcher.fault(this, fault, returnCode);
    return fault === undefined;
  }

  /** What the library gets when it reads from the socket. Node reads by the same name, but never with null. */
  read(size: ReadSize): Buffer | null {
    // Node's own way to say: go and look whether there is more.
    if (size === 0) return socketRead.call(this.stream, 0);
    if (this.#tellLibrary !== undefined)
      return size === null ? this.#readPassedOn() : socketRead.call(this.stream, size);
    if (this.#connect !== undefined) {
      const connect = this.#connect;
      this.#connect = undefined;
      return connect;
    }
    if (this.phase !== 'open' || this.watcher.isClosing) return null;
    // What was spent over the connection before still counts. The library waits until `readOn` tells it to read.
    if (this.isOverBudget) {
      this.budget?.hold(this);
      return null;
    }
    if (this.uplinkPath !== undefined && this.#enterLane()) return null;
    const piece = this.#readOpen();
    return piece !== null && this.#hear(piece) ? piece : null;
  }

  /** Takes what an authenticated client says, once the lane is in use. */
  pass(piece: Buffer): void {
    if (this.phase !== 'open') return;
    if (this.watcher.isClosing) return void this.stream.pause();
    if (!this.#hear(piece)) return;
    if (this.#forLibrary === undefined) this.#walk(piece);
    else this.#passOn(piece);
    this.readOn();
  }

  /** Nothing is read of what it says, since it has spent its budget: silence of which it knows nothing. */
  get isOverBudget(): boolean {
    return this.budget?.isSpent === true;
  }

  /** Reads on where there is no reason to wait, or waits. */
  readOn(): void {
    const { stream } = this;
    if (this.phase !== 'open' || !stream.writable) return;
    if (this.#tellLibrary === undefined) return void stream.emit('readable');
    const isBehind = stream.writableNeedDrain;
    if (isBehind && !stream.listeners('drain').includes(readOnAtFilter)) stream.once('drain', readOnAtFilter);
    const isSpent = this.isOverBudget;
    if (isSpent) this.budget?.hold(this);
    const isHeld = isBehind || isSpent || this.#forLibrary !== undefined || this.uplinkPath?.isFull === true;
    if (isHeld === this.#isHeld) return;
    this.#isHeld = isHeld;
    if (isHeld) stream.pause();
    else stream.resume();
  }

  /** Counts what came from an authenticated client. False where it is at fault, and the connection was ended. */
  #hear(piece: Buffer): boolean {
    const { complete } = this.#frames;
    const fault = this.#frames.pass(piece, this.watcher.most.packet);
    const packets = this.#frames.complete - complete;
    if (packets > 0) this.budget?.take(packets);
    if (fault === undefined) this.watcher.heard(this, packets > 0);
    else this.watcher.fault(this, fault);
    return fault === undefined;
  }

  /**
   * From now on the gate reads as fast as the socket can, and tells the library of what is for it. The library reads
   * for the first time when it has written the CONNACK, so nothing can be answered before that.
   */
  #enterLane(): boolean {
    const { stream } = this;
    const [tellLibrary, ...others] = stream.listeners('readable') as (() => void)[];
    if (tellLibrary === undefined || others.length > 0) {
      // Who it is that waits for the socket isn't known any more: then all is the library's, as without a lane.
      this.uplinkPath = undefined;
      return false;
    }
    this.#tellLibrary = tellLibrary;
    stream.removeListener('readable', tellLibrary);
    if (this.#bytes !== undefined) stream.unshift(this.#bytes);
    this.#bytes = undefined;
    stream.on('data', passFilter);
    stream.resume();
    return true;
  }

  /** Gives each packet to whom it is for, in order. */
  #walk(piece: Buffer): void {
    /** Up to here somebody has it. */
    let given = 0;
    for (let at = this.#frames.began; at < piece.length; ) {
      const end = packetEnd(piece, at);
      if (end === 0) break;
      const payloadAt = payloadOfUplink(piece, at, end, UP);
      if (payloadAt > 0) {
        if (at > given) this.#passOn(piece.subarray(given, at));
        if (!this.#isTaking()) return;
        given = at;
        // The library isn't done with what came before.
        if (this.#forLibrary !== undefined) break;
        this.uplinkPath?.take(
          piece.subarray(payloadAt, end),
          ((piece[payloadAt - 2] as number) << 8) | (piece[payloadAt - 1] as number),
        );
        given = end;
      }
      at = end;
    }
    if (given < piece.length && this.#isTaking()) this.#passOn(given === 0 ? piece : piece.subarray(given));
  }

  /** Whether the connection isn't being ended. */
  #isTaking(): boolean {
    return this.phase === 'open' && this.stream.writable;
  }

  /** Hands something to the library, which takes it at once or when it is done with what it has. */
  #passOn(piece: Buffer): void {
    this.passedOn += 1;
    this.#forLibrary = this.#forLibrary === undefined ? piece : Buffer.concat([this.#forLibrary, piece]);
    this.#tellLibrary?.call(this.stream);
  }

  #readPassedOn(): Buffer | null {
    const piece = this.#forLibrary;
    if (piece === undefined) return null;
    this.#forLibrary = undefined;
    if (this.#isHeld) this.readOn();
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
