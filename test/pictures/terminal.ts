/** The page of the picture of a terminal: what the demo prints at its start, and its first pings and webhooks. */

/** The lines of the picture, and their longest length in characters. */
const LINES = 34;
const COLUMNS = 118;
/** The terminal's colours of the kinds of lines. */
const COLOURS: Readonly<Record<string, string>> = { conn: '#8b949e', ping: '#79c0ff', hook: '#7ee787' };

/** Tokens and keys, of which the picture shows the kind only. */
const secretPattern = /\b(lg[a-z])_[\w=-]{20,}/g;

/** The page, as HTML. @param data the demo's data folder, which is shown as `./data` */
export function terminalPage(printed: string, data: string): string {
  const lines = ['$ npm start', ...printed.replaceAll(data, './data').replace(secretPattern, '$1_…').split('\n')].slice(
    0,
    LINES,
  );
  const rows = lines.map((line) => {
    const [, kind = ''] = / (conn|ping|hook) {2}/.exec(line) ?? [];
    const text = line.length > COLUMNS ? `${line.slice(0, COLUMNS - 1)}…` : line;
    return `<span style="color: ${COLOURS[kind] ?? '#e6edf3'}">${escaped(text)}</span>`;
  });
  const style = 'margin: 0; padding: 16px; background: #0d1117; font: 15px/1.5 "DejaVu Sans Mono", monospace';
  return `<!doctype html><meta charset="utf-8"><body style="margin: 0"><pre style='${style}'>${rows.join('\n')}</pre>`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
