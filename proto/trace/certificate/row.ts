/**
 * The types of a certificate, which says for each requirement whether recorded traces show it to hold (protocol.md §3):
 * its rows, and the verdict on each. Plain data, no code.
 */
import type { EffectiveState } from '../../power/model.js';
import type { KnownReason } from '../../wire/reasons.js';

/** One requirement of the specification or the protocol. */
export interface CertificateRow {
  /** Its id in kebab-case. It is stable: build servers name it in `trace check --require`. */
  readonly row: string;
  /** The heading under which a certificate lists it. */
  readonly group: string;
  /** The state of the power model that the requirement is about; null if it holds in all states. */
  readonly state: EffectiveState | null;
  /** What must hold, as one sentence. */
  readonly says: string;
  /** The section that requires it. */
  readonly section: string;
  /** What in a trace shows that it holds, as a phrase. */
  readonly seenWhen: string;
  /** The judge's rules whose findings make the row fail. */
  readonly failsBy: readonly string[];
  /** Rules whose warnings are listed but do not make the row fail, because the network may be the cause. */
  readonly notedBy?: readonly string[];
  /** If present, only findings about pings with one of these reasons count. */
  readonly reasons?: readonly KnownReason[];
}

export type RowVerdict = 'PASS' | 'FAIL' | 'NOT SEEN';

/** A finding that made a row fail, or that a row lists as a warning. */
export interface RowFinding {
  /** The line of the trace, as `FILE:LINE`. */
  readonly at: string;
  readonly mac: string;
  readonly rule: string;
  readonly message: string;
}

/** The verdict on a row, with its evidence. */
export interface JudgedRow extends CertificateRow {
  readonly verdict: RowVerdict;
  /** How often the requirement was seen to hold. */
  readonly seen: number;
  /** The first lines that show it, as `FILE:LINE`. */
  readonly lines: readonly string[];
  /** How many findings made the row fail, and the first of them. */
  readonly failures: number;
  readonly firstFailures: readonly RowFinding[];
  /** How many warnings are listed, and the first of them. */
  readonly noted: number;
  readonly firstNoted: readonly RowFinding[];
}
