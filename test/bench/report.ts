/** Formats the results of the bench: as a table for people, as Markdown for the documentation, and as JSON. */

import { readFileSync } from 'node:fs';
import { cpus, release, totalmem, type } from 'node:os';
import path from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import { wrapWords } from '../../cli/terminal/word-wrap.js';
import { VERSION } from '../../gateway/version.js';
import { root } from '../helpers/house/our-files.js';
import type { FigureSummary } from './measure.js';
import { type BenchRow, type Bound, type Comparison, holds } from './row.js';

/** Widths of the table and of its columns, in characters. */
const COLUMNS = 80;
const NAME_WIDTH = 27;
const RATES_WIDTH = 21;
const VALUE_WIDTH = 10;
const FLOOR_WIDTH = 10;

/** A number with three significant digits. */
export function shortNumber(value: number): string {
  const size = Math.abs(value);
  // From these limits on, rounding gives the next unit.
  if (size >= 999_500) return `${(value / 1e6).toPrecision(3)}M`;
  if (size >= 9_995) return `${(value / 1e3).toPrecision(3)}k`;
  if (size >= 100) return Math.round(value).toLocaleString('en');
  return value.toFixed(size >= 10 ? 1 : 2);
}

/** The median, and in brackets the smallest and largest figure. */
function ratesText({ median, minimum, maximum }: FigureSummary): string {
  return `${shortNumber(median)} (${shortNumber(minimum)}–${shortNumber(maximum)})`;
}

/** What a comparison gives: a ratio (`1.20 ×`), a difference (`+3.10 ms`), or the figure itself. */
function valueText({ value, measure, unit }: Comparison): string {
  if (value === null) return '–';
  if (measure === 'ratio') return `${value.toFixed(2)} ×`;
  const sign = measure === 'difference' && value >= 0 ? '+' : '';
  // A longer unit does not fit into the column.
  return unit.length > 3 ? shortNumber(value) : `${sign}${shortNumber(value)} ${unit}`;
}

/** Whether the floor holds, as a word. */
function verdict(comparison: Comparison): string {
  const isHeld = holds(comparison);
  return isHeld === null ? '–' : isHeld ? 'yes' : 'no';
}

/** A bound, without its unit if the column is too narrow. */
function boundText(bound: Bound | null): string {
  if (bound === null) return '';
  return bound.text.length > FLOOR_WIDTH ? bound.short : bound.text;
}

/** The lines of a comparison with a peer or a fixed limit. */
function comparisonLines(comparison: Comparison): string[] {
  const { name, rates, floor, missing } = comparison;
  const cells = [
    (rates === null ? '' : ratesText(rates)).padEnd(RATES_WIDTH),
    valueText(comparison).padEnd(VALUE_WIDTH),
    boundText(floor).padEnd(FLOOR_WIDTH),
    verdict(comparison),
  ];
  const label = name === '' ? 'a fixed limit' : name;
  const nameLines = wrapWords(label, NAME_WIDTH).map((line) => `  ${line}`);
  const last = nameLines.pop() ?? '';
  const lines = [...nameLines, `${last.padEnd(NAME_WIDTH + 2)} ${cells.join(' ')}`.trimEnd()];
  if (missing !== undefined) lines.push(...wrapWords(missing, COLUMNS - 4).map((line) => `    ${line}`));
  return lines;
}

/** The lines of a row, at most 80 columns wide. */
export function rowLines(row: BenchRow): string[] {
  const lockgateLine = `${'  lockgate'.padEnd(NAME_WIDTH + 2)} ${ratesText(row.rates).padEnd(RATES_WIDTH)} ${row.unit}`;
  return [
    `${row.name}: ${row.title}`,
    lockgateLine,
    ...row.against.flatMap(comparisonLines),
    ...row.details.flatMap((detail) =>
      wrapWords(detail, COLUMNS - 4).map((line, index) => `${index === 0 ? '  · ' : '    '}${line}`),
    ),
  ];
}

/** The heading of the columns. */
export function headLine(): string {
  const head = ['median (min–max)'.padEnd(RATES_WIDTH), 'compared'.padEnd(VALUE_WIDTH), 'floor'.padEnd(FLOOR_WIDTH)];
  return `${''.padEnd(NAME_WIDTH + 2)} ${head.join(' ')} holds`;
}

/** One sentence: how many floors hold, do not hold, and were not measured. */
export function closingLine(rows: readonly BenchRow[], broken: readonly string[]): string {
  const comparisons = rows.flatMap((row) => row.against.map((comparison) => ({ row, comparison })));
  const heldFloors = comparisons.filter(({ comparison }) => holds(comparison) === true);
  const missedFloors = comparisons.filter(({ comparison }) => holds(comparison) === false);
  const unmeasured = comparisons.filter(({ comparison }) => comparison.value === null);
  const names = (list: typeof comparisons): string =>
    list.length === 0 ? '' : ` (${[...new Set(list.map(({ row }) => row.name))].join(', ')})`;
  const failures = broken.length === 0 ? '' : `, ${broken.length} rows failed (${broken.join(', ')})`;
  const counts = [
    `${heldFloors.length} floors hold`,
    `${missedFloors.length} do not${names(missedFloors)}`,
    `${unmeasured.length} not measured${names(unmeasured)}`,
  ];
  return `${counts.join(', ')}${failures}.`;
}

/** The machine and the versions with which the figures were measured. */
export function machine(): {
  readonly machine: { processor: string; cores: number; memory_bytes: number; system: string };
  readonly versions: Readonly<Record<string, string>>;
} {
  const db = new SqliteDatabase(':memory:');
  const sqlite = db.prepare('SELECT sqlite_version()').pluck().get() as string;
  db.close();
  const { dependencies } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
  };
  const { aedes = '', got = '', mqtt = '' } = dependencies;
  return {
    machine: {
      processor: cpus()[0]?.model.trim() ?? '',
      cores: cpus().length,
      memory_bytes: totalmem(),
      system: `${type()} ${release()}`,
    },
    versions: { lockgate: VERSION, node: process.version, sqlite, aedes, got, mqtt },
  };
}

/** The machine and the versions as one line of text. */
export function machineLine({ machine: hardware, versions }: ReturnType<typeof machine>): string {
  const gigabytes = (hardware.memory_bytes / 2 ** 30).toFixed(0);
  const names = Object.entries(versions).map(([name, version]) => `${name} ${version.replace(/^v/, '')}`);
  return `${hardware.processor}, ${hardware.cores} cores, ${gigabytes} GiB, ${hardware.system}; ${names.join(', ')}`;
}

/** The figures as JSON. Scripts read these member names, so they must not change. */
function ratesJson({ median, minimum, maximum }: FigureSummary): object {
  return { median, least: minimum, most: maximum };
}

/** The JSON of a row. */
export function rowJson({ name, title, unit, rates, against, details }: BenchRow): object {
  return {
    name,
    title,
    unit,
    rates: ratesJson(rates),
    against: against.map((comparison) => {
      const { name: peer, rates: peerRates, measure, value, unit: comparedUnit, floor, aim, missing } = comparison;
      return {
        name: peer,
        rates: peerRates === null ? null : ratesJson(peerRates),
        measure,
        value,
        unit: comparedUnit,
        floor: floor?.text ?? null,
        aim: aim?.text ?? null,
        holds: holds(comparison),
        reaches_aim: value === null || aim === null ? null : aim.holds(value),
        ...(missing !== undefined && { missing }),
      };
    }),
    details,
  };
}

/** The lines of the Markdown table. */
export function markdownLines(rows: readonly BenchRow[]): string[] {
  const head = ['figure', 'lockgate', 'compared with', 'its figure', 'measure', 'floor', 'holds', 'aim'];
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  const lines = rows.flatMap(({ name, title, unit, rates, against }) => {
    const lockgateCells = [`\`${name}\`: ${title}`, `${ratesText(rates)} ${unit}`];
    if (against.length === 0) return [line([...lockgateCells, '–', '–', '–', '–', '–', '–'])];
    return against.map((comparison, index) =>
      line([
        ...(index === 0 ? lockgateCells : ['', '']),
        comparison.name === '' ? 'a fixed limit' : comparison.name,
        comparison.rates === null ? '–' : ratesText(comparison.rates),
        valueText(comparison),
        comparison.floor?.text ?? '–',
        verdict(comparison),
        comparison.aim?.text ?? '–',
      ]),
    );
  });
  return [line(head), `|${head.map(() => '---').join('|')}|`, ...lines];
}
