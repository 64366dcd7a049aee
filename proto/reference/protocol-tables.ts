/**
 * The tables of docs/protocol.md: ping fields, reasons, states, triggers, times, rules and bounds, from the data that
 * the program itself reads. Pure.
 */
import { citationsOf } from '../citations.js';
import { type Condition, POWER_MODEL, type StateRow, type TriggerRow } from '../power/model.js';
import { describeModelNumber } from '../power/model-number.js';
import { RULES, type RuleRow } from '../power/rules.js';
import { RULE_WHY } from '../why/rules.js';
import { PING_FIELD_ROWS, type PingField, type PingType } from '../wire/ping-fields.js';
import { REASONS } from '../wire/reasons.js';
import { type GeneratedParts, linkFromDocs, markdownTable } from './generated-parts.js';
import { BOUND_MEANINGS, TIMING_MEANINGS } from './number-meanings.js';

const PING_TYPES: readonly PingType[] = ['cellular', 'gps', 'close_connection'];

/** How the wire carries a field: its name in lock.proto says the unit. */
function wireText({ value, wire }: PingField): string {
  if (value.kind !== 'number') return `\`${wire.name}\``;
  return value.perUnit === 1 ? `\`${wire.name}\`` : `\`${wire.name}\`, × ${value.perUnit.toLocaleString('en-US')}`;
}

function rangeText({ value, plausible, unit }: PingField): string {
  if (value.kind === 'word') return value.words.join(', ');
  if (plausible === undefined) return '–';
  const { min, max, exclusiveMax } = plausible;
  if (max !== undefined) return `${min} to ${max}${unit}`;
  return exclusiveMax === undefined ? `from ${min}${unit}` : `from ${min} to below ${exclusiveMax}${unit}`;
}

function fieldTable(): string {
  const rows = PING_FIELD_ROWS.map(([, field]) => {
    const numbers = PING_TYPES.map((type) => String(field.wire.numbers[type] ?? '–'));
    return [field.label, wireText(field), ...numbers, `\`${field.json}\``, rangeText(field)];
  });
  return markdownTable(['field', 'on the wire', 'cellular', 'GPS', 'close', 'in JSON', 'plausible'], rows);
}

function reasonTable(): string {
  const rows = REASONS.map(({ name, number, meaning }) => {
    const triggers = POWER_MODEL.triggers.filter((row) => row.cellularReason === name || row.gpsReason === name);
    return [String(number), `\`${name}\``, meaning, triggers.map(({ trigger }) => trigger).join(', ') || '–'];
  });
  return markdownTable(['number', 'reason', 'meaning, by the specification', 'trigger'], rows);
}

function conditionText(when: Condition): string {
  if ('switch' in when) return `${when.switch} switch on`;
  return 'mode' in when ? `mode ${when.mode}` : `battery below ${when.batteryBelowPercent} %`;
}

const yesOrDash = (is: boolean): string => (is ? 'yes' : '–');
const KEPT: Readonly<Record<StateRow['connectionKept'], string>> = {
  never: '–',
  'in-window': 'in the high window',
  always: 'always',
};

function stateTable(): string {
  const rows = POWER_MODEL.states.map((row) => [
    `<a id="state-${row.state.toLowerCase().replace('_', '-')}"></a>${row.state}`,
    conditionText(row.when),
    ...[row.theft, row.period, row.stateChange, row.cellOnInRide].map(yesOrDash),
    row.rideTracking ? 'if switched on' : '–',
    yesOrDash(row.commands),
    KEPT[row.connectionKept],
  ]);
  const pings = ['theft', 'period', 'state change', 'cell on in a ride', 'ride tracking'];
  return markdownTable(['state', 'when', ...pings, 'commands', 'connection kept'], rows);
}

function sendsText({ cellularReason, gpsReason }: TriggerRow): string {
  const cellular = cellularReason === null ? [] : [`cellular ${cellularReason}`];
  return [...cellular, ...(gpsReason === null ? [] : [`GPS ${gpsReason}`])].join(', ');
}

function triggerTable(): string {
  const rows = POWER_MODEL.triggers.map((row) => {
    return [`<a id="trigger-${row.trigger}"></a>${row.trigger}`, row.starts, sendsText(row), row.ends];
  });
  return markdownTable(['trigger', 'starts', 'pings', 'ends'], rows);
}

function numberTable(numbers: object, meanings: Readonly<Record<string, string>>): string {
  const rows = Object.entries(numbers).map(([name, value]) => [
    `\`${name}\``,
    describeModelNumber(name, value),
    meanings[name] ?? '',
  ]);
  return markdownTable(['name', 'value', 'meaning'], rows);
}

const RESTS_ON: Readonly<Record<RuleRow['restsOn'], string>> = {
  content: 'what uplinks contain',
  receipt: 'when and how uplinks arrive',
  time: 'time passing',
  world: 'what truly happened',
};

function ruleTable(): string {
  const rows = RULES.map(({ rule, severity, brokenWhen, restsOn }) => {
    const { because, restsOn: section } = RULE_WHY[rule];
    const sources = citationsOf(section).map(({ text, link }) => `[${text}](${linkFromDocs(link)})`);
    const name = `<a id="rule-${rule}"></a>\`${rule}\``;
    return [name, severity, brokenWhen, `${because} (${sources.join('; ')})`, RESTS_ON[restsOn]];
  });
  return markdownTable(['rule', 'severity', 'broken when', 'why', 'rests on'], rows);
}

/** The generated parts of docs/protocol.md. */
export function protocolParts(): GeneratedParts {
  return {
    fields: fieldTable(),
    reasons: reasonTable(),
    states: stateTable(),
    triggers: triggerTable(),
    times: numberTable(POWER_MODEL.timings, TIMING_MEANINGS),
    rules: ruleTable(),
    bounds: numberTable(POWER_MODEL.bounds, BOUND_MEANINGS),
  };
}
