/** `lockgate model show`: the power model and the rules as text, JSON or a diagram. */
import { ruleLink } from '../../../proto/citations.js';
import { LockgateError } from '../../../proto/errors.js';
import { type Condition, POWER_MODEL, type StateRow } from '../../../proto/power/model.js';
import { describeModelNumber } from '../../../proto/power/model-number.js';
import { RULES } from '../../../proto/power/rules.js';
import { highWindowToJson } from '../../../proto/wire/ping-json.js';
import { paint, print, printJson, terminalWidth } from '../../terminal/output.js';
import { printTable } from '../../terminal/table.js';

/** The flags of `lockgate model show`. */
export interface ModelFlags {
  readonly rules?: boolean;
  readonly format: 'text' | 'json' | 'mermaid' | 'dot';
  readonly json?: boolean;
}

/** Prints the model or its rules. @throws LockgateError `input-format` for a diagram of the rules: there is none */
export function showModel(flags: ModelFlags): void {
  const format = flags.json ? 'json' : flags.format;
  if (flags.rules && (format === 'mermaid' || format === 'dot'))
    throw new LockgateError('input-format', `the rules have no ${format} diagram: expected --format text or json`);
  if (format === 'json') printJson(flags.rules ? rulesToJson() : modelToJson());
  else if (flags.rules) printRules();
  else if (format === 'text') printModel();
  else for (const line of format === 'mermaid' ? mermaidLines() : dotLines()) print(line);
}

function printRules(): void {
  printTable(RULES, [
    { title: 'RULE', show: (row) => row.rule },
    { title: 'SEVERITY', show: (row) => row.severity },
    { title: 'BROKEN WHEN', show: (row) => row.brokenWhen, prose: true },
  ]);
}

/** The rules, each with the link of its description. */
function rulesToJson(): object {
  return { rules: RULES.map((row) => ({ ...row, link: ruleLink(row.rule) })) };
}

/** The model, with its high window (the hours in which a lock in HIGH stays connected) as times of day. */
function modelToJson(): object {
  return { ...POWER_MODEL, highWindow: highWindowToJson(POWER_MODEL.highWindow) };
}

function printModel(): void {
  print('The effective state is the first that applies.');
  print('');
  printStates();
  print('');
  print('What makes a lock send, earlier triggers first:');
  print('');
  printTable(POWER_MODEL.triggers, [
    { title: 'TRIGGER', show: (row) => row.trigger },
    { title: 'STARTS', show: (row) => row.starts, prose: true },
    { title: 'SENDS', show: sendsText, prose: true },
    { title: 'ENDS', show: (row) => row.ends, prose: true },
  ]);
  printNumbers('Times', POWER_MODEL.timings);
  printNumbers('Bounds of the rules', POWER_MODEL.bounds);
}

/** What a lock may do in a state: titles and texts of the table. */
const ABILITIES: readonly (readonly [title: string, show: (state: StateRow) => string])[] = [
  ['WHEN', (state) => describeCondition(state.when)],
  ['THEFT', (state) => yesOrDash(state.theft)],
  ['PERIOD', (state) => yesOrDash(state.period)],
  ['STATE CHANGE', (state) => yesOrDash(state.stateChange)],
  ['CELL ON IN A RIDE', (state) => yesOrDash(state.cellOnInRide)],
  ['RIDE TRACKING', (state) => (state.rideTracking ? 'if on' : '–')],
  ['COMMANDS', (state) => yesOrDash(state.commands)],
  ['CONNECTION KEPT', (state) => (state.connectionKept === 'never' ? '–' : state.connectionKept)],
];
/** The terminal width that a table with a row for each state needs. */
const FULL_WIDTH = 122;

function yesOrDash(isAllowed: boolean): string {
  return isAllowed ? 'yes' : '–';
}

/** Prints a row for each state, or a column on a narrow terminal. */
function printStates(): void {
  if (terminalWidth() >= FULL_WIDTH) {
    const columns = ABILITIES.map(([title, show]) => ({ title, show }));
    printTable(POWER_MODEL.states, [{ title: 'STATE', show: ({ state }) => state }, ...columns]);
    return;
  }
  const columns = POWER_MODEL.states.map((state) => {
    return { title: state.state, show: ([, show]: (typeof ABILITIES)[number]) => show(state), prose: true };
  });
  printTable(ABILITIES, [{ title: 'STATE', show: ([title]) => title }, ...columns]);
}

/** The pings that a lock sends because of a trigger. */
function sendsText({ cellularReason, gpsReason }: (typeof POWER_MODEL.triggers)[number]): string {
  if (cellularReason === gpsReason) return `cellular and gps ${gpsReason}`;
  const parts = [cellularReason && `cellular ${cellularReason}`, gpsReason && `gps ${gpsReason}`];
  return parts.filter(Boolean).join(', ');
}

/** Prints the numbers of the model with their names. */
function printNumbers(title: string, numbers: object): void {
  print('');
  print(paint('bold', `${title}:`));
  for (const [name, value] of Object.entries(numbers)) print(`  ${wordsOf(name)}: ${describeModelNumber(name, value)}`);
}

/** Splits a camel-case name: `theftGpsEvery` becomes `theft gps every`. */
function wordsOf(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

function describeCondition(when: Condition): string {
  if ('switch' in when) return `${wordsOf(when.switch)} on`;
  return 'mode' in when ? `mode ${when.mode}` : `battery below ${when.batteryBelowPercent} %`;
}

/** A change from one power state to another, for the diagrams. */
interface Transition {
  readonly from: StateRow;
  readonly to: StateRow;
  readonly label: string;
}

/** All transitions: to a state of higher rank when its condition becomes true, and back when it is no longer true. */
function transitions(): Transition[] {
  const all: Transition[] = [];
  const { states } = POWER_MODEL;
  for (const [rank, higher] of states.entries()) {
    for (const lower of states.slice(rank + 1)) {
      all.push({ from: lower, to: higher, label: describeCondition(higher.when) });
      all.push({ from: higher, to: lower, label: `no longer; ${describeCondition(lower.when)}` });
    }
  }
  return all;
}

function mermaidLines(): string[] {
  return [
    'stateDiagram-v2',
    ...POWER_MODEL.states.map((row) => `  ${row.state}: ${row.state} (${describeCondition(row.when)})`),
    '  [*] --> MID',
    // A semicolon would end the statement.
    ...transitions().map(({ from, to, label }) => `  ${from.state} --> ${to.state}: ${label.replace(';', ',')}`),
  ];
}

function dotLines(): string[] {
  return [
    'digraph power {',
    '  rankdir=TB;',
    '  node [shape=box, style=rounded];',
    ...POWER_MODEL.states.map((row) => `  ${row.state} [tooltip="${row.sentence}"];`),
    ...transitions().map(({ from, to, label }) => `  ${from.state} -> ${to.state} [label="${label}"];`),
    '}',
  ];
}
