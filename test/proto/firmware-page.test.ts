// Checks docs/firmware.md against the code: tables of triggers and times, samples, nanopb’s options. The tables of
// fields are generated, which reference.test.ts checks.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { POWER_MODEL } from '../../proto/power/model.js';
import { schemaFields } from '../../proto/reference/firmware-tables.js';
import { decodeDownlink, decodeUplink, describeUplink } from '../../proto/wire/codec.js';
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
  const texts = schemaFields(schema).filter(({ type }) => type === 'string' || type === 'bytes');
  t.same(
    lines.map((line) => line.split(/\s+/)[0]),
    texts.map(({ message, name }) => `lockgate.v1.${message}.${name}`),
  );
  t.match(lines, [/ max_size:33$/, / max_size:65$/], 'the limits of the page, and the terminating zero');
});
