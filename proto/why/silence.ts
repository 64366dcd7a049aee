/**
 * Why nothing comes from a lock at a given moment, and whether the model expects that (protocol.md §3, presence). The
 * table has a row for each kind of silence, and one for a lock that is not silent. Pure.
 */
import { Days, type Milliseconds, Minutes } from '../clock.js';
import type { Belief } from '../power/judge/belief.js';
import { type Lapse, silenceLapses } from '../power/judge/lapse.js';
import { presence } from '../power/judge/presence.js';
import { NEVER, rowOfState, windowPhase } from '../power/judge/state.js';
import { nextExpiryMs, possibleCauseText } from '../power/judge/switch.js';
import { describeSpan, describeTime } from '../power/judge/words.js';
import type { PowerModel } from '../power/model.js';
import type { RuleName } from '../power/rules.js';
import type { HighWindow } from '../wire/ping.js';
import { highWindowToJson } from '../wire/ping-json.js';
import { SECTIONS, type Section, step, type WhyStep } from './step.js';

/** All kinds of silence. `silenceOf` determines which one applies. */
export const SILENCES = [
  'online',
  'gateway-down',
  'never-seen',
  'airplane',
  'low-battery',
  'suspended',
  'late-period',
  'late-window',
  'late-recovery',
  'due-recovery',
  'due-window',
  'asleep-window',
  'due-period',
  'asleep-period',
  'asleep-first',
] as const;

export type Silence = (typeof SILENCES)[number];

/**
 * What the sentences are made from. The belief is what the judge concludes about the lock; a lapse is a silence that
 * makes a lock late once it has lasted too long. Times are ms since the epoch, by the judge's clock; `NEVER`, which is
 * later than each of them, stands for a time that does not come.
 */
interface SilenceInput {
  readonly model: PowerModel;
  readonly belief: Belief;
  readonly nowMs: number;
  readonly lapses: readonly Lapse[];
}

/** How to explain one kind of silence. */
interface SilenceRow {
  readonly sentence: (input: SilenceInput) => string;
  readonly restsOn: Section;
  /** When the silence ends or becomes late, ms since the epoch, if that is known. */
  readonly atMs?: (input: SilenceInput) => number;
}

/** The sentences, in the order of {@link SILENCES}. Where `?? 0` follows a time, that kind of silence always has it. */
export const SILENCE_WHY: Readonly<Record<Silence, SilenceRow>> = Object.freeze({
  online: {
    sentence: ({ belief }) => `Connected, since ${describeTime(belief.connectedSinceMs)}: not silent at all.`,
    restsOn: SECTIONS.judge,
  },
  'gateway-down': {
    sentence: () =>
      'The gateway was not listening then, so nothing could arrive; silence counts only while it listens.',
    restsOn: SECTIONS.judge,
  },
  'never-seen': {
    sentence: () => 'This lock had never connected: nothing is expected before its first connection.',
    restsOn: SECTIONS.judge,
  },
  airplane: {
    sentence: ({ belief }) =>
      `In airplane mode since ${describeTime(belief.stateSinceMs)}: all cellular and GPS functionality is off, and ` +
      'it can only be switched on again at the lock. It is not late.',
    restsOn: SECTIONS.power,
  },
  'low-battery': {
    sentence: ({ belief }) =>
      `Low battery (${belief.batteryPercent} %) since ${describeTime(belief.stateSinceMs)}: below 10 % only theft ` +
      'tracking works, so it is silent until it is moved or charged. It is not late.',
    restsOn: SECTIONS.power,
  },
  suspended: {
    sentence: ({ belief }) =>
      `A command to switch airplane mode on was sent at ${describeTime(belief.suspendedSinceMs ?? 0)} and is not ` +
      `acknowledged: the silence was requested, so it does not count as late${suspendedUntil(belief)}.`,
    restsOn: SECTIONS.judge,
  },
  'late-period': lateRow('period-overdue', ({ belief }) => `no daily ping for 25 h, in ${belief.state}`),
  'late-window': lateRow('window-offline', () => 'in HIGH and not connected for 10 min of its window'),
  'late-recovery': lateRow('recovery-offline', () => 'in RECOVERY and not connected for 10 min'),
  'due-recovery': {
    sentence: (input) => `In RECOVERY, which keeps the connection at all times: it is due now, and ${lateFrom(input)}.`,
    restsOn: SECTIONS.power,
    atMs: (input) => lapseOf(input, 'recovery-offline').dueMs,
  },
  'due-window': {
    sentence: (input) => {
      const window = windowText(input.belief.highWindow);
      return `In HIGH, inside its window ${window}: it is due now, and ${lateFrom(input)}.`;
    },
    restsOn: SECTIONS.power,
    atMs: (input) => lapseOf(input, 'window-offline').dueMs,
  },
  'asleep-window': {
    sentence: (input) =>
      `Asleep, as the model expects: in HIGH its window ${windowText(input.belief.highWindow)} is closed. It is due ` +
      `at ${describeTime(windowOpensMs(input))}, when the window opens, and ${lateFrom(input)}.`,
    restsOn: SECTIONS.power,
    atMs: windowOpensMs,
  },
  'due-period': {
    sentence: (input) =>
      `Its last daily ping came at ${describeTime(input.belief.lastPeriodMs ?? 0)}, a day ago: the next is due now, ` +
      `and ${lateFrom(input)}.`,
    restsOn: SECTIONS.limits,
    atMs: (input) => lapseOf(input, 'period-overdue').dueMs,
  },
  'asleep-period': {
    sentence: (input) =>
      `Asleep, as the model expects in ${input.belief.state}: its last daily ping came at ` +
      `${describeTime(input.belief.lastPeriodMs ?? 0)}, so the next is due by ${describeTime(nextPeriodMs(input))}, ` +
      `and ${lateFrom(input)}.`,
    restsOn: SECTIONS.limits,
    atMs: nextPeriodMs,
  },
  'asleep-first': {
    sentence: (input) =>
      `Asleep, as the model expects in ${input.belief.state}: no daily ping has come from it yet, and ` +
      `${lateFrom(input)}.`,
    restsOn: SECTIONS.limits,
    atMs: (input) => lapseOf(input, 'period-overdue').dueMs,
  },
});

function suspendedUntil(belief: Belief): string {
  const expiryMs = nextExpiryMs(belief);
  return expiryMs === NEVER ? '' : ` until the command expires at ${describeTime(expiryMs)}`;
}

/** The row of a lock that is late by a rule. @param what says in a few words what is missing */
function lateRow(rule: Lapse['rule'], what: (input: SilenceInput) => string): SilenceRow {
  const sentence = (input: SilenceInput): string => {
    const { dueMs } = lapseOf(input, rule);
    const since = `Late since ${describeTime(dueMs)}, for ${describeSpan(input.nowMs - dueMs)}`;
    return `${since}: ${what(input)}, ${countedFrom(input, rule)}.${possibleCauseText(input.belief)}`;
  };
  return { sentence, restsOn: SECTIONS.judge, atMs: (input) => lapseOf(input, rule).dueMs };
}

function lapseOf({ lapses }: SilenceInput, rule: Lapse['rule']): Lapse {
  return lapses.find((lapse) => lapse.rule === rule) ?? { rule, sinceMs: NEVER, dueMs: NEVER };
}

/** After which time the lock counts as late, by which rule, and when the count starts. */
function lateFrom(input: SilenceInput): string {
  const first = input.lapses.filter(({ dueMs }) => dueMs < NEVER).sort((a, b) => a.dueMs - b.dueMs)[0];
  if (first === undefined) return 'nothing makes it late';
  return `it counts as late after ${describeTime(first.dueMs)} (${first.rule}), ${countedFrom(input, first.rule)}`;
}

/**
 * When the count of a silence starts, and with which event (protocol.md §3). The count starts at the latest of several
 * events (`sinceMs` in lapse.ts), so the event is known by its time; of two at the same time the first one is named.
 */
function countedFrom(input: SilenceInput, rule: Lapse['rule']): string {
  const { sinceMs } = lapseOf(input, rule);
  const { lastPeriodMs, firstConnectionMs, listeningSinceMs, stateSinceMs, periodStateSinceMs, offlineSinceMs } =
    input.belief;
  const isPeriod = rule === 'period-overdue';
  // period-overdue starts anew only when a state with period pings follows one without them, not with every state.
  const enteredMs = isPeriod ? periodStateSinceMs : stateSinceMs;
  const reasons: readonly (readonly [number | null, string])[] = [
    [isPeriod ? lastPeriodMs : offlineSinceMs, isPeriod ? 'its last daily ping' : 'the end of its last connection'],
    [firstConnectionMs, 'its first connection'],
    [listeningSinceMs, 'the moment the gateway started to listen'],
    [enteredMs, `its change to ${input.belief.state}`],
  ];
  const reason = reasons.find(([timeMs]) => timeMs === sinceMs)?.[1] ?? 'the opening of its window';
  return `counted from ${reason} at ${describeTime(sinceMs)}`;
}

function nextPeriodMs({ belief }: SilenceInput): number {
  return (belief.lastPeriodMs ?? 0) + Days(1);
}

function windowOpensMs({ belief, nowMs }: SilenceInput): number {
  return nowMs + windowPhase(belief.highWindow, nowMs).changesIn;
}

/** The window in the form `07:00–19:00 (UTC+1 h)`. */
export function windowText(window: HighWindow): string {
  const { from, to } = highWindowToJson(window);
  const offset: Milliseconds = Minutes(Math.abs(window.utcOffsetMinutes));
  const sign = window.utcOffsetMinutes < 0 ? '−' : '+';
  return `${from}–${to} (UTC${offset === 0 ? '' : `${sign}${describeSpan(offset)}`})`;
}

const SILENCE_OF_RULE: Readonly<Partial<Record<RuleName, Silence>>> = {
  'period-overdue': 'late-period',
  'window-offline': 'late-window',
  'recovery-offline': 'late-recovery',
};

/** Which kind of silence it is at `nowMs`, by the belief about the lock at that time. */
export function silenceOf(model: PowerModel, belief: Belief, nowMs: number): Silence {
  if (belief.isConnected) return 'online';
  if (belief.listeningSinceMs === null) return 'gateway-down';
  const now = presence(model, belief, nowMs);
  // Only the three rules of SILENCE_OF_RULE make a lock late.
  if (now.presence === 'late') return SILENCE_OF_RULE[now.rule] ?? 'late-period';
  if (now.presence !== 'asleep') return now.presence;
  if (belief.suspendedSinceMs !== null) return 'suspended';
  const { connectionKept } = rowOfState(model, belief.state);
  if (connectionKept === 'always') return 'due-recovery';
  const nextMs = belief.lastPeriodMs === null ? NEVER : belief.lastPeriodMs + Days(1);
  if (connectionKept === 'in-window') {
    const phase = windowPhase(belief.highWindow, nowMs);
    if (phase.isInside) return 'due-window';
    if (nowMs + phase.changesIn < nextMs) return 'asleep-window';
  }
  if (belief.lastPeriodMs === null) return 'asleep-first';
  return nowMs < nextMs ? 'asleep-period' : 'due-period';
}

/**
 * The step about what the model expects of the lock at `nowMs`.
 *
 * @param kind `next` if `nowMs` is the present, `silence` if it is in the past
 */
export function silenceStep(
  model: PowerModel,
  belief: Belief,
  nowMs: number,
  kind: 'silence' | 'next' = 'silence',
): WhyStep {
  const code = silenceOf(model, belief, nowMs);
  const row = SILENCE_WHY[code];
  const input: SilenceInput = { model, belief, nowMs, lapses: silenceLapses(model, belief) };
  return step(kind, code, row.restsOn, row.sentence(input), row.atMs?.(input) ?? nowMs);
}
