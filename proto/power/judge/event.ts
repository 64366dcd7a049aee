/**
 * The types of the judge (judge.ts), which checks what a lock does against the rules: the events that it takes, and the
 * findings and withdrawals that it returns (protocol.md §3).
 */
import type { Command, Source, Uplink } from '../../wire/ping.js';
import { FIRST_LIFE } from '../../wire/uplink-life.js';
import { type RuleName, type Severity, severityOf } from '../rules.js';

/**
 * Identifies an uplink of a lock and gives its position in the order of protocol.md §1: credential, life, boot,
 * sequence. A *life* is the time between two wipes of the lock's flash; after each wipe, boots count from 1 again. The
 * life determines the order but is not part of the identity.
 */
export interface UplinkKey {
  /** The age order of the credential with which the uplink was sent: a newer credential has a greater number. */
  readonly credential: number;
  /** The life of the lock in which the uplink was made (uplink-life.ts); absent for the first. */
  readonly life?: number | undefined;
  /** How often the lock has booted, and the number of the uplink since then, both from 1. */
  readonly boot: number;
  readonly sequence: number;
}

/**
 * Why a connection ended: the lock closed it; it dropped; nothing came for too long (keepalive); the lock connected
 * again (takeover); or the gateway closed it (stop, revocation, overload).
 */
export type DisconnectCause = 'closed' | 'dropped' | 'keepalive' | 'takeover' | 'gateway';

/**
 * Whether an uplink's key was used before: `repeat` with the same content, `conflict` with other content. The caller
 * knows, because it stores the uplinks; the judge's own memory of a lock (its `Belief`) is too small for that.
 */
export type UplinkNovelty = 'new' | 'repeat' | 'conflict';

interface Timed {
  /**
   * By the clock of the gateway or of the simulated run, ms since the epoch. Events come in the order of time; if one
   * is earlier than its predecessor, the judge uses the predecessor's time.
   */
  readonly atMs: number;
}

export interface ConnectEvent extends Timed {
  readonly type: 'connect';
  readonly source: Source;
}

export interface DisconnectEvent extends Timed {
  readonly type: 'disconnect';
  readonly source: Source;
  readonly cause: DisconnectCause;
}

export interface UplinkEvent extends Timed {
  readonly type: 'uplink';
  readonly source: Source;
  /** The age order of the credential, which {@link UplinkKey} explains. */
  readonly credential: number;
  /** Which life of the lock it was made in; absent for the first. */
  readonly life?: number | undefined;
  readonly novelty: UplinkNovelty;
  readonly uplink: Uplink;
}

/** A command was sent to the lock, no matter over which connection. */
export interface CommandEvent extends Timed {
  readonly type: 'command';
  readonly id: number;
  readonly command: Command;
  /** When the command expires, ms since the epoch; absent where that is not known, which counts as never. */
  readonly expiresMs?: number | undefined;
}

/** Only time passed. */
export interface TickEvent extends Timed {
  readonly type: 'tick';
}

/** The gateway started or stopped listening. */
export interface GatewayEvent extends Timed {
  readonly type: 'gateway';
  readonly state: 'start' | 'stop';
}

export type JudgeEvent = ConnectEvent | DisconnectEvent | UplinkEvent | CommandEvent | TickEvent | GatewayEvent;

/** One breach of one rule, a violation or a warning. A ping with findings is still stored and delivered. */
export interface Finding {
  readonly rule: RuleName;
  readonly severity: Severity;
  /** A sentence for users, with the values. */
  readonly message: string;
  /** The lock's MAC, in the form that was passed to `newBelief` (belief.ts). */
  readonly mac: string;
  /** The uplink at fault, which may be earlier than the event's uplink; null if the finding is not about an uplink. */
  readonly about: UplinkKey | null;
  /** When it was found, ms since the epoch. */
  readonly atMs: number;
}

/**
 * Takes back an earlier finding because a late uplink shows that it was wrong. Rule, lock and uplink identify the
 * finding.
 */
export interface Withdrawal {
  readonly rule: RuleName;
  readonly mac: string;
  readonly about: UplinkKey;
}

/**
 * The outcome of judging an event. The caller must apply withdrawals before findings: one event may withdraw a finding
 * and make the same finding again for another reason.
 */
export interface Verdict {
  readonly withdrawn: Withdrawal[];
  readonly findings: Finding[];
}

/** An empty verdict, for the judge to fill. */
export function newVerdict(): Verdict {
  return { withdrawn: [], findings: [] };
}

/** Makes a finding. */
export function finding(rule: RuleName, mac: string, about: UplinkKey | null, atMs: number, message: string): Finding {
  return { rule, severity: severityOf(rule), message, mac, about, atMs };
}

/** Less than 0 if `a` comes before `b` in the order of protocol.md §1, 0 if they are the same key. */
export function compareKeys(a: UplinkKey, b: UplinkKey): number {
  return (
    a.credential - b.credential ||
    (a.life ?? FIRST_LIFE) - (b.life ?? FIRST_LIFE) ||
    a.boot - b.boot ||
    a.sequence - b.sequence
  );
}

/** Makes a key. It omits the first life, because most locks have no other. */
export function uplinkKey(credential: number, life: number, boot: number, sequence: number): UplinkKey {
  return life === FIRST_LIFE ? { credential, boot, sequence } : { credential, life, boot, sequence };
}
