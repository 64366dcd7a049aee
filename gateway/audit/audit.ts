/**
 * The audit log: who changed what by way of the operator's interface or at the data folder, and what the gateway
 * changed by itself that an operator should be able to trace.
 *
 * A change is noted, durably, before it begins, and its outcome behind it: there is no change without an entry,
 * whatever ends the process. One transaction for both would be finer, but most changes are several (an erasure, a
 * rotated secret) and some are none (a test webhook). What the gateway does by itself is noted after it, within a
 * second.
 *
 * Nothing secret is in an entry: rows of the interface name the members that are kept, and everything that is not named
 * is left out. As a last line of defence each text is scrubbed as well.
 */
import { type Clock, type Milliseconds, Seconds, type Timer } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import type { GatewayEvents } from '../events.js';
import { scrubSecrets } from '../log/log-scrub.js';
import type {
  AuditBeginning,
  AuditEnd,
  AuditEntry,
  AuditFilter,
  AuditStore,
  AuditWho,
} from '../store/contract/audit-store.js';
import type { Store } from '../store/contract/store.js';

/** What an entry may have at most, in characters: of each JSON text, of the object's name, of what a client says. */
const JSON_MOST = 2_000;
const OBJECT_MOST = 200;
const CLIENT_MOST = 120;
/** Entries of the gateway's own that wait for their write; more are left out, and counted. */
const WAITING_MOST = 1_000;
/** Entries of one commit: it takes some 5 ms, for which pings wait. */
const WRITTEN_MOST = 200;
/** From the first that waits to the write, and the wait after a write that failed. */
const WRITE_EVERY: Milliseconds = Seconds(1);
const AFTER_FAILURE: Milliseconds = Seconds(5);

/** Members that an entry keeps of what was, or of what was asked for. None of them is a secret. */
export type AuditFacts = Readonly<Record<string, unknown>>;

/** What is about to be done. */
export interface AuditedChange {
  readonly who: AuditWho;
  readonly action: string;
  readonly object: string;
  readonly before: AuditFacts | null;
}

/** What is known of it once it is done, or refused (then `answer` is undefined). */
export type AuditReporter = (answer: unknown) => { readonly object: string; readonly after: AuditFacts | null };

export interface AuditParts {
  readonly store: Pick<Store, 'audit'>;
  readonly events: GatewayEvents;
  /** The wall's clock. */
  readonly clock: Clock;
  /** Stamps the events. */
  readonly now: () => number;
}

/** The gateway itself. */
const GATEWAY: AuditWho = { actor: 'gateway', address: null, agent: null, osUser: null, token: null };

export class Audit {
  readonly #parts: AuditParts;
  #waiting: (AuditBeginning & AuditEnd)[] = [];
  #leftOut = 0;
  #storing: Promise<void> = Promise.resolve();
  #timer: Timer | undefined;
  #isStopped = false;

  private constructor(parts: AuditParts) {
    this.#parts = parts;
  }

  /** Listens from now on; of what an earlier run began and did not end, nobody will ever know more. */
  static async start(parts: AuditParts): Promise<Audit> {
    const audit = new Audit(parts);
    await parts.store.audit.abandon();
    audit.#listen();
    return audit;
  }

  /**
   * Notes that a change begins, makes it, and notes what came of it.
   *
   * @throws what `work` throws; StoreFailure where the beginning can't be noted, and then nothing is changed
   */
  async change<T>(change: AuditedChange, work: () => Promise<T>, tell: AuditReporter): Promise<T> {
    const { store, clock } = this.#parts;
    return await makeNoted(store.audit, clock, { change, work, tell, onEnd: (entry) => this.#report(entry) });
  }

  /** Notes what was done by somebody, or by the gateway itself where nobody is named; it is written within a second. */
  note(action: string, object: string, after: AuditFacts | null, who: AuditWho = GATEWAY): void {
    const nowMs = this.#parts.clock.now();
    const beginning = beginningOf({ who, action, object, before: null }, nowMs);
    const entry = { ...beginning, outcome: 'done' as const, code: null, after: jsonOf(after), endedAtMs: nowMs };
    if (this.#waiting.length < WAITING_MOST) this.#waiting.push(entry);
    else this.#leftOut += 1;
    this.#report(entry);
    this.#arm();
  }

  /** What is kept, up to this moment where the store can write, the newest first. */
  async list(filter: AuditFilter): Promise<AuditEntry[]> {
    await this.store();
    return await this.#parts.store.audit.list(filter);
  }

  /** Writes what waits. It never rejects: what can't be written waits on. */
  store(): Promise<void> {
    this.#storing = this.#storing.then(() => this.#storeWaiting());
    return this.#storing;
  }

  /** Keeps what waits, if the store lets it. To be called when nothing more happens. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.store();
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

  async #storeWaiting(): Promise<void> {
    while (this.#waiting.length > 0) {
      const entries = this.#waiting.slice(0, WRITTEN_MOST);
      try {
        await this.#parts.store.audit.write(entries);
      } catch {
        this.#arm(AFTER_FAILURE);
        return;
      }
      this.#waiting = this.#waiting.slice(entries.length);
    }
    if (this.#leftOut === 0) return;
    const count = this.#leftOut;
    this.#leftOut = 0;
    this.note('audit.left-out', '', { count });
  }

  #arm(delay = WRITE_EVERY): void {
    if (this.#isStopped) return;
    this.#timer ??= this.#parts.clock.after(delay, () => {
      this.#timer = undefined;
      void this.store();
    });
  }

  #report({
    actor,
    address,
    osUser,
    action,
    object,
    outcome,
    code,
  }: AuditBeginning & Omit<AuditEnd, 'endedAtMs'>): void {
    const atMs = this.#parts.now();
    this.#parts.events.emit('audited', { atMs, actor, address, osUser, action, object, outcome, code });
  }
}

/** A change that is to be noted. */
export interface NotedWork<T> {
  readonly change: AuditedChange;
  readonly work: () => Promise<T>;
  readonly tell: AuditReporter;
  readonly onEnd?: (entry: AuditBeginning & AuditEnd) => void;
}

/**
 * Makes a change and notes it, for those who have a store and no gateway: who works on a data folder by themselves.
 *
 * @throws what `work` throws; StoreFailure where the beginning can't be noted, and then nothing is changed
 */
export async function makeNoted<T>(store: AuditStore, clock: Clock, noted: NotedWork<T>): Promise<T> {
  const { change, work, tell, onEnd } = noted;
  const beginning = beginningOf(change, clock.now());
  const id = await store.begin(beginning);
  const end = async (outcome: AuditEnd['outcome'], code: string | null, answer?: unknown): Promise<void> => {
    const told = toldSafely(tell, answer, change.object);
    const object = cleaned(told.object, OBJECT_MOST);
    const ended = { outcome, code, object, after: jsonOf(told.after), endedAtMs: clock.now() };
    // What is done is done: whoever asked shall hear of that, and the entry says that its end is unknown.
    await store.end(id, ended).catch(() => undefined);
    onEnd?.({ ...beginning, ...ended });
  };
  try {
    const answer = await work();
    await end('done', null, answer);
    return answer;
  } catch (error) {
    const isRefused = error instanceof LockgateError;
    await end(isRefused ? 'refused' : 'failed', isRefused ? error.code : 'broken');
    throw error;
  }
}

/** An entry as it begins. */
function beginningOf({ who, action, object, before }: AuditedChange, atMs: number): AuditBeginning {
  return {
    atMs,
    actor: who.actor,
    address: who.address,
    agent: who.agent === null ? null : cleaned(who.agent, CLIENT_MOST),
    osUser: who.osUser === null ? null : cleaned(who.osUser, CLIENT_MOST),
    token: who.token,
    action,
    object: cleaned(object, OBJECT_MOST),
    before: jsonOf(before),
  };
}

/** A request that was refused may be of any shape: what can't be told of it is left out. */
function toldSafely(tell: AuditReporter, answer: unknown, object: string): ReturnType<AuditReporter> {
  try {
    return tell(answer);
  } catch {
    return { object, after: null };
  }
}

function jsonOf(told: AuditFacts | null): string | null {
  if (told === null) return null;
  const text = scrubSecrets(JSON.stringify(told));
  return text.length <= JSON_MOST ? text : JSON.stringify({ left_out: `${text.length} characters` });
}

function cleaned(text: string, most: number): string {
  return [...scrubSecrets(text)].slice(0, most).join('');
}
