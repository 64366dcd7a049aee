/**
 * Slots and positions of the log. Several gateways may write one log (an engine decides how many): each writes in a
 * *slot* of its own, and an uplink's id names its slot. Within a slot, ids are committed in ascending order, so whoever
 * reads an id has read, or could read, all lower ids of that slot. Across slots that does not hold: a higher id of one
 * slot may be on the disk before a lower id of another. So a single number is no safe place in the log, and a
 * *position* has one id for each slot. Ids of one lock ascend whichever slot they are in. Pure.
 *
 * An engine with one writer assigns dense ids, 1, 2, 3 …, which are all in {@link DENSE_SLOT}. An engine with several
 * writers assigns ids from a clock, which are all above {@link MAX_DENSE_ID}.
 */

/** The slot of all dense ids. */
export const DENSE_SLOT = 0;
/** The number of slots, with {@link DENSE_SLOT}: an id above {@link MAX_DENSE_ID} is in the slot `id % SLOT_COUNT`. */
export const SLOT_COUNT = 64;
/** The highest dense id. */
export const MAX_DENSE_ID = 2 ** 47 - 1;

/** The slot of an uplink id. */
export function slotOf(id: number): number {
  return id <= MAX_DENSE_ID ? DENSE_SLOT : id % SLOT_COUNT;
}

/** A place in the log: by slot, the last id that is before the place. A slot that is left out is not begun. */
export type LogPosition = ReadonlyMap<number, number>;

/** The position before all uplinks. */
export const LOG_START: LogPosition = new Map();

/** The position after the uplink `id` and all lower ids of its slot; {@link LOG_START} for 0. */
export function positionAfter(id: number): LogPosition {
  return id === 0 ? LOG_START : new Map([[slotOf(id), id]]);
}

/** The last id of a slot that is before the position; 0 if there is none. */
export function idInSlot(position: LogPosition, slot: number): number {
  return position.get(slot) ?? 0;
}

/** Whether the uplink `id` is before the position. */
export function isBehind(position: LogPosition, id: number): boolean {
  return id <= idInSlot(position, slotOf(id));
}

/** The position, moved on in the slot of `id` so that `id` is before it. */
export function movedAfter(position: LogPosition, id: number): LogPosition {
  return isBehind(position, id) ? position : new Map(position).set(slotOf(id), id);
}

/**
 * The position, moved back in the slot of `id` so that `id` is not before it. The number `id - 1` need not be an id of
 * that slot: it is only compared.
 */
export function movedBefore(position: LogPosition, id: number): LogPosition {
  return isBehind(position, id) ? new Map(position).set(slotOf(id), id - 1) : position;
}

/** A slot and an id in the text of a position, such as `3:180143985094787`. */
const ENTRY = /^(\d{1,2}):(\d{1,16})$/;

/**
 * Returns the position as a value for a cursor that clients keep. A position in dense ids alone is a number, as in the
 * cursors of all versions; others are a text.
 */
export function encodePosition(position: LogPosition): number | string {
  const entries = [...position].filter(([, id]) => id > 0).sort(([one], [other]) => one - other);
  if (entries.every(([slot]) => slot === DENSE_SLOT)) return idInSlot(position, DENSE_SLOT);
  return entries.map(([slot, id]) => `${slot}:${id}`).join(',');
}

/** Returns the position of an encoded value; undefined if the value is not one. */
export function decodePosition(value: unknown): LogPosition | undefined {
  if (typeof value === 'number') return isDenseId(value) ? positionAfter(value) : undefined;
  if (typeof value !== 'string') return undefined;
  const position = new Map<number, number>();
  // Of a text with more parts than there are slots, one part too many is read: then a slot occurs twice, which is
  // refused.
  for (const part of value.split(',', SLOT_COUNT + 1)) {
    const [, slotText, idText] = ENTRY.exec(part) ?? [];
    // NaN, which is not valid, if the part does not match.
    const [slot, id] = [Number(slotText), Number(idText)];
    const isValid = slot < SLOT_COUNT && Number.isSafeInteger(id) && (slot !== DENSE_SLOT || isDenseId(id));
    if (!isValid || position.has(slot)) return undefined;
    position.set(slot, id);
  }
  return position;
}

function isDenseId(id: number): boolean {
  return Number.isInteger(id) && id >= 0 && id <= MAX_DENSE_ID;
}
