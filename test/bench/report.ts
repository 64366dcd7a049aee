/** What the bench found, as a table for people, as Markdown for the documentation, and as JSON. */

import { readFileSync } from 'node:fs';
import { cpus, release, totalmem, type } from 'node:os';
import path from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import { wrapWords } from '../../cli/terminal/word-wrap.js';
import { VERSION } from '../../gateway/version.js';
import { root } from '../helpers/house/our-files.js';
import type { Rates } from './measure.js';
import { type Bar, type Comparison, holds, type Row } from './row.js';

const COLUMNS = 80;
const NAME_WIDTH = 27;
const RATES_WIDTH = 21;
const VALUE_WIDTH = 10;
const FLOOR_WIDTH = 10;

/** A number as people read it at a glance: three digits of it count. */
export function shortNumber(value: number): string {
  const size = Math.abs(value);
  if (size >= 999_500) return `${(value / 1e6).toPrecision(3)}M`;
  if (size >= 9_995) return `${(value / 1e3).toPrecision(3)}k`;
  if (size >= 100) return Math.round(value).toLocaleString('en');
  return value.toFixed(size >= 10 ? 1 : 2);
}

function ratesText({ median, least, most }: Rates): string {
  return `${shortNumber(median)} (${shortNumber(least)}–${shortNumber(most)})`;
}

function valueText({ value, measure, unit }: Comparison): string {
  if (value === null) return '–';
  if (measure === 'ratio') return `${value.toFixed(2)} ×`;
  const sign = measure === 'difference' && value >= 0 ? '+' : '';
  return unit.length > 3 ? shortNumber(value) : `${sign}${shortNumber(value)} ${unit}`;
}

function verdict(comparison: Comparison): string {
  const held = holds(comparison);
  return held === null ? '–' : held ? 'yes' : 'no';
}

function barText(bar: Bar | null): string {
  if (bar === null) return '';
  return bar.text.length > FLOOR_WIDTH ? bar.short : bar.text;
}

function comparisonLines(comparison: Comparison): string[] {
  const { name, rates, floor, missing } = comparison;
  const cells = [
    (rates === null ? '' : ratesText(rates)).padEnd(RATES_WIDTH),
    valueText(comparison).padEnd(VALUE_WIDTH),
    barText(floor).padEnd(FLOOR_WIDTH),
    verdict(comparison),
  ];
  const label = name === '' ? 'a fixed bar' : name;
  const named = wrapWords(label, NAME_WIDTH).map((line) => `  ${line}`);
  const last = named.pop() ?? '';
  const lines = [...named, `${last.padEnd(NAME_WIDTH + 2)} ${cells.join(' ')}`.trimEnd()];
  if (missing !== undefined) lines.push(...wrapWords(missing, COLUMNS - 4).map((line) => `    ${line}`));
  return lines;
}

/** The lines of a row, at most 80 columns wide. */
export function rowLines(row: Row): string[] {
  const own = `${'  lockgate'.padEnd(NAME_WIDTH + 2)} ${ratesText(row.rates).padEnd(RATES_WIDTH)} ${row.unit}`;
  return [
    `${row.name}: ${row.title}`,
    own,
    ...row.against.flatMap(comparisonLines),
    ...row.details.flatMap((detail) =>
      wrapWords(detail, COLUMNS - 4).map((line, index) => `${index === 0 ? '  · ' : '    '}${line}`),
    ),
  ];
}

/** The line that says what the columns are. */
export function headLine(): string {
  const head = ['median (least–most)'.padEnd(RATES_WIDTH), 'beside'.padEnd(VALUE_WIDTH), 'floor'.padEnd(FLOOR_WIDTH)];
  return `${''.padEnd(NAME_WIDTH + 2)} ${head.join(' ')} holds`;
}

/** How many floors hold, do not, and were not measured. */
export function closingLine(rows: readonly Row[], broken: readonly string[]): string {
  const bars = rows.flatMap((row) => row.against.map((comparison) => ({ row, comparison })));
  const held = bars.filter(({ comparison }) => holds(comparison) === true);
  const missed = bars.filter(({ comparison }) => holds(comparison) === false);
  const open = bars.filter(({ comparison }) => comparison.value === null);
  const names = (list: typeof bars): string =>
    list.length === 0 ? '' : ` (${[...new Set(list.map(({ row }) => row.name))].join(', ')})`;
  const rest = broken.length === 0 ? '' : `, ${broken.length} rows broke (${broken.join(', ')})`;
  const counts = [
    `${held.length} floors hold`,
    `${missed.length} do not${names(missed)}`,
    `${open.length} not measured${names(open)}`,
  ];
  return `${counts.join(', ')}${rest}.`;
}

/** The machine and the versions that the figures are of. */
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

/** The same for people. */
export function machineLine({ machine: of, versions }: ReturnType<typeof machine>): string {
  const gigabytes = (of.memory_bytes / 2 ** 30).toFixed(0);
  const names = Object.entries(versions).map(([name, version]) => `${name} ${version.replace(/^v/, '')}`);
  return `${of.processor}, ${of.cores} cores, ${gigabytes} GiB, ${of.system}; ${names.join(', ')}`;
}

/** A row as programs read it. */
export function rowJson({ name, title, unit, rates, against, details }: Row): object {
  return {
    name,
    title,
    unit,
    rates,
    against: against.map((comparison) => {
      const { name: peer, rates: peerRates, measure, value, unit: of, floor, aim, missing } = comparison;
      return {
        name: peer,
        rates: peerRates,
        measure,
        value,
        unit: of,
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

/** The table as the documentation has it. */
export function markdownLines(rows: readonly Row[]): string[] {
  const head = ['figure', 'lockgate', 'compared with', 'its figure', 'beside', 'floor', 'holds', 'aim'];
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  const lines = rows.flatMap(({ name, title, unit, rates, against }) => {
    const own = [`\`${name}\`: ${title}`, `${ratesText(rates)} ${unit}`];
    if (against.length === 0) return [line([...own, '–', '–', '–', '–', '–', '–'])];
    return against.map((comparison, index) =>
      line([
        ...(index === 0 ? own : ['', '']),
        comparison.name === '' ? 'a fixed bar' : comparison.name,
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
