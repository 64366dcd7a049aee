/**
 * The audit log in the store. The promises of store.ts hold: a method that writes resolves after the write is on the
 * disk, and nothing of a rejected call remains. Times are ms since the epoch, wall-clock time.
 */

/** How many entries are retained; beyond it the oldest are deleted. Usual entries take some 30 MB. */
export const AUDIT_RETAINED = 100_000;

/**
 * Who did it: somebody with the operator's token; somebody at the data folder itself, with no token and maybe no
 * gateway running; or the gateway on its own.
 */
export const AUDIT_ACTORS = ['operator', 'owner', 'gateway'] as const;

export type AuditActor = (typeof AUDIT_ACTORS)[number];

/**
 * The outcome. It is `begun` until it is known, and `unknown` where the gateway ended before: then the change may or
 * may not have been made. `refused` changed nothing; `failed` is our own fault.
 */
export const AUDIT_OUTCOMES = ['begun', 'done', 'refused', 'failed', 'unknown'] as const;

export type AuditOutcome = (typeof AUDIT_OUTCOMES)[number];

/** Who asked, as far as is known. All but the address and the token is the client's own claim. */
export interface AuditWho {
  readonly actor: AuditActor;
  /** Of the connection; null where there was none. */
  readonly address: string | null;
  /** The program, as `User-Agent` has it. */
  readonly agent: string | null;
  /** The user of the operating system, as the CLI sends it. */
  readonly osUser: string | null;
  /** The first characters of the token's hash. */
  readonly token: string | null;
}

/** An action, before its outcome is known. */
export interface AuditBeginning extends AuditWho {
  readonly atMs: number;
  /** As `device.set`. */
  readonly action: string;
  /** What it concerns: a MAC, a name, an id; empty where it concerns nothing in particular. */
  readonly object: string;
  /** How it was before: a JSON object, or null where that is not known or does not matter. */
  readonly before: string | null;
}

/** The outcome of an action. */
export interface AuditEnd {
  readonly outcome: Exclude<AuditOutcome, 'begun'>;
  /** An error code. Not the sentence, which may quote what was given. */
  readonly code: string | null;
  /** The object's name, which may have been assigned by the action. */
  readonly object: string;
  /** The new state, or what was asked for: a JSON object. */
  readonly after: string | null;
  readonly endedAtMs: number;
}

export interface AuditEntry extends AuditBeginning {
  readonly id: number;
  readonly outcome: AuditOutcome;
  readonly code: string | null;
  readonly after: string | null;
  /** Null while the action runs, and where its end is unknown. */
  readonly endedAtMs: number | null;
}

/** Selects entries; a member that is left out selects all. */
export interface AuditFilter {
  /** From this time on. */
  readonly sinceMs?: number | undefined;
  /** This action, or all of a group: `device` has `device.set` too. */
  readonly action?: string | undefined;
  readonly object?: string | undefined;
  /** Only those before the entry of this id. */
  readonly beforeId?: number | undefined;
  readonly limit: number;
}

export interface AuditStore {
  /** Records the start of an action and returns the entry's id. Retains {@link AUDIT_RETAINED} entries. */
  begin(beginning: AuditBeginning): Promise<number>;
  /** Records the outcome. */
  end(id: number, end: AuditEnd): Promise<void>;
  /** Records finished actions, in one commit. */
  write(entries: readonly (AuditBeginning & AuditEnd)[]): Promise<void>;
  /** Marks every `begun` entry as `unknown`. To be called once, after the store is opened. */
  abandon(): Promise<void>;
  /** The newest first. */
  list(filter: AuditFilter): Promise<AuditEntry[]>;
}
