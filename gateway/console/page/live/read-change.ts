/**
 * Reads a change from a stream's event: of the merchants' `/v1/stream`, whose locks are what the screens show, or of
 * the operators' `/stream`, whose locks have other members. Pure.
 */
import { lockOf, type OperatorLock } from '../api/operator-shapes.js';
import type { Lock } from '../api/shapes.js';
import type { LiveChange } from './live-locks.js';

type StreamedLock = Lock | OperatorLock;

/** @param data the event's data, as JSON */
export function readChange(type: LiveChange['type'], data: string): LiveChange {
  const content = JSON.parse(data);
  if (type === 'lock') return { type, lock: shownLock(content) };
  if (type === 'snapshot') return { type, ...content, locks: content.locks.map(shownLock) };
  return { type, mac_addr: content.mac_addr ?? content.mac };
}

function shownLock(lock: StreamedLock): Lock {
  return 'mac' in lock ? lockOf(lock) : lock;
}
