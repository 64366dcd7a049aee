// The table of what each test file costs, test/costs.tsv: `npm test -- --costs` writes it, and a run starts the most
// expensive files first, so that none runs alone at the end.
import { writeFileSync } from 'node:fs';
import { clonePath, readOrNull } from '../cli/prepare/workplace.mjs';

const COSTS_FILE = clonePath('test', 'costs.tsv');
/** CPU seconds of a file that is not in the table yet: more than most files. */
const UNKNOWN_COST = 3;

/** The source file of a compiled test. */
export function sourceOf(file) {
  return file.replace(/^dist\//, '').replace(/\.js$/, '.ts');
}

/** A function that returns a compiled file's CPU seconds, as the table has them: CPU s, wall s, source file. */
export function storedCosts() {
  const rows = (readOrNull(COSTS_FILE) ?? '').split('\n').map((line) => line.split('\t'));
  const costs = new Map(rows.filter(([seconds]) => Number(seconds) >= 0).map((row) => [row[2], Number(row[0])]));
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
  const rows = [...runs].sort((a, b) => b.cpu - a.cpu);
  const lines = rows.map(({ cpu, wall, file }) => `${cpu.toFixed(1)}\t${wall.toFixed(1)}\t${sourceOf(file)}`);
  const total = rows.reduce((sum, { cpu }) => sum + cpu, 0);
  return { text: ['CPU s\twall s\tfile', ...lines, ''].join('\n'), total };
}

export function writeCosts(text) {
  writeFileSync(COSTS_FILE, text);
}
