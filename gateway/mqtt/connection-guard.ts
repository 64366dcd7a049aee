/**
 * The front door: every connection from its first byte to its last, whoever is behind it. It lets nobody keep memory or
 * a socket of ours without having said who he is, and ends those who fall silent or read no more.
 *
 * It counts bytes and packets and looks at the clock; who may come in is the broker's business, and it says so with
 * {@link ConnectionGuard.open}.
 */
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { type Clock, type Milliseconds, Minutes, Seconds } from '../../proto/clock.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import { addressGroup } from '../network/address-group.js';
import type { DescriptorRoom } from '../network/descriptors.js';
import { ConnectionFilter, type FilterWatcher } from './connection-filter.js';
import type { Connection } from './listener.js';
import type { RefusalCause } from './refusals/refusal-reason.js';
import { SilentStrangers } from './silent-strangers.js';
import { TimerWheel } from './timer-wheel.js';

const KIB = 1024;

/** What strangers and locks may cost (quality.md §2, "before authentication"). */
export interface GuardLimits {
  /** The most bytes that the CONNECT may announce. It has some 80; with a will it may have more, and is refused. */
  readonly connectBytes: number;
  /** The most bytes that a packet may announce after it. An uplink over 1,024 is quarantined, so that it's seen. */
  readonly packetBytes: number;
  /** Bytes held of all connections together that are not authenticated. */
  readonly heldBytes: number;
  /** Connections that are not authenticated. */
  readonly strangers: number;
  /** Of those, connections of one address that have not finished their CONNECT; beyond it the oldest make room. */
  readonly silentPerAddress: number;
  /** Connections of one address, authenticated or not; 0 for no limit. */
  readonly perAddress: number;
  /** From the first byte to the end of the TLS handshake: two round trips, which a slow radio takes seconds for. */
  readonly handshakeWithin: Milliseconds;
  /** From the connection, or the end of the handshake, to the end of the CONNECT. */
  readonly connectWithin: Milliseconds;
  /** From the end of the CONNECT to the answer: the store may be slow, but not for ever. */
  readonly answerWithin: Milliseconds;
  /** A lock reads none of what it was sent for this long. It's cut within 10 s (quality.md §2). */
  readonly readWithin: Milliseconds;
}

export const GUARD_LIMITS: GuardLimits = Object.freeze({
  connectBytes: 4 * KIB,
  packetBytes: 64 * KIB,
  heldBytes: 8 * KIB * KIB,
  strangers: 16_384,
  silentPerAddress: 8_192,
  perAddress: 0,
  handshakeWithin: Seconds(10),
  connectWithin: Seconds(5),
  answerWithin: Seconds(30),
  readWithin: Seconds(8),
});

/**
 * Bytes read from strangers who are ended, after which the engine is asked to let go of them. By itself it waits for
 * some 32 MB of such buffers, which is more than strangers are to cost (quality.md §2).
 */
const DISCARDED_BYTES = 4 * KIB * KIB;
/** The engine counts buffers by size: this one makes it look for garbage among the young, and is never touched. */
const NUDGE_BYTES = 32 * KIB * KIB;

const NO_DESCRIPTOR: RefusalCause = {
  reason: 'descriptors',
  why: 'descriptors (open files and connections) are short',
};

/** For so long nobody who is silent is ended for another: what a lock has sent may not have been read yet. */
const SPARED_FOR: Milliseconds = Seconds(1);

/** A CONNACK but for its return code: its type, its length, no session (MQTT 3.1.1, 3.2). */
const CONNACK = [0x20, 2, 0] as const;

/** The CONNACK of a lock that should come back later (MQTT 3.1.1, 3.2.2.3). */
const SERVER_UNAVAILABLE = 3;

/** MQTT 3.1.1, 3.1.2.10: one and a half times the keepalive. */
const KEEPALIVE_FACTOR = 1.5;
/** What counts for a client that asks for more, or for none: nobody is waited for for ever. */
const LONGEST_KEEPALIVE = Minutes(60);
const DEFAULT_KEEPALIVE = POWER_MODEL.timings.keepalive;

export interface GuardOptions {
  readonly limits: GuardLimits;
  /** Goes as the wall's does, and never back. */
  readonly clock: Clock;
  /** Whether the process has a descriptor to spare for a connection. */
  readonly roomFor?: ((raw: Socket) => DescriptorRoom) | undefined;
  /** The CONNECT has come; the stream is to be given to the broker library. */
  readonly onConnect: (connection: Connection) => void;
  /** The connection was refused, and is ended. */
  readonly onRefused: (gate: ConnectionFilter, what: 'connect' | 'packet', cause: RefusalCause) => void;
  /** An authenticated client was silent for too long, and is cut. */
  readonly onSilent: (gate: ConnectionFilter) => void;
  /** An authenticated client reads no more, and is cut. */
  readonly onUnread: (gate: ConnectionFilter, cause: RefusalCause) => void;
}

export class ConnectionGuard implements FilterWatcher {
  readonly most: FilterWatcher['most'];
  isClosing = false;
  readonly #options: GuardOptions;
  readonly #gates = new Set<ConnectionFilter>();
  readonly #wheel: TimerWheel<ConnectionFilter>;
  /** Those who were sent something and may not have read it. */
  readonly #sentTo = new Set<ConnectionFilter>();
  readonly #ofAddress = new Map<string, number>();
  readonly #silent = new SilentStrangers();
  #strangers = 0;
  #heldBytes = 0;
  #discardedBytes = 0;

  constructor(options: GuardOptions) {
    this.#options = options;
    this.most = { connect: options.limits.connectBytes, packet: options.limits.packetBytes };
    this.#wheel = new TimerWheel(
      options.clock,
      (gate) => this.#due(gate),
      () => this.#lookAtReaders(),
    );
  }

  /** How many sockets are open. */
  get count(): number {
    return this.#gates.size;
  }

  /** Takes a new connection. */
  take(connection: Connection): void {
    const { stream, raw, address } = connection;
    const { limits } = this.#options;
    const isSecure = stream !== raw;
    const gate = new ConnectionFilter(connection, isSecure ? 'handshake' : 'connect', this);
    gate.heardAtMs = this.#options.clock.now();
    this.#gates.add(gate);
    this.#strangers += 1;
    const cause = this.#crowd(address) ?? this.#shortage(gate);
    if (cause !== undefined) return void this.fault(gate, cause);
    this.#silent.add(gate);
    this.#wheel.set(gate, isSecure ? limits.handshakeWithin : limits.connectWithin);
    if (stream instanceof TLSSocket) stream.once('secure', () => this.#secured(gate));
  }

  /** A client is authenticated. `keepalive` in seconds, as its CONNECT has it. */
  open(gate: ConnectionFilter, keepalive: number): void {
    if (gate.phase !== 'answering') return;
    gate.open();
    this.#strangers -= 1;
    const asked = keepalive === 0 ? DEFAULT_KEEPALIVE : Math.min(Seconds(keepalive), LONGEST_KEEPALIVE);
    gate.idleLimit = asked * KEEPALIVE_FACTOR;
    gate.heardAtMs = this.#options.clock.now();
    this.#wheel.set(gate, gate.idleLimit);
  }

  /** A client is sent something: it is watched until it has read it. */
  sent(gate: ConnectionFilter): void {
    if (gate.isSentTo) return;
    gate.isSentTo = true;
    gate.readBytes = -1;
    this.#sentTo.add(gate);
    this.#wheel.turn();
  }

  /** Reads no byte any more. */
  stopReading(): void {
    this.isClosing = true;
  }

  /**
   * Says goodbye to every connection: what was written still arrives, then the end (lingering-close.ts, which bounds
   * how long that takes). Resolves when no connection is left.
   */
  async sayGoodbye(): Promise<void> {
    const left = [...this.#gates].map(({ stream }) => {
      if (stream.closed) return undefined;
      const closed = new Promise<void>((resolve) => stream.once('close', () => resolve()));
      stream.destroy();
      return closed;
    });
    await Promise.all(left);
  }

  /** Ends every connection, without ceremony. */
  destroyAll(): void {
    for (const { raw } of this.#gates) raw.destroy();
    this.#wheel.stop();
  }

  held(gate: ConnectionFilter, change: number): boolean {
    this.#heldBytes += change;
    if (change <= 0 || this.#heldBytes <= this.#options.limits.heldBytes) return true;
    const most = this.#options.limits.heldBytes.toLocaleString('en');
    this.fault(gate, { reason: 'crowd', why: `${most} bytes of strangers are held already` });
    return false;
  }

  connectIsWhole(gate: ConnectionFilter): void {
    this.#silent.remove(gate);
    if (gate.isSurplus) {
      this.fault(gate, NO_DESCRIPTOR, SERVER_UNAVAILABLE);
      return;
    }
    this.#wheel.set(gate, this.#options.limits.answerWithin);
    this.#options.onConnect(gate);
  }

  heard(gate: ConnectionFilter, isPacket: boolean): void {
    if (isPacket) gate.heardAtMs = this.#options.clock.now();
    // Nearly everything is answered.
    this.sent(gate);
  }

  fault(gate: ConnectionFilter, cause: RefusalCause, returnCode = 0): void {
    if (gate.phase === 'over') return;
    const what = gate.phase === 'open' ? 'packet' : 'connect';
    const answer = returnCode === 0 ? undefined : Buffer.from([...CONNACK, returnCode]);
    this.#end(gate, () => this.#options.onRefused(gate, what, cause), answer);
  }

  #secured(gate: ConnectionFilter): void {
    if (gate.phase !== 'handshake') return;
    gate.phase = 'connect';
    this.#wheel.set(gate, this.#options.limits.connectWithin);
    gate.holdFirstBytes();
  }

  /** Why a new connection from there is one too many; undefined where it isn't. */
  #crowd(address: string): RefusalCause | undefined {
    const { perAddress, silentPerAddress, strangers } = this.#options.limits;
    if (this.#countAddress(address, 1) > perAddress) return crowd(`the address has ${perAddress} connections already`);
    const isCrowd = this.#silent.countOf(address) >= silentPerAddress;
    if (isCrowd)
      this.#endSilent(
        this.#silent.oldestOf(address),
        crowd(`the address has ${silentPerAddress} connections without a CONNECT`),
      );
    const cause = crowd(`${strangers} connections are not authenticated yet`);
    return this.#strangers > strangers && !this.#endSilent(this.#silent.oldestOfMost(), cause) ? cause : undefined;
  }

  /** Why there is no descriptor for a new connection; one that can still be answered is marked for it. */
  #shortage(gate: ConnectionFilter): RefusalCause | undefined {
    const room = this.#options.roomFor?.(gate.raw) ?? 'enough';
    if (room === 'enough') return undefined;
    const hasEnded = this.#endSilent(this.#silent.oldestOfMost(), NO_DESCRIPTOR);
    // Its own descriptor is one of those kept for others, so it can't stay: what was ended is room for the next one.
    if (room === 'none') return NO_DESCRIPTOR;
    gate.isSurplus = !hasEnded;
    return undefined;
  }

  /** Ends one that has been silent for a while, so that another has room. */
  #endSilent(gate: ConnectionFilter | undefined, { reason, why }: RefusalCause): boolean {
    if (gate === undefined || this.#options.clock.now() - gate.heardAtMs < SPARED_FOR) return false;
    this.fault(gate, { reason, why: `${why}; this one was silent the longest` });
    return true;
  }

  #due(gate: ConnectionFilter): void {
    const { limits, clock } = this.#options;
    const within = (reason: 'tls' | 'slow', what: string, limit: Milliseconds): void =>
      this.fault(gate, { reason, why: `${what} within ${limit / Seconds(1)} s` });
    if (gate.phase === 'handshake') within('tls', 'the TLS handshake was not finished', limits.handshakeWithin);
    else if (gate.phase === 'connect') within('slow', 'the CONNECT was not finished', limits.connectWithin);
    else if (gate.phase === 'answering') within('slow', 'the CONNECT could not be answered', limits.answerWithin);
    else {
      const left = gate.heardAtMs + gate.idleLimit - clock.now();
      if (left > 0) this.#wheel.set(gate, left);
      // It may have said much that we don't read. Once it is read again, what it said counts.
      else if (gate.isOverBudget) this.#wheel.set(gate, gate.idleLimit);
      else this.#end(gate, () => this.#options.onSilent(gate));
    }
  }

  /** Ends those who read nothing of what they were sent; true while there is anybody to look at. */
  #lookAtReaders(): boolean {
    const nowMs = this.#options.clock.now();
    const { readWithin } = this.#options.limits;
    for (const gate of this.#sentTo) {
      const { stream } = gate;
      if (stream.writableLength === 0 || gate.phase === 'over') {
        this.#sentTo.delete(gate);
        gate.isSentTo = false;
        continue;
      }
      // What was written and waits no more: how far it has read, but for what the systems between us hold.
      const readBytes = stream.bytesWritten - stream.writableLength;
      if (readBytes !== gate.readBytes) {
        gate.readBytes = readBytes;
        gate.readAtMs = nowMs;
      } else if (nowMs - gate.readAtMs >= readWithin) {
        const why = `it read nothing of what it was sent for ${readWithin / Seconds(1)} s`;
        this.#end(gate, () => this.#options.onUnread(gate, { reason: 'not-reading', why }));
      }
    }
    return this.#sentTo.size > 0;
  }

  failed(gate: ConnectionFilter, error: Error): void {
    if (gate.phase === 'handshake')
      this.fault(gate, { reason: 'tls', why: `the TLS handshake failed: ${error.message}` });
  }

  /** Ends a connection, once `answer` is on its way. */
  #end(gate: ConnectionFilter, tell: () => void, answer?: Buffer): void {
    if (gate.phase !== 'open') this.#forgetStranger(gate);
    gate.end();
    this.#wheel.cancel(gate);
    tell();
    if (answer === undefined) gate.stream.destroy();
    else gate.stream.write(answer, () => gate.stream.destroy());
  }

  #forgetStranger(gate: ConnectionFilter): void {
    this.#strangers -= 1;
    this.#silent.remove(gate);
    this.#discardedBytes += gate.raw.bytesRead;
    if (this.#discardedBytes < DISCARDED_BYTES) return;
    this.#discardedBytes = 0;
    void new ArrayBuffer(NUDGE_BYTES);
  }

  gone(gate: ConnectionFilter): void {
    if (gate.phase !== 'over') {
      if (gate.phase !== 'open') this.#forgetStranger(gate);
      gate.end();
    }
    this.#wheel.cancel(gate);
    this.#sentTo.delete(gate);
    this.#gates.delete(gate);
    this.#countAddress(gate.address, -1);
  }

  #countAddress(address: string, change: number): number {
    if (this.#options.limits.perAddress === 0) return 0;
    const group = addressGroup(address);
    const count = (this.#ofAddress.get(group) ?? 0) + change;
    if (count === 0) this.#ofAddress.delete(group);
    else this.#ofAddress.set(group, count);
    return count;
  }
}

function crowd(why: string): RefusalCause {
  return { reason: 'crowd', why };
}
