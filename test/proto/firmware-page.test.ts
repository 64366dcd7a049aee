// Checks docs/firmware.md against the code: tables of fields, triggers and times, samples, nanopb’s options.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { POWER_MODEL } from '../../proto/power/model.js';
import { decodeDownlink, decodeUplink, describeUplink } from '../../proto/wire/codec.js';
import { PING_FIELD_ROWS, type PingType, type PingValue } from '../../proto/wire/ping-fields.js';
import { runCommand } from '../helpers/cli/command-line.js';
import { root } from '../helpers/house/our-files.js';
import { bytesOf } from '../helpers/vectors.js';

const page = readFileSync(join(root, 'docs/firmware.md'), 'utf8');
const schema = readFileSync(join(root, 'proto/lock.proto'), 'utf8');

/** The rows of the table with this heading, each as its cells without code marks. */
function tableOf(...heading: string[]): string[][] {
  const lines = page.split('\n');
  const start = lines.indexOf(`| ${heading.join(' | ')} |`);
  if (start === -1) throw new Error(`docs/firmware.md has no table ${heading.join(', ')}`);
  const end = lines.findIndex((line, index) => index > start && !line.startsWith('|'));
  const cells = (line: string): string[] => line.split(' | ').map((cell) => cell.replace(/^\| | \|$|`/g, ''));
  return lines.slice(start + 2, end).map(cells);
}

interface SchemaField {
  readonly message: string;
  readonly type: string;
  readonly name: string;
  readonly number: string;
}

/** Every field of the schema, in its order. */
function schemaFields(): SchemaField[] {
  return [...schema.matchAll(/^message (\w+) \{\n([\s\S]*?)^\}/gm)].flatMap(([, message = '', body = '']) =>
    [...body.matchAll(/^ +(?:optional )?(\w+) (\w+) = (\d+);/gm)].map(([, type = '', name = '', number = '']) => {
      return { message, type, name, number };
    }),
  );
}

const PINGS: Readonly<Record<PingType, string>> = {
  cellular: 'CellularPing',
  gps: 'GpsPing',
  close_connection: 'CloseConnectionPing',
};
const PING_MESSAGES = Object.values(PINGS);

function valueText(value: PingValue, unit: string): string {
  if (value.kind === 'reason') return 'number of [the reason](../proto/README.md#what-a-lock-sends)';
  if (value.kind === 'text') return 'UTF-8';
  if (value.kind === 'word') return value.words.map((word, number) => `${number} ${word}`).join(', ');
  return value.kind === 'number' && value.perUnit !== 1 ? `${unit.trim()} × ${value.perUnit}` : unit.trim();
}

t.test('the fields of pings are those of the table of ping fields', async (t) => {
  const expected = PING_FIELD_ROWS.map(([, { wire, value, unit }]) => {
    const numbers = (Object.keys(PINGS) as PingType[]).map((type) => String(wire.numbers[type] ?? '–'));
    const type = schemaFields().find(
      ({ message, name }) => PING_MESSAGES.includes(message) && name === wire.name,
    )?.type;
    return [wire.name, ...numbers, type, valueText(value, unit)];
  });
  t.same(tableOf('field', 'cellular', 'GPS', 'close', 'type', 'value on the wire'), expected);
});

t.test('all other fields are those of lock.proto', async (t) => {
  const expected = schemaFields()
    .filter(({ message }) => !PING_MESSAGES.includes(message))
    .map(({ message, name, number, type }) => [message, name, number, type]);
  t.ok(expected.length > 30, 'the schema was read');
  t.same(tableOf('message', 'field', 'number', 'type'), expected);
});

t.test('the triggers are those of the power model', async (t) => {
  const expected = POWER_MODEL.triggers.map(({ trigger, starts, cellularReason, gpsReason, ends }) => {
    return [trigger, starts, cellularReason ?? '–', gpsReason ?? '–', ends];
  });
  t.same(tableOf('trigger', 'starts', 'cellular reason', 'GPS reason', 'ends'), expected);
});

t.test('the times are those that “model show” prints', async (t) => {
  const { stdout } = await runCommand(['model', 'show']);
  const [, times = ''] = /^Times:\n((?: {2}.*\n)+)/m.exec(stdout) ?? [];
  t.same(
    tableOf('time', 'value').map(([name, value]) => `  ${name}: ${value}`),
    times.trimEnd().split('\n'),
  );
});

t.test('the samples say what they are, and are of a first boot', async (t) => {
  const uplinks = tableOf('uplink', 'hex');
  t.ok(uplinks.length >= 6);
  for (const [text, hex = ''] of uplinks) {
    const read = decodeUplink(bytesOf(hex));
    t.equal(read.ok && describeUplink(read.value), text);
    t.equal(read.ok && read.value.boot, 1);
  }
  for (const [text, hex = ''] of tableOf('downlink', 'hex')) {
    const read = decodeDownlink(bytesOf(hex));
    if (!read.ok) throw new Error(read.error.message);
    const { type, ...parameters } = read.value.command;
    t.equal(`${read.value.id} ${type} ${JSON.stringify(parameters)}`.replace(/ \{\}$/, ''), text);
  }
});

t.test('nanopb’s options give a size to each text of the schema, and to nothing else', async (t) => {
  const options = readFileSync(join(root, 'docs/firmware/lock.options'), 'utf8');
  const lines = options.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  const texts = schemaFields().filter(({ type }) => type === 'string' || type === 'bytes');
  t.same(
    lines.map((line) => line.split(/\s+/)[0]),
    texts.map(({ message, name }) => `lockgate.v1.${message}.${name}`),
  );
  t.match(lines, [/ max_size:33$/, / max_size:65$/], 'the limits of the page, and the terminating zero');
});
