/**
 * The type of a step. An answer of `lockgate why` (interfaces.md §4) is a list of steps, each a sentence with the
 * section of the specification that it rests on. This folder makes the steps about the power model and the rules; the
 * gateway and the CLI add steps about a store or a trace.
 */

/** The sections that steps can cite: of the service specification, or of this project's own design documents. */
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
  merchants: 'interfaces.md §2',
  webhooks: 'interfaces.md §3',
  operator: 'interfaces.md §4',
});

export type Section = (typeof SECTIONS)[keyof typeof SECTIONS];

/** What a step is about, for programs. */
export const STEP_KINDS = [
  // What the answer leaves out.
  'bound',
  // The run's clock and the wall clock differ.
  'clocks',
  'finding',
  'state',
  'trigger',
  'connection',
  'refused',
  'message',
  'rule-broken',
  'rule-withdrawn',
  // `rule-kept`: one rule that the uplink complies with. `rules-kept`: the names of those that apply to every uplink.
  'rule-kept',
  'rules-kept',
  'quarantine',
  'command',
  'silence',
  // What came from the lock before and after the moment in question.
  'before',
  'after',
  'delivery',
  'attempt',
  'gateway',
  'next',
] as const;

export type StepKind = (typeof STEP_KINDS)[number];

/**
 * The clock of a step's time: the clock of the gateway or of the simulated run (protocol.md §3), the wall clock, or the
 * lock's own clock.
 */
export type StepClock = 'run' | 'wall' | 'lock';

export interface WhyStep {
  readonly kind: StepKind;
  /** Which step of its kind: a rule, a reason, an outcome, a silence. */
  readonly code: string;
  readonly sentence: string;
  readonly restsOn: Section;
  /** When it happened or will happen, ms since the epoch; null if the step is about no moment. */
  readonly atMs: number | null;
  readonly clock: StepClock;
}

/** Makes a step. Most steps use the clock of the run. */
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
