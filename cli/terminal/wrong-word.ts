/** Rewrites commander's error messages as sentences, with a suggestion of what was probably meant. */
import { didYouMean } from '../../proto/did-you-mean.js';
import { sanitizeLine } from './output.js';

const UNKNOWN_WORD = /^unknown command '(.*)'$/s;
const UNKNOWN_FLAG = /^unknown option '(.*)'$/s;
/** A value that a flag or an argument does not allow. */
const WRONG_CHOICE = new RegExp(
  "^(?:option '([^' ]*).*' argument|command-argument value) '(.*)' is invalid(?: for argument '(.*)')?\\. " +
    'Allowed choices are (.*)$',
  's',
);

/**
 * The sentence for one of commander's error messages.
 *
 * @param known the names of the existing commands, and of flags with their dashes, among which to find a suggestion
 */
export function wrongWordText(
  message: string,
  known: { readonly words: readonly string[]; readonly flags: readonly string[] },
): string {
  const text = message.replace(/^error: /, '').replace(/\.$/, '');
  const [, flag, value = '', argument = '', choices] = WRONG_CHOICE.exec(text) ?? [];
  if (choices === undefined) return sanitizeLine(`${text}.${suggestionFor(text, known)}`);
  return sanitizeLine(
    `${flag ?? argument} is "${value}": expected ${choices}.${didYouMean(value, choices.split(', '))}`,
  );
}

function suggestionFor(text: string, { words, flags }: Parameters<typeof wrongWordText>[1]): string {
  const [, word] = UNKNOWN_WORD.exec(text) ?? [];
  if (word !== undefined) return didYouMean(word, words);
  const [, flag] = UNKNOWN_FLAG.exec(text) ?? [];
  return flag === undefined ? '' : didYouMean(flag.replace(/=.*$/s, ''), flags);
}
