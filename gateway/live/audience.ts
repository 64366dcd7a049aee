/**
 * An audience: the clients whose streams have the same content, such as all streams of one merchant. It says which
 * locks are in these streams, and how a lock is written as JSON. This file also renders events of a stream as text.
 * Pure.
 */
import type { Mac } from '../../proto/wire/mac.js';
import type { ListedLock } from '../locks/list/listed-lock.js';
import type { LockChange, LockDeparture } from './change-log.js';
import { sseEvent } from './server-sent-events.js';

/** The readers of streams with the same content: one merchant, or the operators. */
export interface Audience {
  /** Identifies the audience: all streams whose audience has this name share the rendered text. */
  readonly name: string;
  /** The merchant whose locks the streams have; undefined for all locks. */
  readonly merchantId: number | undefined;
  /** The lock as JSON. */
  readonly lockJson: (lock: ListedLock) => unknown;
  /** A lock that the audience no longer has, as JSON. */
  readonly departureJson: (mac: Mac) => unknown;
}

/** What a stream sends about one lock: its present state after a change, or that the merchant has lost it. */
export type Delta = (LockChange & { readonly lock: ListedLock }) | LockDeparture;

/** One change as an event of a stream. @param id the id of the event */
export function deltaText(audience: Audience, delta: Delta, id: string): string {
  return delta.kind === 'change'
    ? sseEvent('lock', id, JSON.stringify(audience.lockJson(delta.lock)))
    : sseEvent('removed', id, JSON.stringify(audience.departureJson(delta.mac)));
}

/** One part of a snapshot: the first part replaces all locks that the client has. */
export interface RenderedPart {
  /** 1 for the first. */
  readonly part: number;
  readonly isLast: boolean;
  /** The list of locks as JSON. */
  readonly locksJson: string;
}

/**
 * A part of a snapshot as an event of a stream. The first one removes the client's last id: a client that is
 * interrupted within a snapshot must get a new snapshot. The last part sets the id.
 *
 * @param id the id of the position at which the snapshot was started
 */
export function snapshotText({ part, isLast, locksJson }: RenderedPart, id: string): string {
  const firstId = part === 1 ? '' : undefined;
  return sseEvent('snapshot', isLast ? id : firstId, `{"part":${part},"last":${isLast},"locks":${locksJson}}`);
}
