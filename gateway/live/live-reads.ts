/**
 * What streams read: snapshots and missed changes, in slices that take turns on the event loop with other work, and the
 * ids of events.
 *
 * An event's id is `<tag>.<sequence>`. The tag depends on the audience (who gets the same events, such as one merchant)
 * and on a secret of this object, which live-feed.ts makes anew after a minute without streams. So an id is not valid
 * for another merchant, in another gateway, or after such a minute: a client that sends it then gets a snapshot.
 */
import { createHmac, randomBytes } from 'node:crypto';
import type { Mac } from '../../proto/wire/mac.js';
import { type ListedLock, listedLock, statesOf } from '../locks/list/listed-lock.js';
import type { Device } from '../store/contract/devices/device.js';
import type { Store } from '../store/contract/store.js';
import { type Audience, deltaText, snapshotText } from './audience.js';
import type { ChangeLog, LockChange, LockDeparture } from './change-log.js';
import { sseEvent } from './server-sent-events.js';
import { SnapshotParts, type SnapshotReadParts } from './snapshot-parts.js';

/** How many changed locks are read and rendered in one turn: some milliseconds. */
const LOCKS_PER_SLICE = 100;
const SECRET_BYTES = 16;
const TAG_CHARS = 16;
/** The id of an event: the audience's tag and the sequence of a change. Numbers of 15 digits are exact. */
const ID = /^([\w-]{16})\.(\d{1,15})$/;

export interface LiveReadsParts extends SnapshotReadParts {
  readonly store: Pick<Store, 'readDevices' | 'findDevices'>;
}

/** A text to send, and how many locks were read from the store for it, maybe together with other streams. */
export interface LiveText {
  readonly text: string;
  readonly locksRead: number;
}

/** A part of a snapshot to send. */
export interface SnapshotText extends LiveText {
  /** After the last part, the changes after this position are still to be sent. */
  readonly position: number;
}

export class LiveReads {
  readonly #parts: LiveReadsParts;
  readonly #log: ChangeLog;
  readonly #snapshots: SnapshotParts;
  readonly #secret = randomBytes(SECRET_BYTES);
  /**
   * The tags of audiences, by name. A tag is part of each event id, so that an id of another audience or with an
   * earlier secret is recognised.
   */
  readonly #tags = new Map<string, string>();

  /** @param onShown called with each lock of a snapshot, and the time that it is shown for, by the run's clock */
  constructor(parts: LiveReadsParts, log: ChangeLog, onShown: (device: Device, runNowMs: number) => void) {
    this.#parts = parts;
    this.#log = log;
    this.#snapshots = new SnapshotParts(parts, () => log.last, onShown);
  }

  stop(): void {
    this.#snapshots.stop();
  }

  /** The sequence of the last change. */
  get last(): number {
    return this.#log.last;
  }

  /** The id of the event with this sequence. */
  idOf(audience: Audience, sequence: number): string {
    return `${this.#tagOf(audience)}.${sequence}`;
  }

  /** The sequence in an id; undefined if this object has not made the id for this audience. */
  positionOf(audience: Audience, id: string | undefined): number | undefined {
    const [, tag, sequence] = ID.exec(id ?? '') ?? [];
    const position = Number(sequence);
    return tag === this.#tagOf(audience) && position <= this.#log.last ? position : undefined;
  }

  /** The changes after a position; undefined if the log no longer has all of them. */
  missed({ merchantId }: Audience, position: number): readonly (LockChange | LockDeparture)[] | undefined {
    return this.#log.after(position, merchantId);
  }

  /** All locks of an audience in parts, at least one. @param isFresh whether all are read now, for this stream alone */
  async *snapshot(audience: Audience, isFresh: boolean): AsyncGenerator<SnapshotText> {
    let afterMac: Mac | undefined;
    let position = this.#log.last;
    for (let part = 1; ; part += 1) {
      const read = await this.#snapshots.partAfter(audience, afterMac, isFresh);
      const { sequence, locksJson, count, isLast, lastMac } = read;
      // A part that was read for another stream may lack changes before this snapshot's start.
      position = Math.min(position, sequence);
      const text = snapshotText({ part, isLast, locksJson }, this.idOf(audience, position));
      yield { text, locksRead: count, position };
      if (isLast) return;
      afterMac = lastMac;
    }
  }

  /** Changes as events, with the present states of the locks. */
  async *changes(audience: Audience, missed: readonly (LockChange | LockDeparture)[]): AsyncGenerator<LiveText> {
    for (let start = 0; start < missed.length; start += LOCKS_PER_SLICE) {
      await this.#parts.turns.next();
      const slice = missed.slice(start, start + LOCKS_PER_SLICE);
      const ids = slice.flatMap((entry) => (entry.kind === 'change' ? [entry.deviceId] : []));
      const locks = await this.locksOf(ids);
      const texts = slice.map((entry) => {
        const id = this.idOf(audience, entry.sequence);
        if (entry.kind === 'departure') return deltaText(audience, entry, id);
        const lock = locks.get(entry.deviceId);
        // A lock that has left meanwhile has a later entry, its departure.
        if (lock === undefined || lock.device.merchantId !== entry.merchantId) return '';
        return deltaText(audience, { ...entry, lock }, id);
      });
      yield { text: texts.join(''), locksRead: ids.length };
    }
  }

  /** The locks with these ids that are in service, with their present states, by device id. */
  async locksOf(deviceIds: readonly number[]): Promise<ReadonlyMap<number, ListedLock>> {
    const { store, states, runClock } = this.#parts;
    const devices = await store.findDevices(deviceIds);
    const present = await statesOf(states, devices);
    const nowMs = runClock.now();
    return new Map(devices.map((device) => [device.id, listedLock(device, present, nowMs)]));
  }

  /** The event that says how many events of the gateway were left out. */
  skippedText(count: number): string {
    return sseEvent('skipped', undefined, JSON.stringify({ events: count }));
  }

  #tagOf({ name }: Audience): string {
    const known = this.#tags.get(name);
    if (known !== undefined) return known;
    const tag = createHmac('sha256', this.#secret).update(name).digest('base64url').slice(0, TAG_CHARS);
    this.#tags.set(name, tag);
    return tag;
  }
}
