/** `lockgate sim bugs` and `lockgate sim faults`: list firmware bugs and network faults. */
import { BUGS } from '../../../firmware-sim/faults/bugs.js';
import { FAULTS } from '../../../firmware-sim/faults/faults.js';
import { severityOf } from '../../../proto/power/rules.js';
import { print, printJson } from '../../terminal/output.js';
import { printTable } from '../../terminal/table.js';

/** Prints the firmware bugs. */
export function printBugs(asJson = false): void {
  // `also`: further rules that the bug breaks. `shows`: which locks show the bug, and when.
  const rows = BUGS.map(({ name, rule, also = [], sentence, shows, wrapVirtualLink }) => {
    const severity = rule === null ? null : severityOf(rule);
    return { name, rule, severity, also, sentence, shows, virtual_only: wrapVirtualLink !== undefined };
  });
  if (asJson) {
    printJson({ bugs: rows });
    return;
  }
  printTable(rows, [
    { title: 'BUG', show: (row) => (row.virtual_only ? `${row.name} *` : row.name) },
    { title: 'BREAKS', show: (row) => row.rule ?? 'no rule †' },
    { title: 'WHAT THE LOCK DOES', show: (row) => row.sentence, prose: true },
    { title: 'SHOWN BY', show: (row) => row.shows, optional: true },
  ]);
  print('\n* Virtual runs only: impossible over a real MQTT connection.');
  print('† No rule detects it: compare the trace with what truly happened (sim run --world).');
}

/** Prints the network faults. */
export function printFaults(asJson = false): void {
  if (asJson) printJson({ faults: FAULTS });
  else
    printTable(FAULTS, [
      { title: 'FAULT', show: (row) => row.name },
      { title: 'WHAT THE NETWORK DOES', show: (row) => row.sentence, prose: true },
    ]);
}
