/** What `lockgate sim scenarios` prints: the stock scenarios, or the file of one. */
import { readFileSync } from 'node:fs';
import { readScenarioFile } from '../../../../firmware-sim/scenario/reader.js';
import { stockFile, stockNames } from '../../../../firmware-sim/scenario/stock.js';
import { Days, Hours, type Milliseconds, Minutes } from '../../../../proto/clock.js';
import { print, printJson } from '../../../terminal/output.js';
import { printTable } from '../../../terminal/table.js';

/** Lists them: name, what each shows, how many locks, how long. */
export async function listScenarios(asJson = false): Promise<void> {
  const rows = await Promise.all(
    stockNames().map(async (name) => {
      const { description, locks, startMs, endMs, expectations } = await readScenarioFile(stockFile(name));
      const seconds = (endMs - startMs) / 1000;
      return { name, description, locks: locks.length, lasts_seconds: seconds, expectations: expectations.length };
    }),
  );
  if (asJson) {
    printJson({ scenarios: rows });
    return;
  }
  printTable(rows, [
    { title: 'SCENARIO', show: ({ name }) => name },
    { title: 'LOCKS', show: ({ locks }) => String(locks) },
    { title: 'LASTS', show: (row) => lastsText(row.lasts_seconds * 1000) },
    { title: 'WHAT IT SHOWS', show: ({ description }) => description, prose: true },
  ]);
}

/** Prints the file of one, as it is. @throws LockgateError `input-scenario` where there is none of that name */
export async function printScenario(name: string, asJson = false): Promise<void> {
  const file = stockFile(name);
  const text = readFileSync(file, 'utf8');
  if (asJson) printJson({ name, file, text });
  else print(text.trimEnd());
}

function lastsText(span: Milliseconds): string {
  const parts: [Milliseconds, string][] = [
    [Days(1), 'd'],
    [Hours(1), 'h'],
    [Minutes(1), 'min'],
  ];
  const words: string[] = [];
  let left = span;
  for (const [unit, name] of parts) {
    const count = Math.floor(left / unit);
    left -= count * unit;
    if (count > 0) words.push(`${count} ${name}`);
  }
  return words.join(' ') || `${span / 1000} s`;
}
