// Checks proto/README.md against the code: its sample of bytes, its tables, and its list of files.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { POWER_MODEL } from '../../proto/power/model.js';
import { decodeUplink, describeUplink } from '../../proto/wire/codec.js';
import { REASONS } from '../../proto/wire/reasons.js';
import { ourFiles, root } from '../helpers/house/our-files.js';
import { bytesOf, readVectors } from '../helpers/vectors.js';

const readme = readFileSync(join(root, 'proto/README.md'), 'utf8');

/** The rows of the table whose heading starts with these cells; each row is a list of cells. */
function tableOf(...heading: string[]): string[][] {
  const lines = readme.split('\n');
  const start = lines.findIndex((line) => line.startsWith(`| ${heading.join(' | ')} |`));
  if (start === -1) throw new Error(`proto/README.md has no table ${heading.join(', ')}`);
  const after = lines.slice(start + 2);
  return after
    .slice(
      0,
      after.findIndex((line) => !line.startsWith('|')),
    )
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
}

t.test('the ping that the README explains byte by byte is a sample, and its length is correct', async (t) => {
  const block = /^```\n(08 01 [^`]*)```$/m.exec(readme)?.[1] ?? '';
  const hex = block.replace(/^((?:[0-9a-f]{2} )+).*$/gm, '$1').replace(/\s/g, '');
  const vector = readVectors('pings').find((candidate) => candidate.hex === hex);
  t.equal(vector?.name, 'gps: a theft in a first boot, the sample of proto/README.md');
  t.match(readme, `This is all of what it sends, ${hex.length / 2} bytes`);
  const result = decodeUplink(bytesOf(hex));
  t.equal(
    result.ok && describeUplink(result.value),
    'gps REASON_THEFT locked 64% 52.3702157,4.8951679 ±5m 6.12 m/s 87.45° e-bike 36.7 V tethered  #1/14',
  );
});

t.test('the table of reasons is the same as in the code', async (t) => {
  const rows = tableOf('number', 'reason').map(([number, reason]) => [Number(number), reason]);
  t.strictSame(
    rows,
    REASONS.map(({ number, name }) => [number, name]),
  );
});

t.test('the table of states is the same as in the power model', async (t) => {
  const connection = { never: '–', 'in-window': 'in the high window', always: 'always' };
  const yes = (on: boolean, word = 'yes') => (on ? word : '–');
  const expected = POWER_MODEL.states.map((row) => {
    let when = '';
    if ('switch' in row.when) when = `${row.when.switch} switch on`;
    else if ('mode' in row.when) when = `mode ${row.when.mode}`;
    else when = `battery below ${row.when.batteryBelowPercent} %`;
    const pings = [row.theft, row.period, row.stateChange, row.cellOnInRide].map((on) => yes(on));
    return [
      row.state,
      when,
      ...pings,
      yes(row.rideTracking, 'if switched on'),
      yes(row.commands),
      connection[row.connectionKept],
    ];
  });
  t.strictSame(tableOf('state', 'when'), expected);
});

t.test('the list of files names all files and folders of proto/, and no others', async (t) => {
  const listed = tableOf('file', 'what it is').map(([name]) => name?.replaceAll('`', '') ?? '');
  const names = ourFiles()
    .filter((path) => path.startsWith('proto/') && path !== 'proto/README.md')
    .map((path) => path.slice('proto/'.length).replace(/^([^/]+\/).*/, '$1'));
  t.strictSame([...listed].sort(), [...new Set(names)].sort(), 'a new file gets a row under "The files"');
});
