/**
 * Parses typed lines of the shell: events that happen to the lock (verbs of the simulator, such as `ride 2km`), and
 * words that control the shell, such as `save`. Also completes lines and suggests words for misspelt ones. Pure.
 */

import {
  type DeviceEvent,
  parseDeviceEvent,
  VERBS,
  type Verb,
} from '../../../../firmware-sim/device-event/device-event.js';
import { parseSpan } from '../../../../firmware-sim/device-event/quantity-text.js';
import type { Milliseconds } from '../../../../proto/clock.js';
import { nearestNames } from '../../../../proto/did-you-mean.js';
import { ok, problem, type Result } from '../../../../proto/errors.js';

/** A word that only the shell has, such as `state`, with its syntax and a sentence about it. */
export interface ShellWord {
  readonly word: 'help' | 'state' | 'why' | 'save' | 'quit';
  readonly forms: string;
  readonly sentence: string;
}

/** All words that only the shell has. */
export const SHELL_WORDS: readonly ShellWord[] = [
  { word: 'state', forms: 'state', sentence: 'Shows the lock’s state, where it is, what it does next and when.' },
  { word: 'why', forms: 'why', sentence: 'Explains why the lock sent its last ping.' },
  { word: 'save', forms: 'save FILE', sentence: 'Writes the trace so far (gzipped if the name ends in .gz).' },
  { word: 'help', forms: 'help or help VERB', sentence: 'Shows this list, or the syntax of a verb.' },
  { word: 'quit', forms: 'quit, exit or Ctrl-D', sentence: 'Ends the shell.' },
];

/** The verbs that the shell supports: all but `phone`, because a phone is another device with a separate credential. */
export const SHELL_VERBS: readonly Verb[] = VERBS.filter(({ word }) => word !== 'phone');

/** A typed line. */
export type ShellLine =
  | { readonly type: 'nothing' }
  | { readonly type: 'shell-word'; readonly word: ShellWord['word']; readonly argument: string }
  /** `span` is how long time runs after the event; null to run until the lock is quiet. */
  | { readonly type: 'device-event'; readonly event: DeviceEvent; readonly span: Milliseconds | null };

/** A line that ends in a duration, such as `steal for 1 min`. */
const EVENT_FOR_SPAN = /^(.+?)\s+for\s+([\d.]+\s*[a-z].*)$/i;
/** Commands that completion offers, followed by `by command`. */
const COMMAND_EXAMPLES = [
  'unlock',
  'lock',
  'siren 5 s',
  'locate gps',
  'locate cell',
  'reset',
  'mode HIGH',
  'airplane on',
];

/** Parses a line. An error says what was expected, or suggests what was probably meant. */
export function readShellLine(text: string): Result<ShellLine> {
  const line = text.replace(/^\s*#.*$/, '').trim();
  if (line === '') return ok({ type: 'nothing' });
  const [first = '', ...rest] = line.split(/\s+/);
  const typed = first.toLowerCase() === 'exit' ? 'quit' : first.toLowerCase();
  const shellWord = SHELL_WORDS.find(({ word }) => word === typed);
  if (shellWord !== undefined) return readShellWord(shellWord, rest.join(' '));
  const [, eventText, spanText = ''] = EVENT_FOR_SPAN.exec(line) ?? [];
  const span = eventText === undefined ? undefined : parseSpan(spanText);
  if (eventText !== undefined && span === undefined)
    return problem(
      'shell',
      `${JSON.stringify(spanText)} is not a duration: expected one such as "for 30 s" or "for 10 min"`,
    );
  const event = parseDeviceEvent(eventText ?? line);
  if (event.ok) return ok({ type: 'device-event', event: event.value, span: span ?? null });
  const suggestion = VERBS.some(({ word }) => word === typed) ? undefined : nearestNames(typed, WORDS)[0];
  if (suggestion === undefined) return problem('shell', event.error.message);
  return problem('shell', `there is no verb ${JSON.stringify(first)}: did you mean ${suggestion}? ("help" lists all)`);
}

/** Only `help` and `save` have an argument; `help` may omit it. */
function readShellWord({ word, forms }: ShellWord, argument: string): Result<ShellLine> {
  const isValid = word === 'help' || (word === 'save') === (argument !== '');
  return isValid ? ok({ type: 'shell-word', word, argument }) : problem('shell', `expected ${forms}`);
}

/** The first words of all lines. */
const WORDS: readonly string[] = [...SHELL_VERBS.map(({ word }) => word), ...SHELL_WORDS.map(({ word }) => word)];
/**
 * All lines that completion offers: each verb, and the examples in its syntax, such as `ride` and `ride 2km` for the
 * forms `ride 2km, ride to PLACE, or ride FILE.gpx`. Forms with PLACE or FILE are patterns, not lines.
 */
const LINES: readonly string[] = [
  ...SHELL_VERBS.flatMap(({ word, forms }) => {
    const examples = forms.split(/,\s*or\s+|,\s*|\s+or\s+|;/).map((form) => form.trim());
    return [word, ...examples.filter((form) => form.startsWith(`${word} `) && !/PLACE|FILE/.test(form))];
  }),
  ...SHELL_WORDS.map(({ word }) => word),
  ...COMMAND_EXAMPLES.map((command) => `${command} by command`),
];

/** The completions of an incomplete line: words for its first word, otherwise lines. */
export function completionsOf(typedLine: string): string[] {
  const typed = typedLine.trimStart().replaceAll(/\s+/g, ' ').toLowerCase();
  if (!typed.includes(' '))
    return [...new Set(WORDS.filter((word) => word.startsWith(typed)))].map((word) => `${word} `);
  return [...new Set(LINES.filter((line) => line.toLowerCase().startsWith(typed)))];
}
