/**
 * Puts what was recorded at a URL together, so that a transaction stores it in a few statements. Each statement is a
 * way to the database and back: with three for each outcome, the 1,024 outcomes that a worker may have unrecorded would
 * take many seconds, in which it makes no attempt. Pure.
 */
import { idInSlot, type LogPosition } from '../../../contract/log/log-position.js';
import type { DeliveryProgress } from '../../../contract/webhooks/delivery.js';

/** The progress at a URL, from several calls. */
interface Gathered {
  /** What was given last: the changes of the URL's row. */
  last: DeliveryProgress;
  cursor: LogPosition | undefined;
  readonly attempts: DeliveryProgress['attempts'][number][];
  readonly blocked: NonNullable<DeliveryProgress['blocked']>[number][];
  readonly damaged: Set<number>;
}

/** Returns progress that leaves the same stored, one for each URL, or several where the order matters. */
export function gatherProgress(progress: readonly DeliveryProgress[]): DeliveryProgress[] {
  const all: Gathered[] = [];
  const byUrl = new Map<number, Gathered>();
  for (const each of progress) {
    const before = byUrl.get(each.urlId);
    if (before !== undefined && mayFollow(before, each)) add(before, each);
    else {
      const next: Gathered = { last: each, cursor: undefined, attempts: [], blocked: [], damaged: new Set() };
      add(next, each);
      byUrl.set(each.urlId, next);
      all.push(next);
    }
  }
  return all.map(({ last, cursor, attempts, blocked, damaged }) => {
    return { ...last, cursor, attempts, blocked, damaged: [...damaged] };
  });
}

/**
 * Attempts are stored before damaged events: one at an event that was damaged before must be stored apart. Blocked
 * events come after attempts too, but never replace what an attempt stored.
 */
function mayFollow({ damaged }: Gathered, { attempts }: DeliveryProgress): boolean {
  return damaged.size === 0 || !attempts.some(({ uplinkId }) => damaged.has(uplinkId));
}

function add(gathered: Gathered, progress: DeliveryProgress): void {
  const { attempts, blocked = [], damaged = [], cursor, ...changes } = progress;
  gathered.last = { ...gathered.last, ...changes };
  for (const attempt of attempts) gathered.attempts.push(attempt);
  for (const event of blocked) gathered.blocked.push(event);
  for (const id of damaged) gathered.damaged.add(id);
  if (cursor !== undefined) gathered.cursor = furthest(gathered.cursor ?? cursor, cursor);
}

/** The position after both. */
function furthest(one: LogPosition, other: LogPosition): LogPosition {
  if (one === other) return one;
  return new Map([...one, ...other].map(([slot]) => [slot, Math.max(idInSlot(one, slot), idInSlot(other, slot))]));
}
