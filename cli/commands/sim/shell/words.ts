/** The shell's language: its own words besides the verbs, completion, and suggestions for typing errors. */

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

/** A word of the shell's own. */
export interface ShellWord {
  readonly word: 'help' | 'state' | 'why' | 'save' | 'quit';
  readonly forms: string;
  readonly sentence: string;
}

/** The shell's own words. */
export const SHELL_WORDS: readonly ShellWord[] = [
  { word: 'state', forms: 'state', sentence: 'Shows the lock’s state, where it is, what it does next and when.' },
  { word: 'why', forms: 'why', sentence: 'Explains why the lock sent its last ping.' },
  { word: 'save', forms: 'save FILE', sentence: 'Writes the trace so far (gzipped where the name ends in .gz).' },
  { word: 'help', forms: 'help or help VERB', sentence: 'Shows this list, or the syntax of a verb.' },
  { word: 'quit', forms: 'quit, exit or Ctrl-D', sentence: 'Ends the shell.' },
];

/** The verbs that the shell supports: a phone is another device, with its own credential. */
export const SHELL_VERBS: readonly Verb[] = VERBS.filter(({ word }) => word !== 'phone');

/** A typed line. */
export type ShellLine =
  | { readonly type: 'nothing' }
  | { readonly type: 'own'; readonly word: ShellWord['word']; readonly rest: string }
  /** `span`: for how long time goes on after it; null until the lock is quiet. */
  | { readonly type: 'device-event'; readonly event: DeviceEvent; readonly span: Milliseconds | null };

const FOR_SPAN = /^(.+?)\s+for\s+([\d.]+\s*[a-z].*)$/i;
/** Useful commands for completion: each is typed with `by command`. */
const COMMANDS = ['unlock', 'lock', 'siren 5 s', 'locate gps', 'locate cell', 'reset', 'mode HIGH', 'airplane on'];

/** Parses a line. An error says what was expected, or suggests what was probably meant. */
export function readShellLine(text: string): Result<ShellLine> {
  const line = text.replace(/^\s*#.*$/, '').trim();
  if (line === '') return ok({ type: 'nothing' });
  const [first = '', ...rest] = line.split(/\s+/);
  const typed = first.toLowerCase() === 'exit' ? 'quit' : first.toLowerCase();
  const own = SHELL_WORDS.find(({ word }) => word === typed);
  if (own !== undefined) return readOwn(own, rest.join(' '));
  const [, before, spanText = ''] = FOR_SPAN.exec(line) ?? [];
  const span = before === undefined ? undefined : parseSpan(spanText);
  if (before !== undefined && span === undefined)
    return problem(
      'shell',
      `${JSON.stringify(spanText)} is not a duration: expected one such as "for 30 s" or "for 10 min"`,
    );
  const event = parseDeviceEvent(before ?? line);
  if (event.ok) return ok({ type: 'device-event', event: event.value, span: span ?? null });
  const meant = VERBS.some(({ word }) => word === typed) ? undefined : nearestNames(typed, WORDS)[0];
  if (meant === undefined) return problem('shell', event.error.message);
  return problem('shell', `there is no verb ${JSON.stringify(first)}: did you mean ${meant}? ("help" lists all)`);
}

function readOwn({ word, forms }: ShellWord, rest: string): Result<ShellLine> {
  const isBare = word === 'help' || (word === 'save') === (rest !== '');
  return isBare ? ok({ type: 'own', word, rest }) : problem('shell', `expected ${forms}`);
}

const WORDS: readonly string[] = [...SHELL_VERBS.map(({ word }) => word), ...SHELL_WORDS.map(({ word }) => word)];
/** All lines that completion knows: the examples of each verb's syntax. */
const LINES: readonly string[] = [
  ...SHELL_VERBS.flatMap(({ word, forms }) => {
    const examples = forms.split(/,\s*or\s+|,\s*|\s+or\s+|;/).map((form) => form.trim());
    return [word, ...examples.filter((form) => form.startsWith(`${word} `) && !/PLACE|FILE/.test(form))];
  }),
  ...SHELL_WORDS.map(({ word }) => word),
  ...COMMANDS.map((command) => `${command} by command`),
];

/** The completions of an incomplete line: of its first word, or of the whole line. */
export function completionsOf(line: string): string[] {
  const begun = line.trimStart().replaceAll(/\s+/g, ' ').toLowerCase();
  if (!begun.includes(' '))
    return [...new Set(WORDS.filter((word) => word.startsWith(begun)))].map((word) => `${word} `);
  return [...new Set(LINES.filter((one) => one.toLowerCase().startsWith(begun)))];
}
