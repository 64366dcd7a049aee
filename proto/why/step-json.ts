/** A step of `why` as JSON, the same from the gateway and from a trace (interfaces.md §4). Pure. */
import { citationLink, ruleLink } from '../citations.js';
import { findRule } from '../power/rules.js';
import { formatDate, isDatable } from '../wire/ping-json.js';
import { SECTIONS, type Section, type StepClock, type StepKind, type WhyStep } from './step.js';

/** A step as JSON. */
export interface WhyStepJson {
  /** The printed label, such as `rule-broken`. */
  readonly kind: StepKind;
  /** A finer code for programs. */
  readonly code: string;
  readonly sentence: string;
  /** The section that the sentence follows from, such as `protocol.md §3`. */
  readonly rests_on: Section;
  /** Where that section is: a path from lockgate's folder with an anchor; for a rule, its row. */
  readonly link: string;
  /** RFC 3339; null if the step is about no moment. */
  readonly at: string | null;
  /** The clock of `at`. */
  readonly clock: StepClock;
}

/** Converts a step. */
export function stepToJson({ kind, code, sentence, restsOn, atMs, clock }: WhyStep): WhyStepJson {
  const isAboutRule = restsOn === SECTIONS.judge && findRule(code) !== undefined;
  const link = isAboutRule ? ruleLink(code) : citationLink(restsOn);
  const at = atMs !== null && isDatable(atMs) ? formatDate(atMs) : null;
  return { kind, code, sentence, rests_on: restsOn, link, at, clock };
}
