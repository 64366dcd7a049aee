/**
 * Reads the expectations of a scenario file: which pings, connections and command results the scenario requires.
 * Describes each in a sentence. check.ts compares them with what the locks did. Pure.
 */
import { type Milliseconds, Minutes, Seconds } from '../../proto/clock.js';
import type { Command, CommandResult, Ping } from '../../proto/wire/ping.js';
import { parseSpan } from '../device-event/quantity-text.js';
import type { Place } from '../world/routes/city.js';
import type { ExpectationText } from './schema.js';

/** Selects pings by reason and type. */
export interface PingPattern {
  readonly reason: string;
  /** Null for any type. */
  readonly kind: Ping['kind'] | null;
}

/** An element of an expected sequence: a number of equal pings, or one or more of them (`repeated`). */
export interface RepeatedPing extends PingPattern {
  readonly times: number | 'repeated';
}

/** A number or a bound that a value is compared with; null for "no value". */
export interface Comparison {
  readonly relation: '<' | '<=' | '>' | '>=' | '=';
  readonly value: number | null;
}

/** The values that the selected pings must carry (`with` in the file). */
export interface CarriedValues {
  readonly words: readonly (readonly [member: string, value: string | boolean])[];
  readonly numbers: readonly (readonly [member: string, comparison: Comparison])[];
  readonly near: Place | null;
}

/** The members of all expectations. Times are ms since the epoch; `untilMs` is exclusive. */
interface Expected {
  readonly line: number;
  /** The name of the lock that is checked. */
  readonly lock: string;
  readonly afterMs: number;
  readonly untilMs: number;
  /** The expectation as a sentence. */
  readonly sentence: string;
}

/** Requires pings that match the pattern. */
export interface ExpectedPing extends Expected {
  readonly kind: 'ping';
  readonly pattern: PingPattern;
  readonly carried: CarriedValues;
  /** Whether the span starts at the ping that the previous expectation found. */
  readonly isNext: boolean;
  /** The first ping must come within this time; null for no limit. */
  readonly within: Milliseconds | null;
  /** Ping must follow ping in this interval for this duration; null for no required interval. */
  readonly every: {
    readonly span: Milliseconds;
    readonly tolerance: Milliseconds;
    readonly duration: Milliseconds;
  } | null;
  /** Minimum number of matching pings. */
  readonly atLeast: number;
  /** Maximum number of matching pings. */
  readonly atMost: number;
  /** The pings must not be acknowledged earlier; null for no limit. */
  readonly arrivesAfterMs: number | null;
}

/**
 * An expectation of a scenario. `never`: no such ping comes. `exactly`: these pings come, and no others. `command`: a
 * command reaches the lock, with this result. `connected`: the lock is connected all the time. `silent`: it neither
 * connects nor makes a ping.
 */
export type ScenarioExpectation =
  | ExpectedPing
  | (Expected & { readonly kind: 'never'; readonly pattern: PingPattern; readonly carried: CarriedValues })
  | (Expected & { readonly kind: 'exactly'; readonly sequence: readonly RepeatedPing[] })
  | (Expected & {
      readonly kind: 'command';
      readonly type: Command['type'];
      /** How long after `afterMs` the command may arrive; null for the end of the span. */
      readonly within: Milliseconds | null;
      readonly result: CommandResult;
    })
  | (Expected & { readonly kind: 'connected' | 'silent'; readonly tolerance: Milliseconds });

type ExpectationKey = keyof ExpectationText;

/** The keys that `ping` and `next` have in common. `next` has no `after`: it starts at the ping before it. */
const PING_KEYS: readonly ExpectationKey[] = [
  'until',
  'within',
  'every',
  'give',
  'for',
  'count',
  'at_least',
  'at_most',
  'with',
  'arrives_after',
];
/** The kinds of expectations: the key that defines the kind, and the other allowed keys. `give` is a tolerance. */
const KINDS: readonly { readonly key: ExpectationKey; readonly allowedKeys: readonly ExpectationKey[] }[] = [
  { key: 'ping', allowedKeys: ['after', ...PING_KEYS] },
  { key: 'next', allowedKeys: PING_KEYS },
  { key: 'never', allowedKeys: ['after', 'until', 'with'] },
  { key: 'exactly', allowedKeys: ['after', 'until'] },
  { key: 'command', allowedKeys: ['after', 'until', 'within', 'result'] },
  { key: 'connected', allowedKeys: ['after', 'until', 'give'] },
  { key: 'silent', allowedKeys: ['after', 'until', 'give'] },
];

/** The default tolerance of `every`. */
const DEFAULT_INTERVAL_TOLERANCE_MS: Milliseconds = Seconds(1);
/** The default tolerance for the start and end of connections. */
const DEFAULT_CONNECTION_TOLERANCE_MS: Milliseconds = Minutes(1);

/** What the reader of an expectation needs to know of the scenario. */
export interface ExpectationContext {
  readonly line: number;
  readonly lock: string;
  /** The start of the sentence: the lock's name in a scenario with several locks, otherwise empty. */
  readonly subject: string;
  readonly startMs: number;
  readonly endMs: number;
  /** The time of a text. For an invalid text, reports a mistake and returns undefined. */
  readonly moment: (text: string, key: ExpectationKey) => number | undefined;
  /** The place with this name. For an unknown name, reports a mistake and returns undefined. */
  readonly place: (name: string) => Place | undefined;
  readonly reportMistake: (message: string, key?: ExpectationKey) => undefined;
}

/**
 * Reads one expectation. Reports mistakes to the context, and then returns undefined. The schema (schema.ts) has
 * checked the types and the words of the text, so the casts in this file hold.
 */
export function readExpectation(text: ExpectationText, context: ExpectationContext): ScenarioExpectation | undefined {
  const kinds = KINDS.filter(({ key }) => text[key] !== undefined);
  const [kind] = kinds;
  if (kind === undefined || kinds.length > 1) {
    const names = KINDS.map(({ key }) => key).join(', ');
    return context.reportMistake(
      `an expectation is one of ${names}: expected ${kind === undefined ? 'one' : 'only one'}`,
    );
  }
  const misplacedKey = (Object.keys(text) as ExpectationKey[]).find(
    (key) => key !== kind.key && key !== 'lock' && !kind.allowedKeys.includes(key),
  );
  if (misplacedKey !== undefined)
    return context.reportMistake(
      `${misplacedKey} does not go with ${kind.key}: expected ${kind.allowedKeys.join(', ')}`,
      misplacedKey,
    );
  const expected = readCommonMembers(text, context);
  if (expected === undefined) return undefined;
  switch (kind.key) {
    case 'ping':
    case 'next':
      return readPing(text, kind.key, expected, context);
    case 'never': {
      const carried = readCarried(text, context);
      return carried && { ...expected, kind: 'never', pattern: patternOf(text.never ?? ''), carried };
    }
    case 'exactly':
      return { ...expected, kind: 'exactly', sequence: (text.exactly ?? []).map(repeatedPingOf) };
    case 'command': {
      const [within, result] = [readSpan(text, 'within', context), text.result ?? 'ok'];
      const type = text.command as Command['type'];
      return within === undefined ? undefined : { ...expected, kind: 'command', type, within, result };
    }
    default: {
      const tolerance = readSpan(text, 'give', context);
      if (tolerance === undefined) return undefined;
      return {
        ...expected,
        kind: kind.key === 'connected' ? 'connected' : 'silent',
        tolerance: tolerance ?? DEFAULT_CONNECTION_TOLERANCE_MS,
      };
    }
  }
}

/** Reads what all expectations have: the lock and the span of time that are checked. */
function readCommonMembers(text: ExpectationText, context: ExpectationContext): Expected | undefined {
  const { line, lock, startMs, endMs } = context;
  const afterMs = text.after === undefined ? startMs : context.moment(text.after, 'after');
  const untilMs = text.until === undefined ? endMs : context.moment(text.until, 'until');
  if (afterMs === undefined || untilMs === undefined) return undefined;
  if (untilMs < afterMs) return context.reportMistake('until is before after: expected a later time', 'until');
  return { line, lock, afterMs, untilMs, sentence: sentenceOf(text, context.subject) };
}

function readPing(
  text: ExpectationText,
  key: 'ping' | 'next',
  expected: Expected,
  context: ExpectationContext,
): ExpectedPing | undefined {
  const [within, every, tolerance, duration] = (['within', 'every', 'give', 'for'] as const).map((name) =>
    readSpan(text, name, context),
  );
  const carried = readCarried(text, context);
  if (within === undefined || every === undefined || tolerance === undefined || duration === undefined)
    return undefined;
  if (carried === undefined) return undefined;
  if ((every === null) !== (duration === null))
    return context.reportMistake('every and for go together: expected both, such as every: 10 s and for: 1 min');
  if (every === 0) return context.reportMistake('every is 0: expected more', 'every');
  if (text.count !== undefined && (text.at_least ?? text.at_most) !== undefined)
    return context.reportMistake('count is exact: expected no at_least or at_most with it', 'count');
  if ((text.at_most ?? Number.POSITIVE_INFINITY) < (text.at_least ?? 0))
    return context.reportMistake(`at_most is ${text.at_most}: expected no less than at_least`, 'at_most');
  if (tolerance !== null && every === null) return context.reportMistake('give goes with every: expected both', 'give');
  const arrivesAfterMs = text.arrives_after === undefined ? null : context.moment(text.arrives_after, 'arrives_after');
  if (arrivesAfterMs === undefined) return undefined;
  return {
    ...expected,
    kind: 'ping',
    pattern: patternOf(text[key] ?? ''),
    carried,
    isNext: key === 'next',
    within,
    every:
      every === null || duration === null
        ? null
        : { span: every, tolerance: tolerance ?? DEFAULT_INTERVAL_TOLERANCE_MS, duration },
    atLeast: text.count ?? text.at_least ?? (text.at_most === undefined ? 1 : 0),
    atMost: text.count ?? text.at_most ?? Number.POSITIVE_INFINITY,
    arrivesAfterMs,
  };
}

/** Reads a span. Returns null if the key is missing; for an invalid span reports a mistake and returns undefined. */
function readSpan(
  text: ExpectationText,
  key: 'within' | 'every' | 'give' | 'for',
  context: ExpectationContext,
): Milliseconds | null | undefined {
  const spanText = text[key];
  if (spanText === undefined) return null;
  const span = parseSpan(spanText);
  if (span !== undefined) return span;
  return context.reportMistake(
    `${key} is ${JSON.stringify(spanText)}: expected a span such as 90 s, 10 min or 2 h`,
    key,
  );
}

function readCarried(text: ExpectationText, context: ExpectationContext): CarriedValues | undefined {
  const words: (readonly [string, string | boolean])[] = [];
  const numbers: (readonly [string, Comparison])[] = [];
  const { near, ...members } = text.with ?? {};
  for (const [member, value] of Object.entries(members)) {
    const isNumber = member === 'battery_percent' || member === 'ebike_voltage' || member === 'speed';
    if (isNumber) numbers.push([member, comparisonOf(value as number | string | null)]);
    else words.push([member, value as string | boolean]);
  }
  const place = near === undefined ? null : context.place(near);
  return place === undefined ? undefined : { words, numbers, near: place };
}

/** Reads a number, null, or a relation and a number such as `< 10`. The schema has checked the syntax. */
function comparisonOf(text: number | string | null): Comparison {
  if (typeof text !== 'string') return { relation: '=', value: text };
  const [, relation, value] = /^\s*(<=|>=|<|>|=)\s*(\S+)\s*$/.exec(text) ?? [];
  return { relation: relation as Comparison['relation'], value: Number(value) };
}

/** Reads a reason, and a type or nothing: `REASON_THEFT gps`. */
function patternOf(text: string): PingPattern {
  const [reason = '', kind] = text.split(' ');
  return { reason, kind: (kind as Ping['kind'] | undefined) ?? null };
}

/** Reads an element of `exactly`: `REASON_THEFT gps`, `REASON_THEFT gps x3` or `REASON_THEFT gps repeated`. */
function repeatedPingOf(text: string): RepeatedPing {
  const words = text.split(' ');
  const lastWord = words.at(-1) ?? '';
  if (lastWord === 'repeated') return { ...patternOf(words.slice(0, -1).join(' ')), times: 'repeated' };
  if (/^x\d+$/.test(lastWord)) return { ...patternOf(words.slice(0, -1).join(' ')), times: Number(lastWord.slice(1)) };
  return { ...patternOf(text), times: 1 };
}

/** An expectation as a sentence, in the words of the file. */
function sentenceOf(text: ExpectationText, subject: string): string {
  const parts: string[] = [];
  if (text.never !== undefined) parts.push(`never ${text.never}`);
  else if (text.exactly !== undefined) parts.push(`exactly ${text.exactly.join(', ') || 'nothing'}`);
  else if (text.command !== undefined) parts.push(`command ${text.command} ends with ${text.result ?? 'ok'}`);
  else if (text.connected !== undefined) parts.push('connected');
  else if (text.silent !== undefined) parts.push('silent');
  else parts.push(text.ping ?? `then ${text.next}`);
  if (text.with !== undefined) parts.push(`with ${carriedText(text.with)}`);
  if (text.every !== undefined) parts.push(`every ${text.every} for ${text.for}`);
  if (text.count !== undefined) parts.push(`${text.count} of them`);
  if (text.at_least !== undefined) parts.push(`at least ${text.at_least}`);
  if (text.at_most !== undefined) parts.push(`at most ${text.at_most}`);
  if (text.within !== undefined) parts.push(`within ${text.within}`);
  if (text.after !== undefined) parts.push(`after ${text.after}`);
  if (text.until !== undefined) parts.push(`until ${text.until}`);
  if (text.arrives_after !== undefined) parts.push(`arriving after ${text.arrives_after}`);
  return `${subject}${parts.join(' ')}`;
}

function carriedText(carried: NonNullable<ExpectationText['with']>): string {
  return Object.entries(carried)
    .map(([member, value]) => `${member} ${value}`)
    .join(', ');
}
