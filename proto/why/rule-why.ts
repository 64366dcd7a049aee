/** The type of the rows of rules.ts and must-rules.ts, which explain each rule of the judge. Pure. */
import type { UplinkEvent } from '../power/judge/event.js';
import type { PowerModel } from '../power/model.js';
import type { CommandAck, Ping } from '../wire/ping.js';
import type { JudgedHistory } from './history.js';
import type { Section } from './step.js';

/** An uplink, and everything that is needed to explain why it complies with a rule. */
export interface RuleCase {
  readonly model: PowerModel;
  readonly event: UplinkEvent;
  readonly body: Ping | CommandAck;
  readonly history: JudgedHistory;
}

/**
 * What a rule applies to: `each` uplink, each of the lock's `own` uplinks, a `connection`, `time` passing, or
 * the `world`, which `why` does not know. A function says whether it applies to one of the lock's own uplinks.
 */
type RuleScope = 'each' | 'own' | 'connection' | 'time' | 'world' | ((ruleCase: RuleCase) => boolean);

/** A row of the table. */
export interface RuleWhy {
  /** Why the rule exists. */
  readonly because: string;
  /** The section that `because` rests on; protocol.md §3 defines the rule itself. */
  readonly restsOn: Section;
  readonly appliesTo: RuleScope;
  /** Why the uplink complies with the rule. Present if `appliesTo` is a function. */
  readonly whyComplies?: (ruleCase: RuleCase) => string;
}

/** Whether the uplink is a ping with one of the reasons. */
export const isReason =
  (...reasons: readonly string[]) =>
  ({ body }: RuleCase): boolean =>
    body.kind !== 'ack' && reasons.includes(body.reason);
