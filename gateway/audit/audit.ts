/**
 * Writes the audit log: what operators, the owner of the data folder, merchants' users and programs, and the gateway
 * itself have changed.
 *
 * The entry of an operator or owner is durable before the change starts, and its outcome is written afterwards: no such
 * change is without an entry, even if the process is killed. One transaction for both is not possible: most changes
 * need several transactions (an erasure, a rotated secret) and some need none (a test webhook). Changes of merchants
 * and of the gateway itself are written within a second after they were made.
 *
 * No entry may contain a secret: each route names the members that are logged, and all others are left out. In addition
 * each text is scrubbed.
 */
import { type Clock, type Milliseconds, Seconds, type Timer } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import type { GatewayEvents } from '../events.js';
import { scrubSecrets } from '../log/log-scrub.js';
import type {
  AuditEntry,
  AuditFilter,
  AuditResult,
  AuditStart,
  AuditStore,
  AuditWho,
} from '../store/contract/operators/audit-store.js';
import type { Store } from '../store/contract/store.js';
import type { AuditAction } from './actions.js';
import { type AuditPage, type AuditPageTerms, readAuditPage } from './entry-page.js';
import { WaitingEntries } from './waiting-entries.js';

/** Limits on an entry's texts: each JSON text, the object's name, the client's user agent or system user, a name. */
const MAX_JSON_CHARS = 2_000;
const MAX_OBJECT_CHARS = 200;
const MAX_CLIENT_CHARS = 120;
const MAX_NAME_CHARS = 256;
/** Pings wait for a commit of this size, so it must take no more than some milliseconds. */
const MAX_ENTRIES_PER_COMMIT = 20;
/** The wait between the first waiting entry and its write, and the wait after a failed write. */
const WRITE_DELAY: Milliseconds = Seconds(1);
const FAILED_WRITE_DELAY: Milliseconds = Seconds(5);

/** The logged members of the state before or after a change. None of them may be a secret. */
export type AuditDetails = Readonly<Record<string, unknown>>;

/** A change that is about to be made. */
export interface AuditedChange {
  readonly who: AuditWho;
  readonly action: string;
  readonly object: string;
  readonly before: AuditDetails | null;
}

/** Describes a change that was made, from its result, or one that was refused (then `answer` is undefined). */
export type AuditReporter = (answer: unknown) => {
  readonly object: string;
  readonly after: AuditDetails | null;
  /** The name of the merchant whose data was changed, if it is known. */
  readonly merchant?: string | undefined;
};

export interface AuditParts {
  readonly store: Pick<Store, 'audit'>;
  readonly events: GatewayEvents;
  /** Wall-clock time. */
  readonly clock: Clock;
  /** The time for events, ms since the epoch by the run's clock (wall-clock time, except in a sped-up simulation). */
  readonly now: () => number;
}

/** The author of automatic changes. */
const GATEWAY: AuditWho = { actor: 'gateway', address: null, agent: null, osUser: null, token: null };

export class Audit {
  readonly #parts: AuditParts;
  readonly #waiting = new WaitingEntries();
  #writing: Promise<void> = Promise.resolve();
  #timer: Timer | undefined;
  #isStopped = false;

  private constructor(parts: AuditParts) {
    this.#parts = parts;
  }

  /** Starts to listen to events. Entries that an earlier run left unfinished become *unknown*. */
  static async start(parts: AuditParts): Promise<Audit> {
    const audit = new Audit(parts);
    await parts.store.audit.abandon();
    audit.#listen();
    return audit;
  }

  /**
   * Writes an entry, makes the change, and writes its outcome.
   *
   * @throws what `work` throws; StoreFailure if the entry can't be written, and then `work` is not called
   */
  async change<T>(change: AuditedChange, work: () => Promise<T>, describe: AuditReporter): Promise<T> {
    const { store, clock } = this.#parts;
    return await makeRecorded(store.audit, clock, { change, work, describe, onEnd: (entry) => this.#report(entry) });
  }

  /**
   * Logs a change that was made, by `who` or automatically. It is written within a second, in one commit with others:
   * merchants' programs make too many changes for a commit each.
   *
   * @param object the name or id of what was changed; empty if the action says it
   * @param after details of the result
   */
  note(action: AuditAction, object: string, after: AuditDetails | null, who: AuditWho = GATEWAY): void {
    const nowMs = this.#parts.clock.now();
    const start = startOf({ who, action, object, before: null }, nowMs);
    const entry = { ...start, outcome: 'done' as const, code: null, after: jsonOf(after), endedAtMs: nowMs };
    this.#waiting.add(entry);
    this.#report(entry);
    this.#scheduleWrite();
  }

  /** The stored entries, newest first. Waiting entries are written first, if the store can write. */
  async list(filter: AuditFilter): Promise<AuditEntry[]> {
    await this.writeWaiting();
    return await this.#parts.store.audit.list(filter);
  }

  /** A page of the stored entries, as {@link list}. */
  async page(terms: AuditPageTerms): Promise<AuditPage> {
    await this.writeWaiting();
    return await readAuditPage(this.#parts.store.audit, terms);
  }

  /** Writes the waiting entries. Never rejects: entries that can't be written continue to wait. */
  writeWaiting(): Promise<void> {
    this.#writing = this.#writing.then(() => this.#writeBatches());
    return this.#writing;
  }

  /** Writes the waiting entries, if the store can write. Call it after the last change. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.writeWaiting();
  }

  #listen(): void {
    const { events } = this.#parts;
    events.on('url-disabled', ({ urlId, why }) => this.note('webhook.disable', String(urlId), { why }));
    events.on('statement-closed', ({ merchant, month, byItself }) => {
      if (byItself) this.note('usage.close', month, { merchant });
    });
    events.on('swept', ({ beforeMs, uplinks, others }) => {
      if (uplinks + others > 0)
        this.note('history.delete', '', { before: new Date(beforeMs).toISOString(), uplinks, others });
    });
  }

  async #writeBatches(): Promise<void> {
    while (this.#waiting.count > 0) {
      const entries = this.#waiting.first(MAX_ENTRIES_PER_COMMIT);
      try {
        await this.#parts.store.audit.write(entries);
      } catch {
        // The store reports its own failures. The entries stay in the queue.
        this.#scheduleWrite(FAILED_WRITE_DELAY);
        return;
      }
      this.#waiting.drop(entries.length);
      // The queue has left out entries for which it had no room. Now it has, so that this loop writes how many.
      const count = this.#waiting.takeLeftOut();
      if (count > 0) this.note('audit.left-out', '', { count });
    }
  }

  #scheduleWrite(delay = WRITE_DELAY): void {
    if (this.#isStopped) return;
    this.#timer ??= this.#parts.clock.after(delay, () => {
      this.#timer = undefined;
      void this.writeWaiting();
    });
  }

  #report({ actor, address, osUser, action, object, outcome, code, ...others }: AuditStart & AuditResult): void {
    const { merchant, user = null, key = null } = others;
    const people = { merchant: merchant?.name ?? null, user, key };
    const atMs = this.#parts.now();
    this.#parts.events.emit('audited', { atMs, actor, address, osUser, ...people, action, object, outcome, code });
  }
}

/** A change to be logged and made. */
export interface RecordedWork<T> {
  readonly change: AuditedChange;
  readonly work: () => Promise<T>;
  readonly describe: AuditReporter;
  readonly onEnd?: (entry: AuditStart & AuditResult) => void;
}

/**
 * Makes a change and logs it: for {@link Audit}, and for callers that work on a data folder without a running gateway.
 *
 * @throws what `work` throws; StoreFailure if the entry can't be written, and then `work` is not called
 */
export async function makeRecorded<T>(store: AuditStore, clock: Clock, recorded: RecordedWork<T>): Promise<T> {
  const { change, work, describe, onEnd } = recorded;
  const start = startOf(change, clock.now());
  const id = await store.begin(start);
  const end = async (outcome: AuditResult['outcome'], code: string | null, answer?: unknown): Promise<void> => {
    const description = describeSafely(describe, answer, change.object);
    const object = scrubbed(description.object, MAX_OBJECT_CHARS);
    const after = jsonOf(description.after);
    const result = { outcome, code, object, after, endedAtMs: clock.now(), changedMerchant: description.merchant };
    // The change is made, so the caller gets its result. If this write fails, the entry becomes *unknown*.
    await store.end(id, result).catch(() => undefined);
    onEnd?.({ ...start, ...result });
  };
  let answer: T;
  try {
    answer = await work();
  } catch (error) {
    // A LockgateError refuses a request on purpose; any other error is a fault of ours, which has no code of its own.
    const isRefused = error instanceof LockgateError;
    await end(isRefused ? 'refused' : 'failed', isRefused ? error.code : 'broken');
    throw error;
  }
  await end('done', null, answer);
  return answer;
}

/** The entry that is written before its change is made. */
function startOf({ who, action, object, before }: AuditedChange, atMs: number): AuditStart {
  return {
    atMs,
    actor: who.actor,
    address: who.address,
    agent: who.agent === null ? null : scrubbed(who.agent, MAX_CLIENT_CHARS),
    osUser: who.osUser === null ? null : scrubbed(who.osUser, MAX_CLIENT_CHARS),
    token: who.token,
    merchant: who.merchant ?? null,
    user: who.user ? scrubbed(who.user, MAX_NAME_CHARS) : null,
    key: who.key ? scrubbed(who.key, MAX_NAME_CHARS) : null,
    action,
    object: scrubbed(object, MAX_OBJECT_CHARS),
    before: jsonOf(before),
  };
}

/** Describes a change. A refused request may have any shape: if `describe` fails on it, the description is left out. */
function describeSafely(describe: AuditReporter, answer: unknown, object: string): ReturnType<AuditReporter> {
  try {
    return describe(answer);
  } catch {
    return { object, after: null };
  }
}

/** The details as JSON, without secrets; only its length if it is too long. */
function jsonOf(details: AuditDetails | null): string | null {
  if (details === null) return null;
  const text = scrubSecrets(JSON.stringify(details));
  return text.length <= MAX_JSON_CHARS ? text : JSON.stringify({ left_out: `${text.length} characters` });
}

function scrubbed(text: string, maxChars: number): string {
  return [...scrubSecrets(text)].slice(0, maxChars).join('');
}
