/**
 * Replaces the generated parts of a Markdown document: the text between `<!-- generated: NAME -->` and
 * `<!-- end of NAME -->`. People write the text around these parts. Pure: reads and writes no file.
 */

/** The text of each generated part, by its name. */
export type GeneratedParts = Readonly<Record<string, string>>;

/**
 * The document with its generated parts renewed.
 *
 * @throws Error if the document lacks one of the parts, or has one that is not among them
 */
export function withGeneratedParts(document: string, parts: GeneratedParts): string {
  let text = document;
  for (const [name, part] of Object.entries(parts)) {
    const [start, end] = [`<!-- generated: ${name} -->`, `<!-- end of ${name} -->`];
    const from = text.indexOf(start);
    const to = text.indexOf(end);
    if (from === -1 || to < from) throw new Error(`the document has no part ${name}: expected ${start} … ${end}`);
    text = `${text.slice(0, from + start.length)}\n\n${part}\n\n${text.slice(to)}`;
  }
  const unknown = [...text.matchAll(/<!-- generated: (\S+) -->/g)].find(
    ([, name]) => !Object.hasOwn(parts, name ?? ''),
  );
  if (unknown !== undefined) throw new Error(`the document has a part ${unknown[1]}, which nothing generates`);
  return text;
}

/** A Markdown table. A vertical bar in a cell is escaped. */
export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => {
    return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  };
  return [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)].join('\n');
}

/**
 * The link as a document in docs/ must write it.
 *
 * @param link a path in docs/ from the repository's root, such as `docs/protocol.md#states`
 */
export function linkFromDocs(link: string): string {
  return link.replace(/^docs\//, '');
}
