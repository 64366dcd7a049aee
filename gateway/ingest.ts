/**
 * A ping's way in, as a table of contents: decode, queue, commit with what waits beside it, answer, announce.
 *
 * Nothing is acknowledged before it is on the disk. All uplinks that wait when a commit begins go into it together
 * (group commit), so one fsync serves many locks and the wait is that of one commit. The queue is first in, first out,
 * so a lock's uplinks keep the order in which it sent them, and are answered in it.
 */
import { afterThisTurn, type Clock } from '../proto/clock.js';
import { decodeUplink } from '../proto/codec.js';
import { LockgateError } from '../proto/errors.js';
import type { Mac } from '../proto/mac.js';
import type { Uplink } from '../proto/ping.js';
import { POWER_MODEL } from '../proto/power-model.js';
import { type DeviceState, withUplink } from './device-state.js';
import { digestOf, eventId } from './event-id.js';
import type { GatewayEvents } from './events.js';
import {
  type AppendOutcome,
  type Incoming,
  type IncomingQuarantine,
  type IncomingUplink,
  type Store,
  UPLINK_KINDS,
} from './store/store.js';

/** Uplinks that may wait for a commit; past it the newest is turned away, unacknowledged, and its lock sends again. */
const MAX_WAITING = 20_000;
/** Uplinks in one commit: bounds how long the event loop stands still. */
const MAX_BATCH = 2_000;
/** Locks whose last state is kept in memory between their uplinks. */
const MAX_CACHED_STATES = 50_000;

/** Who sent the bytes: decided by the credential that the connection was made with, never by the content. */
export interface Sender {
  readonly deviceId: number;
  readonly merchantId: number;
  readonly credentialId: number;
  readonly mac: Mac;
  readonly simulated: boolean;
}

/** Called once: without an error when the uplink may be acknowledged, with one when it must not be. */
export type Answer = (error?: Error) => void;

interface Waiting {
  readonly sender: Sender;
  readonly bytes: Buffer;
  /** Undefined for bytes that go into quarantine. */
  readonly uplink: Uplink | undefined;
  readonly rejection: { readonly code: string; readonly message: string } | undefined;
  readonly receivedAtMs: number;
  readonly answer: Answer;
}

export class Ingest {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #events: GatewayEvents;
  readonly #onStored: (merchantIds: ReadonlySet<number>) => void;
  readonly #states = new Map<number, DeviceState | null>();
  #waiting: Waiting[] = [];
  #committing: Promise<void> | undefined;

  /** `clock` is the run's clock. `onStored` is told the merchants that have new events, after their commit. */
  constructor(store: Store, clock: Clock, events: GatewayEvents, onStored: (merchantIds: ReadonlySet<number>) => void) {
    this.#store = store;
    this.#clock = clock;
    this.#events = events;
    this.#onStored = onStored;
  }

  /** Takes the payload of one publish to `up`. `answer` is called when its fate is on the disk. */
  take(sender: Sender, payload: Uint8Array, answer: Answer): void {
    if (this.#waiting.length >= MAX_WAITING) {
      answer(new LockgateError('overloaded', `${MAX_WAITING} uplinks wait to be stored`));
      return;
    }
    const decoded = decodeUplink(payload);
    this.#waiting.push({
      sender,
      bytes: Buffer.from(payload),
      uplink: decoded.ok ? decoded.value : undefined,
      rejection: decoded.ok ? undefined : decoded.error,
      receivedAtMs: this.#clock.now(),
      answer,
    });
    this.#startCommitting();
  }

  /** Resolves when all that was taken so far has been answered. */
  async idle(): Promise<void> {
    while (this.#committing !== undefined) await this.#committing;
  }

  #startCommitting(): void {
    this.#committing ??= new Promise<void>((resolve) => {
      // What this turn of the event loop still brings shall go into the same commit.
      afterThisTurn(() => {
        void this.#commitAll().finally(() => {
          this.#committing = undefined;
          resolve();
        });
      });
    });
  }

  async #commitAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, MAX_BATCH);
      try {
        await this.#loadStates(batch);
        const incoming = batch.map((each) => this.#prepare(each));
        const outcomes = await this.#store.append(incoming);
        this.#finish(batch, outcomes);
      } catch (error) {
        this.#fail(batch, error as Error);
      }
    }
  }

  async #loadStates(batch: readonly Waiting[]): Promise<void> {
    if (this.#states.size > MAX_CACHED_STATES) this.#states.clear();
    for (const { sender } of batch) {
      if (this.#states.has(sender.deviceId)) continue;
      const stored = await this.#store.readDeviceState(sender.deviceId);
      this.#states.set(sender.deviceId, stored === null ? null : (JSON.parse(stored) as DeviceState));
    }
  }

  #prepare(waiting: Waiting): Incoming {
    if (waiting.uplink !== undefined) return this.#prepareUplink(waiting, waiting.uplink);
    const { sender, receivedAtMs, bytes } = waiting;
    const { code, message } = waiting.rejection ?? { code: 'undecodable', message: '' };
    const { deviceId, credentialId } = sender;
    return {
      type: 'quarantine',
      deviceId,
      credentialId,
      receivedAtMs,
      code,
      message,
      bytes,
    } satisfies IncomingQuarantine;
  }

  #prepareUplink(waiting: Waiting, uplink: Uplink): IncomingUplink {
    const { deviceId, merchantId, credentialId } = waiting.sender;
    const state = withUplink(this.#states.get(deviceId) ?? null, credentialId, uplink, waiting.receivedAtMs);
    this.#states.set(deviceId, state);
    return {
      type: 'uplink',
      deviceId,
      merchantId,
      credentialId,
      boot: uplink.boot,
      sequence: uplink.sequence,
      digest: digestOf(waiting.bytes),
      kind: UPLINK_KINDS.indexOf(uplink.body.kind),
      bytes: waiting.bytes,
      receivedAtMs: waiting.receivedAtMs,
      buffered: isBuffered(uplink, waiting.receivedAtMs),
      deviceState: JSON.stringify(state),
    };
  }

  #finish(batch: readonly Waiting[], outcomes: readonly AppendOutcome[]): void {
    const merchantIds = new Set<number>();
    for (const [index, waiting] of batch.entries()) {
      const outcome = outcomes[index];
      waiting.answer();
      if (outcome === 'stored') merchantIds.add(waiting.sender.merchantId);
      this.#announce(waiting, outcome === 'repeated');
    }
    if (merchantIds.size > 0) this.#onStored(merchantIds);
  }

  #announce({ sender, bytes, uplink, rejection, receivedAtMs }: Waiting, repeated: boolean): void {
    const { mac, credentialId, simulated } = sender;
    if (uplink === undefined) {
      const { code, message } = rejection ?? { code: 'undecodable', message: '' };
      this.#events.emit('quarantined', { atMs: receivedAtMs, mac, code, message, bytes });
      return;
    }
    const { boot, sequence } = uplink;
    this.#events.emit('uplink', {
      atMs: receivedAtMs,
      mac,
      eventId: eventId({ mac, credentialId, boot, sequence, digest: digestOf(bytes) }),
      uplink,
      buffered: isBuffered(uplink, receivedAtMs),
      repeated,
      simulated,
    });
  }

  /** Nothing of the batch was kept, so nothing of it may be acknowledged, nor remembered. */
  #fail(batch: readonly Waiting[], error: Error): void {
    this.#states.clear();
    this.#events.emit('store-failed', { atMs: this.#clock.now(), why: error.message });
    for (const waiting of batch) waiting.answer(error);
  }
}

/** An uplink that arrives over 60 s after its time waited somewhere (protocol.md §3). */
function isBuffered(uplink: Uplink, receivedAtMs: number): boolean {
  return receivedAtMs - uplink.timeMs > POWER_MODEL.bounds.bufferedOver;
}
