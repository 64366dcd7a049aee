/** Arguments and flags that several commands of `lockgate trace` share. */

/** The argument of a command that reads traces: its name and its help. */
export const FILES_ARGUMENT = [
  '<file...>',
  'Traces; a name that ends in .gz is gzipped, - is the standard input.',
] as const;

/** Collects the values of a flag that can be repeated; for commander. */
export function appendValue(value: string, before: string[]): string[] {
  return [...before, value];
}
