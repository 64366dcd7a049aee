/**
 * Formats a certificate as one HTML page without scripts and external resources. The page fits A4 paper and suits
 * screen readers: it has headings, captions and row headers, and a verdict is always a word, not only a colour. The
 * page also contains its data as JSON in a `<template>`, which browsers do not display, so that `--verify` can read it.
 * Pure.
 */
import type { Certificate } from '../../../../proto/trace/certificate/certificate.js';
import { certificateJson } from '../../../../proto/trace/certificate/json.js';
import type { JudgedRow, RowFinding, RowVerdict } from '../../../../proto/trace/certificate/row.js';
import { formatDate } from '../../../../proto/wire/ping-json.js';
import { sanitizeLine } from '../../../terminal/output.js';
import { LINKS_NOTE, ruleHtml, sectionHtml } from '../citation-html.js';

const DATA_START = '<template id="certificate-data">';
const DATA_END = '</template>';

/** The page. `says` of a certificate's row is the requirement as a sentence. */
export function certificateHtml(certificate: Certificate): string {
  const { firmware, rows } = certificate;
  const title = `Firmware certificate${firmware === null ? '' : `: ${firmware}`}`;
  const groups = [...new Set(rows.map(({ group }) => group))];
  return [
    '<!DOCTYPE html>',
    '<html lang="en">',
    '<head>',
    '<meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; style-src \'unsafe-inline\'">',
    `<title>${escapeHtml(title)}</title>`,
    `<style>${STYLE}</style>`,
    '</head>',
    '<body>',
    '<main>',
    `<h1>${escapeHtml(title)}</h1>`,
    ...summaryHtml(certificate),
    ...failedRowsHtml(rows),
    ...unseenRowsHtml(rows),
    '<h2>All rows</h2>',
    ...groups.flatMap((group) => groupTableHtml(group, rows)),
    ...traceTableHtml(certificate),
    ...legendHtml(),
    LINKS_NOTE,
    '</main>',
    `${DATA_START}${escapeHtml(JSON.stringify(certificateJson(certificate)))}${DATA_END}`,
    '</body>',
    '</html>',
  ].join('\n');
}

/** The data inside a page, as JSON; null if it has none. */
export function dataOfHtml(html: string): string | null {
  const start = html.indexOf(DATA_START);
  const end = html.indexOf(DATA_END, start);
  if (start === -1 || end === -1) return null;
  return html
    .slice(start + DATA_START.length, end)
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&amp;', '&');
}

/** The counts of verdicts, and what was certified. */
function summaryHtml(certificate: Certificate): string[] {
  const { firmware, reported, leftOut, lockgate, traces, locks, pings, fromMs, toMs, rows } = certificate;
  const count = (verdict: RowVerdict): number => rows.filter((row) => row.verdict === verdict).length;
  const versions = reported.map(
    ({ version, pings: cellularPings }) => `${version} (${plural(cellularPings, 'cellular ping')})`,
  );
  const isReported = firmware === null || reported.some(({ version }) => version === firmware);
  const span = fromMs === null || toMs === null ? 'no events' : `${timeText(fromMs)} to ${timeText(toMs)}`;
  const properties: [string, string][] = [
    ['Firmware certified', firmware ?? 'not stated'],
    ['Firmware reported by the pings', versions.length === 0 ? 'none' : versions.join(', ')],
    ['Time span', span],
    ['Locks', countText(locks)],
    ['Pings', countText(pings)],
    ['Traces', countText(traces.length)],
    ['Made by', `lockgate ${lockgate}`],
  ];
  return [
    '<ul class="counts" aria-label="Verdicts">',
    `<li class="pass"><strong>${count('PASS')}</strong> PASS</li>`,
    `<li class="fail"><strong>${count('FAIL')}</strong> FAIL</li>`,
    `<li class="not-seen"><strong>${count('NOT SEEN')}</strong> NOT SEEN</li>`,
    '</ul>',
    ...(isReported ? [] : [`<p class="notice">No ping reports firmware ${escapeHtml(firmware)}.</p>`]),
    ...(leftOut === 0 ? [] : [`<p class="notice">${plural(leftOut, 'ping')} of other firmware left out.</p>`]),
    '<dl>',
    ...properties.map(([term, value]) => `<div><dt>${term}</dt><dd>${escapeHtml(value)}</dd></div>`),
    '</dl>',
  ];
}

/** Lists the failed rows with their first findings. */
function failedRowsHtml(rows: readonly JudgedRow[]): string[] {
  const failed = rows.filter(({ verdict }) => verdict === 'FAIL');
  if (failed.length === 0) return ['<h2>Failed</h2>', '<p>No row failed.</p>'];
  return [
    '<h2>Failed</h2>',
    ...failed.flatMap(({ row, says, failures: count, firstFailures }) => {
      const first = count > firstFailures.length ? `, of which the first ${firstFailures.length}` : '';
      const items = firstFailures.map((found) => `<li>${findingHtml(found)}</li>`);
      return [
        `<h3>${row}</h3>`,
        `<p>${escapeHtml(says)} ${plural(count, 'finding')}${first}:</p>`,
        '<ul>',
        ...items,
        '</ul>',
      ];
    }),
  ];
}

/** Lists the rows that nothing in the traces shows. */
function unseenRowsHtml(rows: readonly JudgedRow[]): string[] {
  const unseen = rows.filter(({ verdict }) => verdict === 'NOT SEEN');
  if (unseen.length === 0) return ['<h2>Not seen</h2>', '<p>Every row was seen.</p>'];
  return [
    '<h2>Not seen</h2>',
    '<p>Nothing in the traces shows these rows. Absence is no pass. What would show them:</p>',
    '<ul>',
    ...unseen.map(({ row, state, seenWhen }) => {
      const inState = state === null ? '' : ` (${state})`;
      return `<li><code>${row}</code>: ${escapeHtml(seenWhen)}${inState}</li>`;
    }),
    '</ul>',
  ];
}

function groupTableHtml(group: string, rows: readonly JudgedRow[]): string[] {
  return [
    '<div class="wide">',
    '<table>',
    `<caption>${escapeHtml(group)}</caption>`,
    '<thead><tr><th scope="col">Row</th><th scope="col">State</th><th scope="col">What must hold</th>' +
      '<th scope="col">Verdict</th><th scope="col" class="number">Seen</th><th scope="col">Lines</th></tr></thead>',
    '<tbody>',
    ...rows.filter((row) => row.group === group).map(rowHtml),
    '</tbody>',
    '</table>',
    '</div>',
  ];
}

/** A mark before each verdict, which screen readers skip. */
const MARKS: Readonly<Record<RowVerdict, string>> = { PASS: '✓', FAIL: '✗', 'NOT SEEN': '○' };

function rowHtml(row: JudgedRow): string {
  const { verdict, state, seen, noted, firstNoted, says, section } = row;
  const css = verdict.toLowerCase().replace(' ', '-');
  const lines = verdict === 'FAIL' ? row.firstFailures.map(({ at }) => at) : row.lines;
  const warnings =
    firstNoted[0] === undefined
      ? ''
      : `<br><span class="noted">${plural(noted, 'warning')} noted, such as ${findingHtml(firstNoted[0])}</span>`;
  return [
    `<tr class="${css}">`,
    `<th scope="row"><code>${breakableHtml(row.row)}</code></th>`,
    `<td>${state ?? 'all'}</td>`,
    `<td>${escapeHtml(says)}<br><span class="section">${sectionHtml(section)}</span>${warnings}</td>`,
    `<td class="verdict"><span aria-hidden="true">${MARKS[verdict]}</span> ${verdict}</td>`,
    `<td class="number">${countText(seen)}</td>`,
    `<td class="lines">${lines.length === 0 ? 'none' : linesByFile(lines)}</td>`,
    '</tr>',
  ].join('');
}

/** Places such as `FILE:15` and `FILE:16` as `FILE:15, 16`; each file starts a new line. */
function linesByFile(lines: readonly string[]): string {
  const numbers = new Map<string, string[]>();
  for (const line of lines) {
    const colon = line.lastIndexOf(':');
    const file = line.slice(0, colon);
    const ofFile = numbers.get(file);
    if (ofFile === undefined) numbers.set(file, [line.slice(colon + 1)]);
    else ofFile.push(line.slice(colon + 1));
  }
  return [...numbers].map(([file, ofFile]) => `${breakableHtml(file)}:<wbr>${ofFile.join(', ')}`).join('<br>');
}

function traceTableHtml({ traces, world }: Certificate): string[] {
  const timeOrNone = (timeMs: number | null): string => (timeMs === null ? 'none' : timeText(timeMs));
  return [
    '<h2>Traces</h2>',
    '<div class="wide">',
    '<table>',
    '<caption>The files that this certificate rests on</caption>',
    '<thead><tr><th scope="col">File</th><th scope="col">SHA-256</th><th scope="col" class="number">Locks</th>' +
      '<th scope="col" class="number">Pings</th><th scope="col">From</th><th scope="col">To</th></tr></thead>',
    '<tbody>',
    ...traces.map(({ file, sha256, locks, pings, fromMs, toMs }) =>
      [
        `<tr><th scope="row">${breakableHtml(file)}</th>`,
        `<td class="hash">${sha256.slice(0, 32)}<wbr>${sha256.slice(32)}</td>`,
        `<td class="number">${countText(locks)}</td><td class="number">${countText(pings)}</td>`,
        `<td>${timeOrNone(fromMs)}</td><td>${timeOrNone(toMs)}</td></tr>`,
      ].join(''),
    ),
    '</tbody>',
    '</table>',
    '</div>',
    ...(world === null
      ? []
      : [
          `<p>Compared with the truth ${breakableHtml(world.file)}, ` +
            `SHA-256 <span class="hash">${world.sha256}</span>.</p>`,
        ]),
  ];
}

function legendHtml(): string[] {
  return [
    '<h2>How to read this</h2>',
    '<dl class="legend">',
    '<div><dt>PASS</dt><dd>The row was seen to hold, and no rule that belongs to it was broken.</dd></div>',
    '<div><dt>FAIL</dt><dd>A rule that belongs to the row was broken.</dd></div>',
    '<div><dt>NOT SEEN</dt><dd>Nothing in the traces shows the row.</dd></div>',
    '</dl>',
    '<p>Lines are FILE:LINE, the first of those that show the row or break it; ' +
      '<code>lockgate trace why FILE:LINE</code> explains each. Warnings that the network may have caused are ' +
      'noted and make no row fail. ' +
      '<code>lockgate trace certify --verify</code> compares this page with the traces.</p>',
  ];
}

function findingHtml({ at, mac, rule, message }: RowFinding): string {
  return `<span class="lines">${breakableHtml(at)}</span>, ${mac}, ${ruleHtml(rule)}: ${escapeHtml(message)}`;
}

function plural(count: number, noun: string): string {
  return `${countText(count)} ${noun}${count === 1 ? '' : 's'}`;
}

function countText(count: number): string {
  return count.toLocaleString('en-US');
}

function timeText(timeMs: number): string {
  return formatDate(timeMs)
    .replace('T', ' ')
    .replace(/\.\d+Z$/, ' UTC');
}

/** The text as HTML that may break into lines after slashes, hyphens, dots and colons. */
function breakableHtml(text: string): string {
  return escapeHtml(text).replace(/([/\-.:])(?=.)/g, '$1<wbr>');
}

function escapeHtml(text: string): string {
  return sanitizeLine(text)
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

const STYLE = `
:root { color-scheme: light; font: 16px/1.45 system-ui, sans-serif; color: #1b1f24; background: #fff; }
body { margin: 0; }
main { max-width: 70rem; margin: 0 auto; padding: 1.5rem; }
h1 { font-size: 1.8rem; margin: 0 0 1rem; }
h2 { font-size: 1.3rem; margin: 2rem 0 0.5rem; }
h3 { font-size: 1rem; margin: 1rem 0 0.25rem; }
code, .hash, .lines { font-family: ui-monospace, monospace; font-size: 0.85em; }
.counts { display: flex; flex-wrap: wrap; gap: 0.75rem; list-style: none; margin: 0 0 1rem; padding: 0; }
.counts li { border: 1px solid; border-radius: 0.4rem; padding: 0.4rem 0.9rem; }
.counts strong { font-size: 1.4rem; }
.notice { border-left: 0.3rem solid #8a5a00; padding: 0.3rem 0.8rem; background: #fff6e0; }
dl { margin: 0; }
dl div { display: grid; grid-template-columns: minmax(8rem, 16rem) 1fr; gap: 0 1rem; padding: 0.15rem 0; }
dt { font-weight: 600; }
dd { margin: 0; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; margin: 0 0 1.5rem; font-size: 0.92rem; }
caption { text-align: left; font-weight: 600; font-size: 1.05rem; padding: 0.8rem 0 0.4rem; }
th, td { border-bottom: 1px solid #d0d7de; padding: 0.35rem 0.5rem; text-align: left; vertical-align: top; }
thead th { border-bottom: 2px solid #57606a; }
tbody th { font-weight: 400; }
td.lines { min-width: 9rem; }
.wide { overflow-x: auto; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
.verdict { white-space: nowrap; font-weight: 600; }
.section, .noted { color: #57606a; font-size: 0.85em; }
.pass .verdict, .counts .pass { color: #1a7f37; }
.fail .verdict, .counts .fail { color: #b3261e; }
.not-seen .verdict, .counts .not-seen { color: #7a5200; }
tr.fail { background: #fdeceb; }
@media print {
  @page { size: A4; margin: 14mm; }
  :root { font-size: 10.5px; }
  main { max-width: none; padding: 0; }
  .wide { overflow: visible; }
  thead { display: table-header-group; }
  tr, li, dl div { break-inside: avoid; }
  h2, h3, caption { break-after: avoid; }
}
`;
