/**
 * Why nothing comes from a lock at a given moment, and whether the model expects that (protocol.md §3, presence): a row
 * for each kind of silence, and one for a lock that is not silent.
 */
import { Days, type Milliseconds } from '../clock.js';
import type { Belief } from '../power/judge/belief.js';
import { type Lapse, silences } from '../power/judge/lapse.js';
import { presence } from '../power/judge/presence.js';
import { NEVER, rowOf, windowPhase } from '../power/judge/state.js';
import { nextExpiryMs, possibleCause } from '../power/judge/switch.js';
import { describeSpan, describeTime } from '../power/judge/words.js';
import type { PowerModel } from '../power/model.js';
import type { RuleName } from '../power/rules.js';
import type { HighWindow } from '../wire/ping.js';
import { highWindowToJson } from '../wire/ping-json.js';
import { SECTIONS, type Section, step, type WhyStep } from './step.js';

/** Every way; the first that applies is the one. */
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

/** What the sentences are made of. Times are ms since the epoch, by the judge's clock. */
interface SilenceCase {
  readonly model: PowerModel;
  readonly belief: Belief;
  readonly nowMs: number;
  readonly lapses: readonly Lapse[];
}

interface SilenceRow {
  readonly sentence: (of: SilenceCase) => string;
  readonly restsOn: Section;
  /** When it ends or is late, where something says so. */
  readonly atMs?: (of: SilenceCase) => number;
}

/** The sentences, in the order of {@link SILENCES}. */
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
    sentence: (of) => `In RECOVERY, which keeps the connection at all times: it is due now, and ${lateFrom(of)}.`,
    restsOn: SECTIONS.power,
    atMs: (of) => lapseOf(of, 'recovery-offline').dueMs,
  },
  'due-window': {
    sentence: (of) => {
      return `In HIGH, inside its window ${windowText(of.belief.highWindow)}: it is due now, and ${lateFrom(of)}.`;
    },
    restsOn: SECTIONS.power,
    atMs: (of) => lapseOf(of, 'window-offline').dueMs,
  },
  'asleep-window': {
    sentence: (of) =>
      `Asleep, as the model expects: in HIGH its window ${windowText(of.belief.highWindow)} is closed. It is due at ` +
      `${describeTime(windowOpensMs(of))}, when the window opens, and ${lateFrom(of)}.`,
    restsOn: SECTIONS.power,
    atMs: windowOpensMs,
  },
  'due-period': {
    sentence: (of) =>
      `Its last daily ping came at ${describeTime(of.belief.lastPeriodMs ?? 0)}, a day ago: the next is due now, and ` +
      `${lateFrom(of)}.`,
    restsOn: SECTIONS.limits,
    atMs: (of) => lapseOf(of, 'period-overdue').dueMs,
  },
  'asleep-period': {
    sentence: (of) =>
      `Asleep, as the model expects in ${of.belief.state}: its last daily ping came at ` +
      `${describeTime(of.belief.lastPeriodMs ?? 0)}, so the next is due by ${describeTime(nextPeriodMs(of))}, and ` +
      `${lateFrom(of)}.`,
    restsOn: SECTIONS.limits,
    atMs: nextPeriodMs,
  },
  'asleep-first': {
    sentence: (of) =>
      `Asleep, as the model expects in ${of.belief.state}: no daily ping has come from it yet, and ${lateFrom(of)}.`,
    restsOn: SECTIONS.limits,
    atMs: (of) => lapseOf(of, 'period-overdue').dueMs,
  },
});

function suspendedUntil(belief: Belief): string {
  const expiryMs = nextExpiryMs(belief);
  return expiryMs === NEVER ? '' : ` until the command expires at ${describeTime(expiryMs)}`;
}

function lateRow(rule: Lapse['rule'], what: (of: SilenceCase) => string): SilenceRow {
  const sentence = (of: SilenceCase): string => {
    const { dueMs } = lapseOf(of, rule);
    const since = `Late since ${describeTime(dueMs)}, for ${describeSpan(of.nowMs - dueMs)}`;
    return `${since}: ${what(of)}, ${countedFrom(of, rule)}.${possibleCause(of.belief)}`;
  };
  return { sentence, restsOn: SECTIONS.judge, atMs: (of) => lapseOf(of, rule).dueMs };
}

function lapseOf({ lapses }: SilenceCase, rule: Lapse['rule']): Lapse {
  return lapses.find((lapse) => lapse.rule === rule) ?? { rule, sinceMs: NEVER, dueMs: NEVER };
}

/** When the first of the lapses counts, and from when it is counted. */
function lateFrom(of: SilenceCase): string {
  const first = of.lapses.filter(({ dueMs }) => dueMs < NEVER).sort((a, b) => a.dueMs - b.dueMs)[0];
  if (first === undefined) return 'nothing makes it late';
  return `it counts as late after ${describeTime(first.dueMs)} (${first.rule}), ${countedFrom(of, first.rule)}`;
}

/** The latest of what a silence is counted from (protocol.md §3), and which of them it is. */
function countedFrom(of: SilenceCase, rule: Lapse['rule']): string {
  const { sinceMs } = lapseOf(of, rule);
  const { lastPeriodMs, firstConnectionMs, listeningSinceMs, stateSinceMs, periodStateSinceMs, offlineSinceMs } =
    of.belief;
  const isPeriod = rule === 'period-overdue';
  const reasons: readonly (readonly [number | null, string])[] = [
    [isPeriod ? lastPeriodMs : offlineSinceMs, isPeriod ? 'its last daily ping' : 'the end of its last connection'],
    [firstConnectionMs, 'its first connection'],
    [listeningSinceMs, 'the moment the gateway started to listen'],
    [isPeriod ? periodStateSinceMs : stateSinceMs, `its change to ${of.belief.state}`],
  ];
  const reason = reasons.find(([timeMs]) => timeMs === sinceMs)?.[1] ?? 'the opening of its window';
  return `counted from ${reason} at ${describeTime(sinceMs)}`;
}

function nextPeriodMs({ belief }: SilenceCase): number {
  return (belief.lastPeriodMs ?? 0) + Days(1);
}

function windowOpensMs({ belief, nowMs }: SilenceCase): number {
  return nowMs + windowPhase(belief.highWindow, nowMs).changesIn;
}

/** As `07:00–19:00 (UTC+1 h)`. */
export function windowText(window: HighWindow): string {
  const { from, to } = highWindowToJson(window);
  const offset: Milliseconds = Math.abs(window.utcOffsetMinutes) * 60_000;
  const sign = window.utcOffsetMinutes < 0 ? '−' : '+';
  return `${from}–${to} (UTC${offset === 0 ? '' : `${sign}${describeSpan(offset)}`})`;
}

const LATE: Readonly<Partial<Record<RuleName, Silence>>> = {
  'period-overdue': 'late-period',
  'window-offline': 'late-window',
  'recovery-offline': 'late-recovery',
};

/** Which silence it is at `nowMs`, by what is believed of the lock then. */
export function silenceOf(model: PowerModel, belief: Belief, nowMs: number): Silence {
  if (belief.isConnected) return 'online';
  if (belief.listeningSinceMs === null) return 'gateway-down';
  const now = presence(model, belief, nowMs);
  if (now.presence === 'late') return LATE[now.rule] ?? 'late-period';
  if (now.presence !== 'asleep') return now.presence;
  if (belief.suspendedSinceMs !== null) return 'suspended';
  const { connectionKept } = rowOf(model, belief.state);
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

/** The step for what the model expects of the lock at `nowMs`. `kind` is `next` where that is now. */
export function silenceStep(
  model: PowerModel,
  belief: Belief,
  nowMs: number,
  kind: 'silence' | 'next' = 'silence',
): WhyStep {
  const code = silenceOf(model, belief, nowMs);
  const row = SILENCE_WHY[code];
  const of: SilenceCase = { model, belief, nowMs, lapses: silences(model, belief) };
  return step(kind, code, row.restsOn, row.sentence(of), row.atMs?.(of) ?? nowMs);
}
