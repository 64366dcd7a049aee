/**
 * What an answer to "why" consists of (interfaces.md §4, `lockgate why`): steps, each a plain sentence with the section
 * that it rests on. The files of this room make the sentences about the model and the rules from the judge's view of
 * the lock; the gateway and the CLI add those about a store or a trace.
 */

/** The sections that steps rest on: of the service specification, or of the project's own protocol and interfaces. */
export const SECTIONS = Object.freeze({
  service: 'specification, What the service does',
  ping: 'specification, Ping (device message)',
  reasons: 'specification, Ping reason values',
  lockState: 'specification, Device lock state',
  power: 'specification, Device power modes and switches',
  endpoints: 'specification, Endpoints',
  events: 'specification, Events',
  limits: 'specification, Limits',
  wire: 'protocol.md §1',
  model: 'protocol.md §2',
  judge: 'protocol.md §3',
  traces: 'protocol.md §4',
  fairness: 'interfaces.md §2',
  webhooks: 'interfaces.md §3',
  operator: 'interfaces.md §4',
});

export type Section = (typeof SECTIONS)[keyof typeof SECTIONS];

/** Which link of the chain a step is, for programs. */
export const STEP_KINDS = [
  'bound',
  'clocks',
  'finding',
  'state',
  'trigger',
  'connection',
  'refused',
  'message',
  'rule-broken',
  'rule-withdrawn',
  'rule-kept',
  'rules-kept',
  'quarantine',
  'command',
  'silence',
  'before',
  'after',
  'delivery',
  'attempt',
  'gateway',
  'next',
] as const;

export type StepKind = (typeof STEP_KINDS)[number];

/** By which clock a step's time is: that of the run (protocol.md §3), the wall's, or the lock's own. */
export type StepClock = 'run' | 'wall' | 'lock';

export interface WhyStep {
  readonly kind: StepKind;
  /** Within the kind, which row of a closed table it is: a rule, a reason, an outcome, a silence. */
  readonly code: string;
  readonly sentence: string;
  readonly restsOn: Section;
  /** When it happened or will, ms since the epoch; null where it is about no moment. */
  readonly atMs: number | null;
  readonly clock: StepClock;
}

/** A step by the run's clock, which most are by. */
export function step(
  kind: StepKind,
  code: string,
  restsOn: Section,
  sentence: string,
  atMs: number | null = null,
  clock: StepClock = 'run',
): WhyStep {
  return { kind, code, sentence, restsOn, atMs, clock };
}
