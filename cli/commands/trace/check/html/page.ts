/**
 * Prints the report of `trace check` as one HTML page without scripts and external resources: counts by rule, what the
 * power model allows, and for each lock a timeline and its findings. The page is printed in parts. For a large trace it
 * shows only the locks with the most findings.
 */

import { LockTimeline } from '../../../../../gateway/console/timeline/trace-timelines.js';
import { print, untilStdoutDrained } from '../../../../terminal/output.js';
import { escapeXml as escapeHtml } from '../../../../terminal/xml-text.js';
import { LINKS_NOTE, linkHtml, ruleHtml } from '../../citation-html.js';
import type { FileReport } from '../checked-file.js';
import type { FindingJson } from '../findings/finding-json.js';
import { knownFindings, plural, type Report } from '../formats/report.js';
import { type SummaryRow, summarize } from '../formats/summary.js';
import type { RequiredRow } from '../required-rows.js';
import { lockChart, modelRows } from './lock-chart.js';
import { STYLE } from './style.js';

/** The maximum number of locks with a timeline per trace. */
const MAX_LOCKS_SHOWN = 50;
/** The maximum number of findings shown per lock. */
const MAX_FINDINGS_SHOWN = 200;

/** Prints the page. */
export async function printHtml(report: Report): Promise<void> {
  const { files, violations, warnings } = report;
  const findings = `${plural(violations, 'violation')} and ${plural(warnings, 'warning')}`;
  const counts = `${findings} in ${plural(files.length, 'trace')}`;
  print('<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">');
  print('<meta name="viewport" content="width=device-width, initial-scale=1">');
  print(`<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">`);
  print(`<title>lockgate trace check: ${counts}</title>\n<style>${STYLE}</style>\n</head>\n<body>\n<main>`);
  print(`<h1>Trace check</h1>\n<p class="${violations > 0 ? 'bad' : 'good'}"><strong>${counts}.</strong></p>`);
  if (report.hasBaseline) print(`<p>${plural(knownFindings(report), 'known finding')} left out.</p>`);
  printRequired(report.required);
  printSummary(summarize(files));
  print('<h2>What each state allows</h2>\n<table>\n<thead><tr><th scope="col">State</th>');
  print(`<th scope="col">Allows</th></tr></thead>\n<tbody>${modelRows().join('\n')}</tbody>\n</table>`);
  print('<p>In a timeline a violation is a filled triangle (▼), a warning an open circle (○).</p>');
  for (const [index, file] of files.entries()) await printFile(file, index);
  print(`${LINKS_NOTE}\n</main>\n</body>\n</html>`);
}

/** The rows of the certificate that the trace was required to show (`--require`). */
function printRequired(required: readonly RequiredRow[]): void {
  if (required.length === 0) return;
  print('<h2>Required rows</h2>\n<table>\n<thead><tr><th scope="col">Row</th><th scope="col">Verdict</th>');
  print('<th scope="col" class="number">Seen</th><th scope="col">First lines</th></tr></thead>\n<tbody>');
  for (const { row, verdict, seen, lines } of required) {
    const count = `<td class="number">${seen.toLocaleString('en-US')}</td>`;
    print(`<tr><th scope="row">${escapeHtml(row)}</th><td>${verdict}</td>${count}${cell(lines.join(', '))}</tr>`);
  }
  print('</tbody>\n</table>');
}

function printSummary(rows: readonly SummaryRow[]): void {
  if (rows.length === 0) return;
  print('<h2>Findings by rule</h2>\n<table>\n<thead><tr><th scope="col">Rule</th><th scope="col">Severity</th>');
  print('<th scope="col" class="number">Findings</th><th scope="col" class="number">Locks</th>');
  print('<th scope="col">Firmware</th></tr></thead>\n<tbody>');
  for (const { rule, severity, findings, locks, firmware } of rows) {
    const versions = [...firmware].map(([version, count]) => `${version}: ${count.toLocaleString('en-US')}`);
    const numbers = [findings, locks].map((count) => `<td class="number">${count.toLocaleString('en-US')}</td>`);
    const first = `<th scope="row">${ruleHtml(rule)}</th><td>${severity}</td>`;
    print(`<tr>${first}${numbers.join('')}${cell(versions.join(', '))}</tr>`);
  }
  print('</tbody>\n</table>');
}

function cell(text: string): string {
  return `<td>${escapeHtml(text)}</td>`;
}

async function printFile(report: FileReport, fileIndex: number): Promise<void> {
  const { file, pings, locks, notes, error, timelines } = report;
  print(`<section>\n<h2>${escapeHtml(file)}</h2>\n<p>${plural(pings, 'ping')} of ${plural(locks, 'lock')}.</p>`);
  if (error !== null) print(`<p class="bad">Not read to its end: ${escapeHtml(error.message)}</p>`);
  if (notes.length > 0) {
    print('<h3>Notes</h3>\n<ul>');
    for (const { line, message } of notes) print(`<li>Line ${line}: ${escapeHtml(message)}</li>`);
    print('</ul>');
  }
  const shown = shownLocks(report);
  for (const [index, { lock, findings, count }] of shown.entries()) {
    await untilStdoutDrained();
    // A trace without events has no times: they are NaN.
    const range = { fromMs: timelines?.fromMs || 0, toMs: timelines?.toMs || 0 };
    print(`<article>\n<h3>${escapeHtml(lock.mac)}</h3>`);
    print(lockChart(lock, findings, range, `f${fileIndex}-l${index}`));
    // A timeline shows every `stride`-th ping.
    const isThinned = lock.stride > 1;
    if (isThinned) print(`<p>The timeline shows one of ${lock.stride} pings (${lock.pingCount} in all).</p>`);
    if (lock.hasMoreStates) print('<p>Later changes of state are not shown.</p>');
    printFindings(findings, count);
    print('</article>');
  }
  if (locks > shown.length) print(`<p>${plural(locks - shown.length, 'further lock')} not shown.</p>`);
  print('</section>');
}

function printFindings(findings: readonly FindingJson[], count: number): void {
  if (count === 0) {
    print('<p>No findings.</p>');
    return;
  }
  print(`<table>\n<caption>${plural(count, 'finding')}</caption>\n<thead><tr><th scope="col">Line</th>`);
  print('<th scope="col">Time</th><th scope="col">Severity</th><th scope="col">Rule</th>');
  print('<th scope="col">Uplink</th><th scope="col">What was found</th>');
  print('<th scope="col">Section</th></tr></thead>\n<tbody>');
  for (const { line, at, severity, rule, boot, sequence, message, section, link } of findings) {
    const mark = `<td class="short ${severity}">${severity === 'violation' ? '▼' : '○'} ${severity}</td>`;
    const uplink = boot === null ? '' : `${boot}/${sequence}`;
    const source = `<td class="short">${linkHtml({ text: section, link })}</td>`;
    const place = `<td class="number">${line}</td>${shortCell(at ?? '')}`;
    print(`<tr>${place}${mark}${shortCell(rule)}${shortCell(uplink)}${cell(message)}${source}</tr>`);
  }
  print('</tbody>\n</table>');
  const more = count - findings.length;
  if (more > 0) print(`<p>${plural(more, 'further finding')} of this lock not shown.</p>`);
}

/** A lock that the page shows. */
interface ShownLock {
  readonly lock: LockTimeline;
  /** The first findings, up to {@link MAX_FINDINGS_SHOWN}. */
  readonly findings: FindingJson[];
  /** The number of all findings. */
  count: number;
}

/** A cell whose text is not wrapped. */
function shortCell(text: string): string {
  return `<td class="short">${escapeHtml(text)}</td>`;
}

/** The locks of a file that the page shows: those with the most findings first. */
function shownLocks({ findings, timelines }: FileReport): ShownLock[] {
  const locks = new Map<string, ShownLock>();
  for (const lock of timelines?.locks ?? []) locks.set(lock.mac, { lock, findings: [], count: 0 });
  for (const { mac } of findings.countedFindings()) {
    const known = locks.get(mac) ?? { lock: new LockTimeline(mac), findings: [], count: 0 };
    known.count += 1;
    locks.set(mac, known);
  }
  const shown = [...locks.values()].sort((a, b) => b.count - a.count).slice(0, MAX_LOCKS_SHOWN);
  const shownByMac = new Map(shown.map((each) => [each.lock.mac, each]));
  for (const finding of findings.all()) {
    const list = shownByMac.get(finding.mac)?.findings;
    if (list !== undefined && list.length < MAX_FINDINGS_SHOWN) list.push(finding);
  }
  return shown;
}
