/**
 * The audit log in the store: who changed what, and with what outcome. As in store.ts, a method that writes resolves
 * after the write is on the disk, and a rejected call has changed nothing. Times are ms since the epoch, wall-clock
 * time.
 */

/**
 * Maximum number of retained entries of operators, owners and the gateway, some 30 MB; exceeded by a few until the next
 * deletion. Entries of merchants don't count, so that no merchant can cause the deletion of these.
 */
export const MAX_AUDIT_ENTRIES = 100_000;

/** Maximum number of retained entries of one merchant's users and keys, and of all merchants' together. */
export const MAX_AUDIT_ENTRIES_PER_MERCHANT = 10_000;
export const MAX_AUDIT_ENTRIES_OF_MERCHANTS = 500_000;

/**
 * Who acted: `operator`, a person or program with an operator's token; `owner`, with access to the data folder itself
 * and no token; `gateway`, which acts automatically; `user`, a user of a merchant, on the dashboard or with an
 * invitation; or `key`, a merchant's program with an API key.
 */
export const AUDIT_ACTORS = ['operator', 'owner', 'gateway', 'user', 'key'] as const;

export type AuditActor = (typeof AUDIT_ACTORS)[number];

/**
 * The outcome of an action. `begun`: not known yet. `unknown`: the gateway stopped first, so the change may or may not
 * have been made. `refused`: nothing was changed. `failed`: an error of lockgate itself.
 */
export const AUDIT_OUTCOMES = ['begun', 'done', 'refused', 'failed', 'unknown'] as const;

export type AuditOutcome = (typeof AUDIT_OUTCOMES)[number];

/** A merchant, with its name at present. */
export interface NamedMerchant {
  readonly id: number;
  readonly name: string;
}

/** Who asked for an action. `agent` and `osUser` are only what the client says of itself. */
export interface AuditWho {
  readonly actor: AuditActor;
  /** The address of the connection; null if there was none. */
  readonly address: string | null;
  /** The client program, from `User-Agent`. */
  readonly agent: string | null;
  /** The user of the operating system, as the CLI sends it. */
  readonly osUser: string | null;
  /**
   * An operator's named token, or the first characters of the hash of the data folder's token; the public id of a
   * merchant's API key.
   */
  readonly token: string | null;
  /** The merchant of the acting user or API key; absent for others. */
  readonly merchant?: NamedMerchant | null;
  /** The name of the acting user of a merchant. */
  readonly user?: string | null;
  /** The name of the API key that was used. */
  readonly key?: string | null;
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
  /** The name of the merchant whose data an operator changed, for {@link AuditFilter}. */
  readonly changedMerchant?: string | undefined;
}

export interface AuditEntry extends AuditStart {
  readonly id: number;
  /** The merchant who acted, or whose data was changed; null if that is none or unknown. */
  readonly merchant: NamedMerchant | null;
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
  /** Only what this merchant's users and keys did, and changes by others that name the merchant: its name. */
  readonly merchant?: string | undefined;
  /** Only entries from this id on. */
  readonly fromId?: number | undefined;
  /** Only entries with a smaller id. */
  readonly beforeId?: number | undefined;
  readonly limit: number;
}

export interface AuditStore {
  /** Records the start of an action and returns the entry's id. Sometimes deletes entries beyond the maximums. */
  begin(start: AuditStart): Promise<number>;
  /** Records the outcome. */
  end(id: number, result: AuditResult): Promise<void>;
  /** Records finished actions, in one commit. */
  write(entries: readonly (AuditStart & AuditResult)[]): Promise<void>;
  /**
   * Marks as `unknown` every `begun` entry of a gateway that no longer runs. To be called after the store is opened,
   * and also later if several gateways share the store.
   */
  abandon(): Promise<void>;
  /** Returns entries, newest first. @throws LockgateError `no-such-merchant` */
  list(filter: AuditFilter): Promise<AuditEntry[]>;
}
