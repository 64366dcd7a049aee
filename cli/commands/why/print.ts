/**
 * Prints an answer of `lockgate why`: each step's sentence, wrapped, and below it the section of the specification that
 * the sentence rests on, and the time.
 */
import type { WhyStepJson } from '../../../proto/why/step-json.js';
import { formatDate } from '../../../proto/wire/ping-json.js';
import { paint, print, type Style, sanitizeLine } from '../../terminal/output.js';
import { agoText } from '../../terminal/time-text.js';
import { wrapWords } from '../../terminal/word-wrap.js';

/** The answer of the operator interface's `/why`. */
export interface WhyJson {
  readonly about: { readonly kind: string; readonly id: string; readonly mac: string | null };
  /** The current time by the gateway's clock, which may be sped up; `wall_now` is wall-clock time. */
  readonly now: string;
  readonly wall_now: string;
  readonly steps: readonly WhyStepJson[];
}

/** The width of the text in a pipe, and its minimum width on a terminal, in columns. */
const PIPE_WIDTH = 100;
const MIN_WIDTH = 40;
/** Sentences start at this column. */
const SENTENCE_COLUMN = 14;

const STYLES: Readonly<Record<string, Style>> = {
  'rule-broken': 'red',
  'rule-kept': 'green',
  'rules-kept': 'green',
  silence: 'yellow',
  next: 'cyan',
  delivery: 'blue',
};

/** Prints the answer, as wide as the terminal. */
export function printWhy(answer: WhyJson): void {
  const { id, mac } = answer.about;
  printSteps(mac === null || mac === id ? id : `${id}  ${mac}`, answer.steps, answer);
}

/** The current time by the gateway's clock, which may be sped up, and wall-clock time. */
type CurrentTimes = Pick<WhyJson, 'now' | 'wall_now'>;

/** Prints steps below a title. Without `current` a step's time is not compared with the current time. */
export function printSteps(title: string, steps: readonly WhyStepJson[], current: CurrentTimes | null = null): void {
  const width = Math.max(process.stdout.columns ?? PIPE_WIDTH, MIN_WIDTH);
  print(paint('bold', sanitizeLine(title)));
  for (const step of steps) for (const line of stepLines(step, current, width)) print(line);
}

function stepLines(step: WhyStepJson, current: CurrentTimes | null, width: number): string[] {
  const { kind, sentence, rests_on: restsOn } = step;
  const [firstLine = '', ...moreLines] = wrapWords(sanitizeLine(sentence), width - SENTENCE_COLUMN);
  const label = paint(STYLES[kind] ?? 'bold', kind.padEnd(SENTENCE_COLUMN - 1));
  const sourceAndTime = wrapWords(`${restsOn}${timeText(step, current)}`, width - SENTENCE_COLUMN);
  const indented = (line: string): string => ' '.repeat(SENTENCE_COLUMN) + line;
  return [
    `${label} ${firstLine}`,
    ...moreLines.map(indented),
    ...sourceAndTime.map((line) => indented(paint('dim', line))),
  ];
}

/** The exact time, and how long ago it was by the same clock. */
function timeText({ at, clock }: WhyStepJson, current: CurrentTimes | null): string {
  if (at === null) return '';
  const whose = clock === 'lock' ? ' by the lock’s clock' : '';
  if (current === null) return `; ${at}${whose}`;
  const nowMs = Date.parse(clock === 'wall' ? current.wall_now : current.now);
  return `; ${at}${whose} (${relativeTime(at, nowMs)})`;
}

/** `3 min ago`, `in 3 min` or `now`. */
function relativeTime(at: string, nowMs: number): string {
  if (Date.parse(at) <= nowMs) return agoText(at, nowMs);
  // agoText has no future: the same distance in the past has the same words.
  const mirrored = formatDate(2 * nowMs - Date.parse(at));
  const ago = agoText(mirrored, nowMs);
  return ago === 'now' ? ago : `in ${ago.replace(/ ago$/, '')}`;
}
