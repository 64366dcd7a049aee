/**
 * Names and labels of locks (interfaces.md §2, §4): their rules, and labels as text. A label is a key with a value,
 * such as `city=Berlin`. Names and labels are chosen by people; lockgate itself gives them no meaning. Pure.
 */

/** Labels by key, in the order of their keys. */
export type Labels = Readonly<Record<string, string>>;

export const NO_LABELS: Labels = Object.freeze({});

export const MAX_NAME_CHARS = 60;
export const MAX_LABELS = 16;
export const MAX_LABEL_KEY_CHARS = 40;
export const MAX_LABEL_VALUE_CHARS = 60;

/** A label's key, such as `city` or `fleet/north-2`. */
const KEY = /^[A-Za-z0-9][A-Za-z0-9._/-]*$/;
/** Control characters, halves of surrogate pairs, and the separators that end a line. */
const BAD_IN_NAME = /[\p{Cc}\p{Surrogate}\u2028\u2029]/u;
/** The same as in names, and the separators of lists of labels (comma and semicolon). */
const BAD_IN_VALUE = /[\p{Cc}\p{Surrogate}\u2028\u2029,;]/u;

/** What is wrong with a name, as a sentence; undefined if nothing is. An empty name means none. */
export function nameFault(name: string): string | undefined {
  if ([...name].length > MAX_NAME_CHARS) return `expected at most ${MAX_NAME_CHARS} characters`;
  return BAD_IN_NAME.test(name) ? 'expected a name without control characters' : undefined;
}

/** The first bad label with its fault as a sentence; undefined if all are good. */
export function labelsFault(labels: Labels): { readonly key: string; readonly detail: string } | undefined {
  const entries = Object.entries(labels);
  if (entries.length > MAX_LABELS) return { key: '', detail: `expected at most ${MAX_LABELS} labels` };
  for (const [key, value] of entries) {
    const detail = keyFault(key) ?? valueFault(value);
    if (detail !== undefined) return { key, detail };
  }
  return undefined;
}

function keyFault(key: string): string | undefined {
  if (KEY.test(key) && key.length <= MAX_LABEL_KEY_CHARS) return undefined;
  return `the key of a label has 1 to ${MAX_LABEL_KEY_CHARS} letters, digits and . _ / -, the first a letter or digit`;
}

function valueFault(value: string): string | undefined {
  if ([...value].length > MAX_LABEL_VALUE_CHARS)
    return `expected a value of at most ${MAX_LABEL_VALUE_CHARS} characters`;
  return BAD_IN_VALUE.test(value) ? 'expected a value without commas, semicolons and control characters' : undefined;
}

/** Returns the labels in the order of their keys. */
export function orderedLabels(labels: Labels): Labels {
  const keys = Object.keys(labels).sort();
  return keys.length === 0 ? NO_LABELS : Object.fromEntries(keys.map((key) => [key, labels[key] ?? '']));
}

/** Returns labels as text, `city=Berlin, area=north`; empty without labels. */
export function labelsText(labels: Labels): string {
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(', ');
}

/**
 * Parses labels: `key=value`, separated by commas or semicolons. Returns the labels in the order of their keys, or a
 * sentence about what is wrong.
 */
export function parseLabels(text: string): Labels | string {
  const labels: Record<string, string> = {};
  for (const part of text.split(/[,;]/)) {
    const labelText = part.trim();
    if (labelText === '') continue;
    const separator = labelText.indexOf('=');
    if (separator < 1) return `${JSON.stringify(labelText.slice(0, MAX_NAME_CHARS))} is no label: expected key=value`;
    const key = labelText.slice(0, separator).trim();
    if (Object.hasOwn(labels, key)) return `the label ${key} is given twice`;
    labels[key] = labelText.slice(separator + 1).trim();
  }
  const fault = labelsFault(labels);
  return fault === undefined ? orderedLabels(labels) : `the label ${JSON.stringify(fault.key)}: ${fault.detail}`;
}
