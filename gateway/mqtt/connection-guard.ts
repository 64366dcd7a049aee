/**
 * Guards the MQTT listeners: watches every connection from its first byte to its last. The guard limits the memory and
 * sockets that unauthenticated clients occupy, and closes connections that are silent or do not read.
 *
 * "Strangers" are connections that are not authenticated (yet). The guard counts bytes and packets and measures time.
 * It does not authenticate: the broker does, and then calls {@link ConnectionGuard.open}.
 */

import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { type Clock, type Milliseconds, Minutes, Seconds } from '../../proto/clock.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import { CLOSED_AFTER_HANDSHAKE, serverTlsFailure } from '../../proto/tls-failure.js';
import { addressGroup } from '../network/address-group.js';
import type { DescriptorRoom } from '../network/descriptors.js';
import { ConnectionFilter, type FilterWatcher } from './connection-filter.js';
import type { Connection } from './listener.js';
import type { RefusalCause } from './refusals/refusal-reason.js';
import { SilentStrangers } from './silent-strangers.js';
import { TimerWheel } from './timer-wheel.js';

const KIB = 1024;

/** Limits on what strangers and locks may use. */
export interface GuardLimits {
  /** Maximum length of a CONNECT. It usually has some 80 bytes; one with a will, which is refused, may have more. */
  readonly connectBytes: number;
  /** Maximum length of any later packet. It exceeds an uplink's 1,024 bytes, so that longer uplinks are quarantined. */
  readonly packetBytes: number;
  /** Maximum number of bytes held for all strangers together. */
  readonly heldBytes: number;
  /** Maximum number of strangers. */
  readonly strangers: number;
  /** Maximum number of strangers of one address without a complete CONNECT; beyond it the oldest are closed. */
  readonly silentPerAddress: number;
  /** Maximum number of connections of one address, authenticated or not; 0 for no limit. */
  readonly perAddress: number;
  /** Time limit of the TLS handshake. It takes two round trips, which can take a slow radio seconds. */
  readonly handshakeWithin: Milliseconds;
  /** Time limit from the connection, or the end of the handshake, to the last byte of the CONNECT. */
  readonly connectWithin: Milliseconds;
  /** Time limit from the last byte of the CONNECT to the answer, for which the store may take a while. */
  readonly answerWithin: Milliseconds;
  /**
   * A client that reads nothing it was sent for this long is closed. With the wait for the next check and the lingering
   * close, it is gone within 10 s.
   */
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
 * After this many bytes read from closed strangers, the guard triggers a garbage collection. Otherwise the engine would
 * wait for some 32 MB of such buffers, more than strangers may use.
 */
const GC_AFTER_BYTES = 4 * KIB * KIB;
/** Allocating a buffer of this size triggers a minor garbage collection; its memory is never touched. */
const GC_TRIGGER_BYTES = 32 * KIB * KIB;

const NO_DESCRIPTOR: RefusalCause = {
  reason: 'descriptors',
  why: 'descriptors (open files and connections) are short',
};

/**
 * A silent stranger may make room for another only after this time: its bytes may have arrived but not been read yet.
 */
const MIN_SILENCE_BEFORE_EVICTION: Milliseconds = Seconds(1);

/** The bytes of a CONNACK before its return code: type, length, no session present (MQTT 3.1.1, 3.2). */
const CONNACK_START = [0x20, 2, 0] as const;

/** The return code for a lock that should come back later (MQTT 3.1.1, 3.2.2.3). */
const SERVER_UNAVAILABLE = 3;

/** A client may be silent for one and a half times its keepalive (MQTT 3.1.1, 3.1.2.10). */
const KEEPALIVE_FACTOR = 1.5;
/** The keepalive of a client that asks for more, or for none: no connection may stay silent for ever. */
const MAX_KEEPALIVE = Minutes(60);
const DEFAULT_KEEPALIVE = POWER_MODEL.timings.keepalive;

export interface GuardOptions {
  readonly limits: GuardLimits;
  /** Runs in real time and never goes back. */
  readonly clock: Clock;
  /** Returns whether the process has a free file descriptor for a connection; always if undefined. */
  readonly roomFor?: ((raw: Socket) => DescriptorRoom) | undefined;
  /** The CONNECT is complete; the caller must hand the stream to the broker library at once. */
  readonly onConnect: (connection: Connection) => void;
  /** The connection was refused and is being closed. */
  readonly onRefused: (filter: ConnectionFilter, what: 'connect' | 'packet', cause: RefusalCause) => void;
  /** An authenticated client was silent for too long and is disconnected. */
  readonly onSilent: (filter: ConnectionFilter) => void;
  /** An authenticated client does not read and is disconnected. */
  readonly onUnread: (filter: ConnectionFilter, cause: RefusalCause) => void;
  /** An authenticated connection is being closed; the caller must stop the library from serving it. */
  readonly onLingering: (filter: ConnectionFilter) => void;
  /** A connection has closed. */
  readonly onClosed: (filter: ConnectionFilter) => void;
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

  /** The number of open sockets. */
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

  /** Must be called when a client is authenticated. */
  open(filter: ConnectionFilter): void {
    if (filter.phase !== 'answering') return;
    filter.open();
    this.#strangers -= 1;
    const { keepalive } = filter;
    const effective = keepalive === 0 ? DEFAULT_KEEPALIVE : Math.min(Seconds(keepalive), MAX_KEEPALIVE);
    filter.maxSilence = effective * KEEPALIVE_FACTOR;
    filter.receivedAtMs = this.#options.clock.now();
    this.#wheel.set(filter, filter.maxSilence);
  }

  /** Must be called when something is sent to a client: the guard watches whether the client reads it. */
  sent(filter: ConnectionFilter): void {
    if (filter.isAwaitingRead) return;
    filter.isAwaitingRead = true;
    // Differs from every real number, so that the time starts at the first check.
    filter.readBytes = -1;
    this.#awaitingRead.add(filter);
    this.#wheel.keepTurning();
  }

  /** Stops all reading. */
  stopReading(): void {
    this.isClosing = true;
  }

  /**
   * Closes every connection gracefully: written bytes still arrive (lingering-close.ts limits how long that takes).
   * Resolves when no connection is left.
   */
  async closeAll(): Promise<void> {
    const closings = [...this.#filters].map(({ stream }) => {
      if (stream.closed) return undefined;
      const closed = new Promise<void>((resolve) => stream.once('close', () => resolve()));
      // Of an authenticated client this is the graceful close that the broker put in place of `destroy`.
      stream.destroy();
      return closed;
    });
    await Promise.all(closings);
  }

  /** Destroys every connection at once. */
  destroyAll(): void {
    for (const { raw } of this.#filters) raw.destroy();
    this.#wheel.stop();
  }

  /** Returns false if the limit was exceeded, so that the connection was closed. */
  heldBytesChanged(filter: ConnectionFilter, change: number): boolean {
    this.#heldBytes += change;
    if (change <= 0 || this.#heldBytes <= this.#options.limits.heldBytes) return true;
    const limit = this.#options.limits.heldBytes.toLocaleString('en');
    this.fault(filter, { reason: 'crowd', why: `${limit} bytes of unauthenticated connections are held already` });
    return false;
  }

  connectComplete(filter: ConnectionFilter): void {
    this.#silentStrangers.remove(filter);
    if (filter.usesReservedDescriptor) {
      this.fault(filter, NO_DESCRIPTOR, SERVER_UNAVAILABLE);
      return;
    }
    this.#wheel.set(filter, this.#options.limits.answerWithin);
    filter.handOver();
    this.#options.onConnect(filter);
  }

  received(filter: ConnectionFilter, isPacket: boolean): void {
    if (isPacket) filter.receivedAtMs = this.#options.clock.now();
    // Nearly every packet is answered.
    this.sent(filter);
  }

  /** Closes a connection and reports why. @param returnCode that of a CONNACK to send first; 0 for none */
  fault(filter: ConnectionFilter, cause: RefusalCause, returnCode = 0): void {
    if (filter.phase === 'closed') return;
    const what = filter.phase === 'open' ? 'packet' : 'connect';
    const answer = returnCode === 0 ? undefined : Buffer.from([...CONNACK_START, returnCode]);
    this.#end(filter, () => this.#options.onRefused(filter, what, cause), answer);
  }

  #secured(filter: ConnectionFilter): void {
    if (filter.phase !== 'handshake') return;
    this.#wheel.set(filter, this.#options.limits.connectWithin);
    filter.secured();
  }

  /** Why a new connection from this address is one too many; undefined if it is not. */
  #crowdFault(address: string): RefusalCause | undefined {
    const { perAddress, silentPerAddress, strangers } = this.#options.limits;
    if (this.#countAddress(address, 1) > perAddress)
      return crowdCause(`the address has ${perAddress} connections already`);
    // If none has been silent long enough, the new connection is accepted nevertheless: `strangers` limits them all.
    if (this.#silentStrangers.countOf(address) >= silentPerAddress)
      this.#evictSilent(
        this.#silentStrangers.oldestOf(address),
        crowdCause(`the address has ${silentPerAddress} connections without a CONNECT`),
      );
    const cause = crowdCause(`${strangers} connections are not authenticated yet`);
    return this.#strangers > strangers && !this.#evictSilent(this.#silentStrangers.oldestOfLargestGroup(), cause)
      ? cause
      : undefined;
  }

  /**
   * Why a new connection must be closed at once for lack of a file descriptor; undefined if it need not be. If
   * descriptors are short, sets `usesReservedDescriptor`: the connection may stay until it has got a CONNACK.
   */
  #descriptorFault(filter: ConnectionFilter): RefusalCause | undefined {
    const room = this.#options.roomFor?.(filter.raw) ?? 'enough';
    if (room === 'enough') return undefined;
    const hasEvicted = this.#evictSilent(this.#silentStrangers.oldestOfLargestGroup(), NO_DESCRIPTOR);
    // The connection has a descriptor that is reserved for other uses, so it can't stay, even if another was just
    // closed.
    if (room === 'none') return NO_DESCRIPTOR;
    filter.usesReservedDescriptor = !hasEvicted;
    return undefined;
  }

  /** Closes a connection that has been silent for a while, to make room for another. Returns whether it did. */
  #evictSilent(filter: ConnectionFilter | undefined, { reason, why }: RefusalCause): boolean {
    if (filter === undefined || this.#options.clock.now() - filter.receivedAtMs < MIN_SILENCE_BEFORE_EVICTION)
      return false;
    this.fault(filter, { reason, why: `${why}; this one was silent the longest` });
    return true;
  }

  #deadlinePassed(filter: ConnectionFilter): void {
    const { limits, clock } = this.#options;
    const timeOut = (reason: 'tls' | 'slow', missed: string, limit: Milliseconds): void =>
      this.fault(filter, { reason, why: `${missed} within ${limit / Seconds(1)} s` });
    if (filter.phase === 'handshake') timeOut('tls', 'the TLS handshake was not finished', limits.handshakeWithin);
    else if (filter.phase === 'connect') timeOut('slow', 'the CONNECT was not finished', limits.connectWithin);
    else if (filter.phase === 'answering') timeOut('slow', 'the CONNECT could not be answered', limits.answerWithin);
    else {
      const left = filter.receivedAtMs + filter.maxSilence - clock.now();
      if (left > 0) this.#wheel.set(filter, left);
      // The client may have sent packets that the gateway does not read now. They count once they are read.
      else if (filter.isOverBudget) this.#wheel.set(filter, filter.maxSilence);
      else this.#end(filter, () => this.#options.onSilent(filter));
    }
  }

  /** Closes connections that read nothing of what they were sent. Returns whether any is left to watch. */
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
      // The bytes that have left the gateway's buffers: read by the client, or in a buffer of a system in between.
      const readBytes = stream.bytesWritten - stream.writableLength;
      if (readBytes !== filter.readBytes) {
        filter.readBytes = readBytes;
        filter.readAtMs = nowMs;
      } else if (nowMs - filter.readAtMs >= mustReadWithin) {
        const why = `the client read nothing of what it was sent for ${mustReadWithin / Seconds(1)} s`;
        this.#end(filter, () => this.#options.onUnread(filter, { reason: 'not-reading', why }));
      }
    }
    return this.#awaitingRead.size > 0;
  }

  socketFailed(filter: ConnectionFilter, error: Error): void {
    if (filter.phase === 'handshake')
      this.fault(filter, { reason: 'tls', why: `the TLS handshake failed: ${serverTlsFailure(error)}` });
  }

  /** Closes a connection, after sending `answer` if given. */
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
    if (this.#discardedBytes < GC_AFTER_BYTES) return;
    this.#discardedBytes = 0;
    void new ArrayBuffer(GC_TRIGGER_BYTES);
  }

  lingering(filter: ConnectionFilter): void {
    this.#options.onLingering(filter);
  }

  socketClosed(filter: ConnectionFilter): void {
    // Clients such as mqtt.js check the certificate at the end of the handshake, and send no TLS alert.
    if (hasRefusedCertificate(filter)) this.fault(filter, { reason: 'tls', why: CLOSED_AFTER_HANDSHAKE });
    if (filter.phase !== 'closed') {
      if (filter.phase !== 'open') this.#forgetStranger(filter);
      filter.end();
    }
    this.#wheel.cancel(filter);
    this.#awaitingRead.delete(filter);
    this.#filters.delete(filter);
    this.#countAddress(filter.address, -1);
    this.#options.onClosed(filter);
  }

  /** Changes the number of connections of an address group and returns it; 0 without a limit per address. */
  #countAddress(address: string, change: number): number {
    if (this.#options.limits.perAddress === 0) return 0;
    const group = addressGroup(address);
    const count = (this.#countByAddress.get(group) ?? 0) + change;
    if (count === 0) this.#countByAddress.delete(group);
    else this.#countByAddress.set(group, count);
    return count;
  }
}

function crowdCause(why: string): RefusalCause {
  return { reason: 'crowd', why };
}

/** Whether a client took part in a TLS handshake and closed the connection before it sent a CONNECT. */
function hasRefusedCertificate({ phase, stream, raw, headerBytes, isEmpty }: ConnectionFilter): boolean {
  if (!(stream instanceof TLSSocket)) return false;
  return phase === 'connect' ? isEmpty : phase === 'handshake' && raw.bytesRead > headerBytes;
}
