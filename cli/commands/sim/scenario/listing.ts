/** `lockgate sim scenarios`: lists the built-in scenarios, or prints the file of a scenario. */
import { readFileSync } from 'node:fs';
import { builtInFile, builtInNames } from '../../../../firmware-sim/scenario/built-in.js';
import { readScenarioFile } from '../../../../firmware-sim/scenario/reader.js';
import { Days, Hours, type Milliseconds, Minutes, Seconds } from '../../../../proto/clock.js';
import { print, printJson } from '../../../terminal/output.js';
import { printTable } from '../../../terminal/table.js';

/** Prints each scenario's name, number of locks, duration and description. */
export async function listScenarios(asJson = false): Promise<void> {
  const rows = await Promise.all(
    builtInNames().map(async (name) => {
      const { description, locks, startMs, endMs, expectations } = await readScenarioFile(builtInFile(name));
      const seconds = (endMs - startMs) / Seconds(1);
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
    { title: 'LASTS', show: (row) => durationText(Seconds(row.lasts_seconds)) },
    { title: 'WHAT IT SHOWS', show: ({ description }) => description, prose: true },
  ]);
}

/** Prints the file of a scenario, unchanged. @throws LockgateError `input-scenario` for an unknown name */
export async function printScenario(name: string, asJson = false): Promise<void> {
  const file = builtInFile(name);
  const text = readFileSync(file, 'utf8');
  if (asJson) printJson({ name, file, text });
  else print(text.trimEnd());
}

/** A duration such as `1 d 2 h 5 min`; in seconds if it is shorter than a minute. */
function durationText(span: Milliseconds): string {
  const parts: [Milliseconds, string][] = [
    [Days(1), 'd'],
    [Hours(1), 'h'],
    [Minutes(1), 'min'],
  ];
  const words: string[] = [];
  let remaining = span;
  for (const [unit, name] of parts) {
    const count = Math.floor(remaining / unit);
    remaining -= count * unit;
    if (count > 0) words.push(`${count} ${name}`);
  }
  return words.join(' ') || `${span / Seconds(1)} s`;
}
