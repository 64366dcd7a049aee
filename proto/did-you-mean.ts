/**
 * Suggests what a user probably meant by an unknown name: of a command, a flag, a flag's value, a rule, a bug or a
 * scenario. Pure.
 *
 * An *edit* is a character too many, a missing one, a wrong one, or two swapped ones.
 */

/** With more edits than this, names count as unrelated. */
const MAX_EDITS = 3;
/** One edit is allowed for each group of this many characters. */
const CHARACTERS_PER_EDIT = 3;
/** A prefix of a name is suggested only from this length on. */
const MIN_PREFIX_CHARACTERS = 2;

/**
 * The names with the fewest edits to `typed`, in their given order. If no name is close enough, the names that start
 * with `typed`. Case is ignored. Empty if there is no such name.
 */
export function nearestNames(typed: string, names: Iterable<string>): string[] {
  const word = normalize(typed);
  const candidates = [...new Set(names)];
  const withEdits = candidates.map((name) => ({ name, edits: editDistance(word, normalize(name)) }));
  const near = withEdits.filter(({ name, edits }) => edits <= maxEdits(word, normalize(name)));
  const fewest = Math.min(...near.map(({ edits }) => edits));
  if (near.length > 0) return near.filter(({ edits }) => edits === fewest).map(({ name }) => name);
  return word.length < MIN_PREFIX_CHARACTERS ? [] : candidates.filter((name) => normalize(name).startsWith(word));
}

/** A question to append to an error, with a leading space; empty if no name is close enough. */
export function didYouMean(typed: string, names: Iterable<string>): string {
  const suggestions = nearestNames(typed, names);
  return suggestions.length === 0 ? '' : ` Did you mean ${suggestions.join(' or ')}?`;
}

/** A name without leading dashes, in lower case. */
function normalize(name: string): string {
  return name.trim().toLowerCase().replace(/^-+/, '');
}

/** How many edits count as a misspelling: always fewer than the letters, so that no name is replaced entirely. */
function maxEdits(word: string, name: string): number {
  const letters = Math.max(word.length, name.length);
  return Math.min(MAX_EDITS, Math.max(Math.floor(letters / CHARACTERS_PER_EDIT), 1), letters - 1);
}

/** The number of edits between two names: the optimal string alignment distance. */
function editDistance(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > MAX_EDITS) return MAX_EDITS + 1;
  let rowBeforeLast: number[] = [];
  let lastRow = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replacements = a[i - 1] === b[j - 1] ? 0 : 1;
      let fewest = Math.min((lastRow[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (lastRow[j - 1] ?? 0) + replacements);
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (isSwapped) fewest = Math.min(fewest, (rowBeforeLast[j - 2] ?? 0) + 1);
      row.push(fewest);
    }
    rowBeforeLast = lastRow;
    lastRow = row;
  }
  return lastRow[b.length] ?? 0;
}
