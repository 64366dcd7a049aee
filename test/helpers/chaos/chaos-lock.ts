/**
 * A lock for runs with thousands of them: a plain socket that sends pings, repeats what is not acknowledged (with the
 * same bytes) to the next gateway of a list, carries each command out once, and answers it. Its diary is small: uplinks
 * are numbered 1, 2, 3 …, so it keeps only how many were made, and which are not acknowledged or answer a command.
 */
import { connect, type Socket } from 'node:net';
import { type Milliseconds, monotonicMs, Seconds, systemClock } from '../../../proto/clock.js';
import { decodeDownlink, encodeUplink } from '../../../proto/wire/codec.js';
import type { Uplink } from '../../../proto/wire/ping.js';
import { rideUplink } from '../../bench/load/ping-template.js';
import { connectPacket, publishPacket, subscribePacket } from '../mqtt/raw-lock.js';
import { PacketReader } from './packet-reader.js';

/** The boot of all uplinks of a run. */
export const CHAOS_BOOT = 1;
/** How long after a lost or refused connection a lock tries again. */
const RETRY_DELAY = Seconds(0.5);
/** A gateway that does not answer for this long is given up. */
const ANSWER_LIMIT = Seconds(3);
/** A lock with this many unacknowledged uplinks makes no new ping. */
const MAX_UNACKED = 3;
/** Types of packets (MQTT 3.1.1, 2.2.1). */
const [CONNACK, PUBACK, PUBLISH] = [2, 4, 3];

/** A lock's login, the gateways that it tries, and a callback. */
export interface ChaosLockOptions {
  readonly mac: string;
  readonly secret: string;
  /** The port of the gateway to try now; called for each connection. */
  readonly nextPort: () => number;
  /**
   * Called when a lock that had lost its gateway is served again, with the time in between: a gateway has accepted it,
   * and has acknowledged an uplink if the lock had one to send.
   */
  readonly onServedAgain: (afterMs: Milliseconds) => void;
}

/** Bytes that the lock sent and received, by its own count. */
export interface LockBytes {
  /** On connections that a gateway accepted. */
  up: number;
  down: number;
  /** Sent on connections that got no CONNACK; a gateway may have counted them or not. */
  unacceptedUp: number;
}

/** A lock's diary. */
export interface ChaosDiary {
  readonly mac: string;
  /** How many uplinks the lock made: they have the sequence numbers 1 to this. */
  readonly made: number;
  /** The sequence numbers of uplinks that were not acknowledged. */
  readonly unacked: readonly number[];
  /** The sequence numbers of uplinks that answer commands. */
  readonly answers: readonly number[];
  /** The sequence numbers of uplinks that were acknowledged, but may have been lost by a restore of the database. */
  readonly lost: readonly number[];
  /** The ids of commands, in the order in which they were carried out. */
  readonly carriedOut: readonly number[];
  readonly bytes: LockBytes;
}

interface Unacked {
  readonly sequence: number;
  readonly bytes: Buffer;
}

/** One lock; {@link Crowd} (crowd.ts) calls it at intervals. */
export class ChaosLock {
  readonly #options: ChaosLockOptions;
  readonly #carriedOut: number[] = [];
  readonly #answers: number[] = [];
  readonly #lost: number[] = [];
  readonly #bytes: LockBytes = { up: 0, down: 0, unacceptedUp: 0 };
  #unacked: Unacked[] = [];
  /** Whether a restore of the database will lose what is acknowledged now. */
  isLosing = false;
  #made = 0;
  #socket: Socket | undefined;
  #isAccepted = false;
  /** Since when the lock has waited for a CONNACK or PUBACK (monotonic); undefined if it waits for none. */
  #waitingSinceMs: Milliseconds | undefined;
  /** When it lost its gateway (monotonic); undefined once it is served again. */
  #lostAtMs: Milliseconds | undefined;
  /** It does not connect before this (monotonic). */
  #retryAtMs = 0;

  constructor(options: ChaosLockOptions) {
    this.#options = options;
  }

  get unackedCount(): number {
    return this.#unacked.length;
  }

  get ackedCount(): number {
    return this.#made - this.#unacked.length;
  }

  /** Connects if it is not connected and its delay is over; gives up a gateway that does not answer. */
  check(nowMs: Milliseconds): void {
    if (this.#socket === undefined) {
      if (nowMs >= this.#retryAtMs) this.#connect();
    } else if (this.#waitingSinceMs !== undefined && nowMs - this.#waitingSinceMs > ANSWER_LIMIT)
      this.#socket.destroy();
  }

  /** Makes a ping, unless too many are not acknowledged. */
  ping(): void {
    if (this.#unacked.length < MAX_UNACKED)
      this.#add((sequence) => rideUplink(CHAOS_BOOT, sequence, systemClock.now()));
  }

  /** Closes the connection for good. */
  stop(): void {
    this.#retryAtMs = Number.POSITIVE_INFINITY;
    this.#socket?.destroy();
  }

  diary(): ChaosDiary {
    return {
      mac: this.#options.mac,
      made: this.#made,
      unacked: this.#unacked.map(({ sequence }) => sequence),
      answers: this.#answers,
      lost: this.#lost,
      carriedOut: this.#carriedOut,
      bytes: this.#bytes,
    };
  }

  #add(make: (sequence: number) => Uplink): void {
    this.#made += 1;
    const uplink = { sequence: this.#made, bytes: Buffer.from(encodeUplink(make(this.#made))) };
    this.#unacked.push(uplink);
    if (this.#isAccepted) this.#send(uplink);
  }

  #send({ sequence, bytes }: Unacked): void {
    this.#waitingSinceMs ??= monotonicMs();
    this.#socket?.write(publishPacket('up', bytes, packetId(sequence)));
  }

  #connect(): void {
    const { mac, secret, nextPort } = this.#options;
    const socket = connect({ port: nextPort(), host: '127.0.0.1', noDelay: true });
    const packets = new PacketReader((header, body) => this.#receive(socket, header, body));
    this.#socket = socket;
    this.#waitingSinceMs = monotonicMs();
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => packets.add(chunk));
    socket.on('close', () => this.#closed(socket));
    socket.write(connectPacket({ user: mac, secret }));
  }

  #closed(socket: Socket): void {
    if (this.#isAccepted) {
      this.#bytes.up += socket.bytesWritten;
      this.#bytes.down += socket.bytesRead;
    } else this.#bytes.unacceptedUp += socket.bytesWritten;
    const nowMs = monotonicMs();
    if (this.#isAccepted) this.#lostAtMs ??= nowMs;
    this.#isAccepted = false;
    this.#socket = undefined;
    this.#waitingSinceMs = undefined;
    this.#retryAtMs = Math.max(this.#retryAtMs, nowMs + RETRY_DELAY);
  }

  #receive(socket: Socket, header: number, body: Buffer): void {
    const type = header >> 4;
    if (type === CONNACK) this.#accepted(socket, body[1] ?? 0);
    else if (type === PUBACK) this.#acked(body.readUInt16BE(0));
    else if (type === PUBLISH) this.#commanded(socket, body);
  }

  #accepted(socket: Socket, code: number): void {
    if (code !== 0) {
      socket.destroy();
      return;
    }
    this.#isAccepted = true;
    this.#waitingSinceMs = undefined;
    socket.write(subscribePacket('down'));
    for (const uplink of this.#unacked) this.#send(uplink);
    if (this.#unacked.length === 0) this.#served();
  }

  #acked(id: number): void {
    const isAcked = ({ sequence }: Unacked): boolean => packetId(sequence) === id;
    if (this.isLosing) this.#lost.push(...this.#unacked.filter(isAcked).map(({ sequence }) => sequence));
    this.#unacked = this.#unacked.filter((uplink) => !isAcked(uplink));
    this.#waitingSinceMs = this.#unacked.length > 0 ? monotonicMs() : undefined;
    this.#served();
  }

  #served(): void {
    if (this.#lostAtMs === undefined) return;
    this.#options.onServedAgain(monotonicMs() - this.#lostAtMs);
    this.#lostAtMs = undefined;
  }

  /** Carries a command out, unless it has done so before, and answers it. */
  #commanded(socket: Socket, body: Buffer): void {
    // The body is the topic's length (2 bytes) and the topic, the packet id (2 bytes), and the command.
    const topicEnd = 2 + body.readUInt16BE(0);
    socket.write(Buffer.from([PUBACK << 4, 2, ...body.subarray(topicEnd, topicEnd + 2)]));
    const downlink = decodeDownlink(body.subarray(topicEnd + 2));
    if (!downlink.ok || this.#carriedOut.includes(downlink.value.id)) return;
    const commandId = downlink.value.id;
    this.#carriedOut.push(commandId);
    this.#add((sequence) => {
      this.#answers.push(sequence);
      const answer = { kind: 'ack', commandId, result: 'ok', detail: '', highWindow: null } as const;
      return { ...rideUplink(CHAOS_BOOT, sequence, systemClock.now()), body: answer };
    });
  }
}

/** An uplink's packet id: 1 to 65,535, as MQTT demands. It is unique among the few uplinks that are under way. */
function packetId(sequence: number): number {
  return (sequence % 65_535) + 1;
}
