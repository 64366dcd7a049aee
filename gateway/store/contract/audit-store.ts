/**
 * What the audit log asks of the store. The promises of store.ts hold: a method that writes resolves after the write is
 * on the disk, and nothing of a rejected call is kept. Times are ms since the epoch, by the wall's clock.
 */

/** How many entries are kept: of more, the oldest go. Some 30 MB where each says as much as most do. */
export const AUDIT_RETAINED = 100_000;

/**
 * Who did it: somebody with the operator's token; somebody at the data folder itself, with no token and maybe no
 * gateway running; or the gateway on its own.
 */
export const AUDIT_ACTORS = ['operator', 'owner', 'gateway'] as const;

export type AuditActor = (typeof AUDIT_ACTORS)[number];

/**
 * What came of it. It is `begun` until that is known, and `unknown` where the gateway ended before: then the change may
 * have been made or not. `refused` changed nothing; `failed` is our own fault.
 */
export const AUDIT_OUTCOMES = ['begun', 'done', 'refused', 'failed', 'unknown'] as const;

export type AuditOutcome = (typeof AUDIT_OUTCOMES)[number];

/** Who asked, as far as it is known. All but the address and the token is what the client says of itself. */
export interface AuditWho {
  readonly actor: AuditActor;
  /** Of the connection; null where there was none. */
  readonly address: string | null;
  /** The program, as `User-Agent` has it. */
  readonly agent: string | null;
  /** The user of the operating system, as the command line tells it. */
  readonly osUser: string | null;
  /** Which token it was, by the beginning of its hash. */
  readonly token: string | null;
}

/** What is done, before anything comes of it. */
export interface AuditBeginning extends AuditWho {
  readonly atMs: number;
  /** As `device.set`. */
  readonly action: string;
  /** What it is done to: a MAC, a name, an id; empty where it is done to nothing in particular. */
  readonly object: string;
  /** How it was before: a JSON object, or null where that is not known or does not matter. */
  readonly before: string | null;
}

/** What came of it. */
export interface AuditEnd {
  readonly outcome: Exclude<AuditOutcome, 'begun'>;
  /** Why it was refused or failed, for programs; no sentence, which may quote what was given. */
  readonly code: string | null;
  /** The object by its name, where that was made on the way. */
  readonly object: string;
  /** What it was changed to, or what was asked for: a JSON object. */
  readonly after: string | null;
  readonly endedAtMs: number;
}

export interface AuditEntry extends AuditBeginning {
  readonly id: number;
  readonly outcome: AuditOutcome;
  readonly code: string | null;
  readonly after: string | null;
  /** Null while it is under way, and where its end is unknown. */
  readonly endedAtMs: number | null;
}

/** Which entries; a member that is left out lets everything through. */
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
  /** Notes that something is about to be done; answers the entry's id. Beyond {@link AUDIT_RETAINED} the oldest go. */
  begin(beginning: AuditBeginning): Promise<number>;
  /** Notes what came of it. */
  end(id: number, end: AuditEnd): Promise<void>;
  /** Notes what is over and done, in one commit. */
  write(entries: readonly (AuditBeginning & AuditEnd)[]): Promise<void>;
  /** What is `begun` is `unknown` from now on. To be called by who has just opened the store. */
  abandon(): Promise<void>;
  /** The newest first. */
  list(filter: AuditFilter): Promise<AuditEntry[]>;
}
