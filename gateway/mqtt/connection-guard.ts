/**
 * Guards the MQTT listeners: watches every connection from its first byte to its last. Nobody may occupy memory or a
 * socket without saying who they are, and a connection that is silent or no longer reads is closed.
 *
 * "Strangers" are connections that are not authenticated (yet). The guard counts bytes and packets and measures time.
 * It does not decide who is authenticated: the broker does, and calls {@link ConnectionGuard.open}.
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

/** Limits on what strangers and locks may use (quality.md §2, "before authentication"). */
export interface GuardLimits {
  /** The most bytes that the CONNECT may announce. It has some 80; with a will, which is refused, it may have more. */
  readonly connectBytes: number;
  /** The most bytes that any later packet may announce. An uplink over 1,024 is quarantined, so that it is seen. */
  readonly packetBytes: number;
  /** Bytes held for all strangers together. */
  readonly heldBytes: number;
  /** Connections that are not authenticated. */
  readonly strangers: number;
  /** Of those, connections of one address without a complete CONNECT; beyond it the oldest are closed. */
  readonly silentPerAddress: number;
  /** Connections of one address, authenticated or not; 0 for no limit. */
  readonly perAddress: number;
  /** From the first byte to the end of the TLS handshake: two round trips, which a slow radio takes seconds for. */
  readonly handshakeWithin: Milliseconds;
  /** From the connection, or the end of the handshake, to the last byte of the CONNECT. */
  readonly connectWithin: Milliseconds;
  /** From the last byte of the CONNECT to the answer: the store may be slow, but not for ever. */
  readonly answerWithin: Milliseconds;
  /** For this long a lock may read nothing of what it was sent. It is closed within 10 s (quality.md §2). */
  readonly mustReadWithin: Milliseconds;
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
  mustReadWithin: Seconds(8),
});

/**
 * After so many bytes read from closed strangers, a garbage collection is provoked. On its own the engine waits for
 * some 32 MB of such buffers, which is more than strangers may use (quality.md §2).
 */
const DISCARDED_BYTES = 4 * KIB * KIB;
/** Allocating a buffer of this size triggers a minor garbage collection; its memory is never touched. */
const GC_TRIGGER_BYTES = 32 * KIB * KIB;

const NO_DESCRIPTOR: RefusalCause = {
  reason: 'descriptors',
  why: 'descriptors (open files and connections) are short',
};

/** A silent stranger is never closed for another earlier than this: we may not have read yet what it sent. */
const GRACE_BEFORE_EVICTION: Milliseconds = Seconds(1);

/** A CONNACK without its return code: type, length, no session present (MQTT 3.1.1, 3.2). */
const CONNACK = [0x20, 2, 0] as const;

/** The return code for a lock that should come back later (MQTT 3.1.1, 3.2.2.3). */
const SERVER_UNAVAILABLE = 3;

/** MQTT 3.1.1, 3.1.2.10: one and a half times the keepalive. */
const KEEPALIVE_FACTOR = 1.5;
/** What applies to a client that asks for more, or for none: no connection stays open in silence for ever. */
const LONGEST_KEEPALIVE = Minutes(60);
const DEFAULT_KEEPALIVE = POWER_MODEL.timings.keepalive;

export interface GuardOptions {
  readonly limits: GuardLimits;
  /** Runs in real time and never goes back. */
  readonly clock: Clock;
  /** Whether the process has a descriptor to spare for a connection. Always, where this is left out. */
  readonly roomFor?: ((raw: Socket) => DescriptorRoom) | undefined;
  /** The CONNECT is complete; the stream is to be given to the broker library. */
  readonly onConnect: (connection: Connection) => void;
  /** The connection was refused and is being closed. */
  readonly onRefused: (filter: ConnectionFilter, what: 'connect' | 'packet', cause: RefusalCause) => void;
  /** An authenticated client was silent for too long and is disconnected. */
  readonly onSilent: (filter: ConnectionFilter) => void;
  /** An authenticated client does not read and is disconnected. */
  readonly onUnread: (filter: ConnectionFilter, cause: RefusalCause) => void;
}

export class ConnectionGuard implements FilterWatcher {
  readonly maxBytes: FilterWatcher['maxBytes'];
  isClosing = false;
  readonly #options: GuardOptions;
  readonly #filters = new Set<ConnectionFilter>();
  readonly #wheel: TimerWheel<ConnectionFilter>;
  /** Connections that were sent something and may not have read all of it. */
  readonly #awaitingRead = new Set<ConnectionFilter>();
  readonly #countByAddress = new Map<string, number>();
  readonly #silentStrangers = new SilentStrangers();
  #strangers = 0;
  #heldBytes = 0;
  #discardedBytes = 0;

  constructor(options: GuardOptions) {
    this.#options = options;
    this.maxBytes = { connect: options.limits.connectBytes, packet: options.limits.packetBytes };
    this.#wheel = new TimerWheel(
      options.clock,
      (filter) => this.#deadlinePassed(filter),
      () => this.#endSlowReaders(),
    );
  }

  /** How many sockets are open. */
  get count(): number {
    return this.#filters.size;
  }

  /** Takes a new connection. */
  take(connection: Connection): void {
    const { stream, raw, address } = connection;
    const { limits } = this.#options;
    const isSecure = stream !== raw;
    const filter = new ConnectionFilter(connection, isSecure ? 'handshake' : 'connect', this);
    filter.receivedAtMs = this.#options.clock.now();
    this.#filters.add(filter);
    this.#strangers += 1;
    const cause = this.#crowdFault(address) ?? this.#descriptorFault(filter);
    if (cause !== undefined) return void this.fault(filter, cause);
    this.#silentStrangers.add(filter);
    this.#wheel.set(filter, isSecure ? limits.handshakeWithin : limits.connectWithin);
    if (stream instanceof TLSSocket) stream.once('secure', () => this.#secured(filter));
  }

  /** A client is authenticated. `keepalive` is that of its CONNECT, in seconds. */
  open(filter: ConnectionFilter, keepalive: number): void {
    if (filter.phase !== 'answering') return;
    filter.open();
    this.#strangers -= 1;
    const asked = keepalive === 0 ? DEFAULT_KEEPALIVE : Math.min(Seconds(keepalive), LONGEST_KEEPALIVE);
    filter.maxSilence = asked * KEEPALIVE_FACTOR;
    filter.receivedAtMs = this.#options.clock.now();
    this.#wheel.set(filter, filter.maxSilence);
  }

  /** Something is being sent to a client: it is watched until it has read it. */
  sent(filter: ConnectionFilter): void {
    if (filter.isAwaitingRead) return;
    filter.isAwaitingRead = true;
    filter.readBytes = -1;
    this.#awaitingRead.add(filter);
    this.#wheel.keepTurning();
  }

  /** From now on not one more byte is read. */
  stopReading(): void {
    this.isClosing = true;
  }

  /**
   * Closes every connection gracefully: what was written still arrives (lingering-close.ts bounds how long that takes).
   * Resolves when no connection is left.
   */
  async closeAll(): Promise<void> {
    const left = [...this.#filters].map(({ stream }) => {
      if (stream.closed) return undefined;
      const closed = new Promise<void>((resolve) => stream.once('close', () => resolve()));
      stream.destroy();
      return closed;
    });
    await Promise.all(left);
  }

  /** Destroys every connection at once. */
  destroyAll(): void {
    for (const { raw } of this.#filters) raw.destroy();
    this.#wheel.stop();
  }

  heldBytesChanged(filter: ConnectionFilter, change: number): boolean {
    this.#heldBytes += change;
    if (change <= 0 || this.#heldBytes <= this.#options.limits.heldBytes) return true;
    const most = this.#options.limits.heldBytes.toLocaleString('en');
    this.fault(filter, { reason: 'crowd', why: `${most} bytes of strangers are held already` });
    return false;
  }

  connectComplete(filter: ConnectionFilter): void {
    this.#silentStrangers.remove(filter);
    if (filter.isSurplus) {
      this.fault(filter, NO_DESCRIPTOR, SERVER_UNAVAILABLE);
      return;
    }
    this.#wheel.set(filter, this.#options.limits.answerWithin);
    this.#options.onConnect(filter);
  }

  received(filter: ConnectionFilter, isPacket: boolean): void {
    if (isPacket) filter.receivedAtMs = this.#options.clock.now();
    // Nearly every packet is answered.
    this.sent(filter);
  }

  fault(filter: ConnectionFilter, cause: RefusalCause, returnCode = 0): void {
    if (filter.phase === 'closed') return;
    const what = filter.phase === 'open' ? 'packet' : 'connect';
    const answer = returnCode === 0 ? undefined : Buffer.from([...CONNACK, returnCode]);
    this.#end(filter, () => this.#options.onRefused(filter, what, cause), answer);
  }

  #secured(filter: ConnectionFilter): void {
    if (filter.phase !== 'handshake') return;
    this.#wheel.set(filter, this.#options.limits.connectWithin);
    filter.secured();
  }

  /** Why a new connection from there is one too many; undefined where it isn't. */
  #crowdFault(address: string): RefusalCause | undefined {
    const { perAddress, silentPerAddress, strangers } = this.#options.limits;
    if (this.#countAddress(address, 1) > perAddress) return crowd(`the address has ${perAddress} connections already`);
    const isCrowd = this.#silentStrangers.countOf(address) >= silentPerAddress;
    if (isCrowd)
      this.#endSilent(
        this.#silentStrangers.oldestOf(address),
        crowd(`the address has ${silentPerAddress} connections without a CONNECT`),
      );
    const cause = crowd(`${strangers} connections are not authenticated yet`);
    return this.#strangers > strangers && !this.#endSilent(this.#silentStrangers.oldestOfMost(), cause)
      ? cause
      : undefined;
  }

  /** Why there is no descriptor for a new connection; one that can still be answered is marked for it. */
  #descriptorFault(filter: ConnectionFilter): RefusalCause | undefined {
    const room = this.#options.roomFor?.(filter.raw) ?? 'enough';
    if (room === 'enough') return undefined;
    const hasEnded = this.#endSilent(this.#silentStrangers.oldestOfMost(), NO_DESCRIPTOR);
    // It occupies a descriptor reserved for others, so it can't stay; the one just closed makes room for the next.
    if (room === 'none') return NO_DESCRIPTOR;
    filter.isSurplus = !hasEnded;
    return undefined;
  }

  /** Ends one that has been silent for a while, so that another has room. */
  #endSilent(filter: ConnectionFilter | undefined, { reason, why }: RefusalCause): boolean {
    if (filter === undefined || this.#options.clock.now() - filter.receivedAtMs < GRACE_BEFORE_EVICTION) return false;
    this.fault(filter, { reason, why: `${why}; this one was silent the longest` });
    return true;
  }

  #deadlinePassed(filter: ConnectionFilter): void {
    const { limits, clock } = this.#options;
    const within = (reason: 'tls' | 'slow', what: string, limit: Milliseconds): void =>
      this.fault(filter, { reason, why: `${what} within ${limit / Seconds(1)} s` });
    if (filter.phase === 'handshake') within('tls', 'the TLS handshake was not finished', limits.handshakeWithin);
    else if (filter.phase === 'connect') within('slow', 'the CONNECT was not finished', limits.connectWithin);
    else if (filter.phase === 'answering') within('slow', 'the CONNECT could not be answered', limits.answerWithin);
    else {
      const left = filter.receivedAtMs + filter.maxSilence - clock.now();
      if (left > 0) this.#wheel.set(filter, left);
      // It may have said much that we don't read. Once it is read again, what it said counts.
      else if (filter.isOverBudget) this.#wheel.set(filter, filter.maxSilence);
      else this.#end(filter, () => this.#options.onSilent(filter));
    }
  }

  /** Closes connections that read nothing of what they were sent; true while any is left to watch. */
  #endSlowReaders(): boolean {
    const nowMs = this.#options.clock.now();
    const { mustReadWithin } = this.#options.limits;
    for (const filter of this.#awaitingRead) {
      const { stream } = filter;
      if (stream.writableLength === 0 || filter.phase === 'closed') {
        this.#awaitingRead.delete(filter);
        filter.isAwaitingRead = false;
        continue;
      }
      // What has left our buffers: what the client has read, plus what the systems between us hold.
      const readBytes = stream.bytesWritten - stream.writableLength;
      if (readBytes !== filter.readBytes) {
        filter.readBytes = readBytes;
        filter.readAtMs = nowMs;
      } else if (nowMs - filter.readAtMs >= mustReadWithin) {
        const why = `it read nothing of what it was sent for ${mustReadWithin / Seconds(1)} s`;
        this.#end(filter, () => this.#options.onUnread(filter, { reason: 'not-reading', why }));
      }
    }
    return this.#awaitingRead.size > 0;
  }

  socketFailed(filter: ConnectionFilter, error: Error): void {
    if (filter.phase === 'handshake')
      this.fault(filter, { reason: 'tls', why: `the TLS handshake failed: ${error.message}` });
  }

  /** Closes a connection, after `answer` has been sent where there is one. */
  #end(filter: ConnectionFilter, report: () => void, answer?: Buffer): void {
    if (filter.phase !== 'open') this.#forgetStranger(filter);
    filter.end();
    this.#wheel.cancel(filter);
    report();
    if (answer === undefined) filter.stream.destroy();
    else filter.stream.write(answer, () => filter.stream.destroy());
  }

  #forgetStranger(filter: ConnectionFilter): void {
    this.#strangers -= 1;
    this.#silentStrangers.remove(filter);
    this.#discardedBytes += filter.raw.bytesRead;
    if (this.#discardedBytes < DISCARDED_BYTES) return;
    this.#discardedBytes = 0;
    void new ArrayBuffer(GC_TRIGGER_BYTES);
  }

  socketClosed(filter: ConnectionFilter): void {
    if (filter.phase !== 'closed') {
      if (filter.phase !== 'open') this.#forgetStranger(filter);
      filter.end();
    }
    this.#wheel.cancel(filter);
    this.#awaitingRead.delete(filter);
    this.#filters.delete(filter);
    this.#countAddress(filter.address, -1);
  }

  #countAddress(address: string, change: number): number {
    if (this.#options.limits.perAddress === 0) return 0;
    const group = addressGroup(address);
    const count = (this.#countByAddress.get(group) ?? 0) + change;
    if (count === 0) this.#countByAddress.delete(group);
    else this.#countByAddress.set(group, count);
    return count;
  }
}

function crowd(why: string): RefusalCause {
  return { reason: 'crowd', why };
}
