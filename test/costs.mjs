// The table of what each test file costs, test/costs.tsv: `npm test -- --costs` writes it, and a run starts the most
// expensive files first, so that none runs alone at the end.
import { existsSync, writeFileSync } from 'node:fs';
import { pathInClone, readOrNull } from '../cli/prepare/workplace.mjs';

const COSTS_FILE = pathInClone('test', 'costs.tsv');
/** CPU seconds of a file that is not in the table yet: more than most files. */
const UNKNOWN_COST = 3;

/** The source file of a compiled test. */
export function sourceOf(file) {
  return file.replace(/^dist\//, '').replace(/\.js$/, '.ts');
}

/** The rows of the table, most expensive file first: CPU and elapsed seconds, and the source file. */
function storedRows() {
  const rows = (readOrNull(COSTS_FILE) ?? '').split('\n').map((line) => line.split('\t'));
  return rows
    .filter(([cpu, , file]) => file !== undefined && Number(cpu) >= 0)
    .map(([cpu, wall, file]) => ({ cpu: Number(cpu), wall: Number(wall), file }));
}

/** A function that returns a compiled file's CPU seconds, as the table has them. */
export function storedCosts() {
  const costs = new Map(storedRows().map(({ file, cpu }) => [file, cpu]));
  return (file) => costs.get(sourceOf(file)) ?? UNKNOWN_COST;
}

/** Parses the output of `times`, a line for the shell and a line for its children: `0m0.001s 0m0.002s`. */
export function cpuSeconds(times) {
  const spans = times.match(/(\d+)m([\d.]+)s/g) ?? [];
  return spans.reduce((sum, span) => {
    const [, minutes, seconds] = /(\d+)m([\d.]+)s/.exec(span);
    return sum + Number(minutes) * 60 + Number(seconds);
  }, 0);
}

/** The table of these runs (`cpu` and `wall` in s), most expensive file first, and the sum of CPU seconds. */
export function costTable(runs) {
  const rows = runs.map(({ cpu, wall, file }) => ({ cpu, wall, file: sourceOf(file) }));
  return { text: tableText(rows), total: rows.reduce((sum, { cpu }) => sum + cpu, 0) };
}

/** Stores what these runs cost. The table keeps the rows of other files that still exist. */
export function writeCosts(runs) {
  const ran = new Set(runs.map(({ file }) => sourceOf(file)));
  const others = storedRows().filter(({ file }) => !ran.has(file) && existsSync(pathInClone(file)));
  writeFileSync(COSTS_FILE, tableText([...runs.map((run) => ({ ...run, file: sourceOf(run.file) })), ...others]));
}

function tableText(rows) {
  const lines = [...rows]
    .sort((a, b) => b.cpu - a.cpu)
    .map(({ cpu, wall, file }) => `${cpu.toFixed(1)}\t${wall.toFixed(1)}\t${file}`);
  return ['CPU s\twall s\tfile', ...lines, ''].join('\n');
}
