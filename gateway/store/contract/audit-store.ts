/**
 * The audit log in the store: who changed what, and with what outcome. As in store.ts, a method that writes resolves
 * after the write is on the disk, and a rejected call has changed nothing. Times are ms since the epoch, wall-clock
 * time.
 */

/** The number of entries retained, some 30 MB; older entries are deleted. */
export const MAX_AUDIT_ENTRIES = 100_000;

/**
 * Who acted: `operator`, a person or program with an operator's token; `owner`, with access to the data folder itself
 * and no token; or `gateway`, which acts automatically.
 */
export const AUDIT_ACTORS = ['operator', 'owner', 'gateway'] as const;

export type AuditActor = (typeof AUDIT_ACTORS)[number];

/**
 * The outcome of an action. `begun`: not known yet. `unknown`: the gateway stopped first, so the change may or may not
 * have been made. `refused`: nothing was changed. `failed`: an error of lockgate itself.
 */
export const AUDIT_OUTCOMES = ['begun', 'done', 'refused', 'failed', 'unknown'] as const;

export type AuditOutcome = (typeof AUDIT_OUTCOMES)[number];

/** Who asked for an action. Only the address and the token are verified; the client states the other members. */
export interface AuditWho {
  readonly actor: AuditActor;
  /** The address of the connection; null if there was none. */
  readonly address: string | null;
  /** The client program, from `User-Agent`. */
  readonly agent: string | null;
  /** The user of the operating system, as the CLI sends it. */
  readonly osUser: string | null;
  /** A named token's name, or the first characters of the hash of the data folder's token. */
  readonly token: string | null;
}

/** An action, before its outcome is known. */
export interface AuditStart extends AuditWho {
  readonly atMs: number;
  /** The action's name, for example `device.set`. */
  readonly action: string;
  /** The object of the action: a MAC, a name or an id; empty if the action has no particular object. */
  readonly object: string;
  /** The object's state before the action: a JSON object, or null if that is unknown or irrelevant. */
  readonly before: string | null;
}

/** The outcome of an action. */
export interface AuditResult {
  readonly outcome: Exclude<AuditOutcome, 'begun'>;
  /** The error code. The error's sentence is not stored, since it may quote the caller's input. */
  readonly code: string | null;
  /** The object's name; the action may have assigned it. */
  readonly object: string;
  /** The new state, or the requested change: a JSON object. */
  readonly after: string | null;
  readonly endedAtMs: number;
}

export interface AuditEntry extends AuditStart {
  readonly id: number;
  readonly outcome: AuditOutcome;
  readonly code: string | null;
  readonly after: string | null;
  /** Null while the action runs, and if its outcome is unknown. */
  readonly endedAtMs: number | null;
}

/** Selects entries; a member that is left out selects all. */
export interface AuditFilter {
  /** Only entries from this time on. */
  readonly sinceMs?: number | undefined;
  /** One action (`device.set`), or all actions of a group (`device`). */
  readonly action?: string | undefined;
  readonly object?: string | undefined;
  /** Only entries with a smaller id. */
  readonly beforeId?: number | undefined;
  readonly limit: number;
}

export interface AuditStore {
  /** Records the start of an action and returns the entry's id. Deletes entries beyond {@link MAX_AUDIT_ENTRIES}. */
  begin(start: AuditStart): Promise<number>;
  /** Records the outcome. */
  end(id: number, result: AuditResult): Promise<void>;
  /** Records finished actions, in one commit. */
  write(entries: readonly (AuditStart & AuditResult)[]): Promise<void>;
  /** Marks every `begun` entry as `unknown`. Called once, after the store is opened. */
  abandon(): Promise<void>;
  /** Returns entries, newest first. */
  list(filter: AuditFilter): Promise<AuditEntry[]>;
}
