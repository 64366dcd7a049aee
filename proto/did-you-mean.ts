/**
 * What somebody who typed a word that there isn't most likely meant: one measure of nearness for commands, flags, their
 * values and the names of rules, bugs and scenarios.
 */

/** Beyond so many slips a word is another word. */
const MOST_SLIPS = 3;
/** A slip for so many letters is what a hand does. */
const LETTERS_PER_SLIP = 3;
/** From so many letters on, the beginning of a word stands for it. */
const LEAST_BEGINNING = 2;

/**
 * Those of `names` that `typed` is nearest to, in their order: by the fewest slips (a letter too many, missing, another
 * one, or two swapped; upper and lower case are alike), else those that begin with it. Empty where none is near.
 */
export function nearest(typed: string, names: Iterable<string>): string[] {
  const word = bare(typed);
  const known = [...new Set(names)];
  const counted = known.map((name) => ({ name, slips: slipsBetween(word, bare(name)) }));
  const near = counted.filter(({ name, slips }) => slips <= mostSlips(word, bare(name)));
  const least = Math.min(...near.map(({ slips }) => slips));
  if (near.length > 0) return near.filter(({ slips }) => slips === least).map(({ name }) => name);
  return word.length < LEAST_BEGINNING ? [] : known.filter((name) => bare(name).startsWith(word));
}

/** A question to put behind the sentence of an error, with a blank before it; nothing where no name is near. */
export function didYouMean(typed: string, names: Iterable<string>): string {
  const meant = nearest(typed, names);
  return meant.length === 0 ? '' : ` Did you mean ${meant.join(' or ')}?`;
}

/** Case and leading dashes say nothing about which name is meant. */
function bare(name: string): string {
  return name.trim().toLowerCase().replace(/^-+/, '');
}

function mostSlips(word: string, name: string): number {
  const letters = Math.max(word.length, name.length);
  return Math.min(MOST_SLIPS, Math.max(Math.floor(letters / LETTERS_PER_SLIP), word === name ? 0 : 1), letters - 1);
}

/** Optimal string alignment: Damerau and Levenshtein's distance where no letter moves twice. */
function slipsBetween(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > MOST_SLIPS) return MOST_SLIPS + 1;
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      let least = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + same);
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (isSwapped) least = Math.min(least, (before[j - 2] ?? 0) + 1);
      row.push(least);
    }
    before = last;
    last = row;
  }
  return last[b.length] ?? 0;
}
