/** `device list` at scale, and names and labels from the command line and from import (interfaces.md §4). */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import type { Gateway } from '../../gateway/gateway.js';
import { formatMac } from '../../proto/wire/mac.js';
import { runCommand } from '../helpers/cli/command-line.js';
import { MERCHANT, testGateway, testMac } from '../helpers/gateway/test-gateway.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

/** More than the gateway returns in two answers, each of at most 1000 locks. */
const LOCKS = 2_300;

const lockgate = async (gateway: Gateway, args: readonly string[], columns?: number) =>
  await runCommand(args, {
    ...(columns !== undefined && { columns }),
    environment: {
      LOCKGATE_GATEWAY: `http://127.0.0.1:${gateway.operatorPort}`,
      LOCKGATE_TOKEN: gateway.operatorToken,
    },
  });

/** Parses the JSON that a list printed. */
function parseList(text: string): { devices: { mac: string; name: string | null }[]; next_cursor: string | null } {
  return JSON.parse(text);
}

t.test('a list of thousands of locks is one JSON document, and a cursor gives the next locks', async (t) => {
  const gateway = await testGateway(t);
  const devices = Array.from({ length: LOCKS }, (_, index) => ({
    mac: formatMac(testMac(index + 1)),
    merchant: MERCHANT,
  }));
  await gateway.accounts.importDevices(devices, {});
  const all = parseList((await lockgate(gateway, ['device', 'list', '--json', '--limit', '5000'])).stdout);
  t.equal(new Set(all.devices.map(({ mac }) => mac)).size, LOCKS);
  t.equal(all.next_cursor, null);
  const firstPage = parseList((await lockgate(gateway, ['device', 'list', '--json', '--limit', '2000'])).stdout);
  t.equal(firstPage.devices.length, 2_000);
  const { next_cursor: cursor } = firstPage;
  const secondPage = parseList(
    (await lockgate(gateway, ['device', 'list', '--json', '--limit', '5000', '--cursor', cursor ?? ''])).stdout,
  );
  t.strictSame([...firstPage.devices, ...secondPage.devices], all.devices);
  const table = await lockgate(gateway, ['device', 'list'], 80);
  t.equal(table.stdout.trim().split('\n').length, 101, 'a line of titles and, by default, a hundred locks');
  t.match(table.stderr, /These are the first 100. More: a higher --limit, or --cursor \S+/);
  const otherOrder = await lockgate(gateway, ['device', 'list', '--sort', 'mac', '--cursor', cursor ?? '']);
  t.match(otherOrder, { code: 2, stderr: /cursor: expected the next_cursor of an answer to the same query/ });
});

t.test('names and labels can be imported with commas or semicolons, set, and used as filters', async (t) => {
  const gateway = await testGateway(t);
  const folder = tempFolder(t);
  const writeCsv = (name: string, text: string): string => {
    writeFileSync(path.join(folder, name), text);
    return path.join(folder, name);
  };
  const [mac1, mac2, mac3, mac4] = [1, 2, 3, 4].map((number) => formatMac(testMac(number)));
  const commas = writeCsv('commas.csv', `mac,name,labels\n${mac1},"Harbour 1, pier",city=Hamburg;row=1\n${mac2},,\n`);
  const semicolons = writeCsv('semicolons.csv', `\ufeffmac;labels;name\n${mac3};"city=Köln, row=2";Dom\n${mac4};;\n`);
  for (const file of [commas, semicolons]) {
    const imported = await lockgate(gateway, ['device', 'import', file]);
    t.equal(imported.code, 0, imported.stderr);
  }
  const names = async (...flags: string[]) => {
    const { stdout } = await lockgate(gateway, ['device', 'list', '--json', '--sort', 'mac', ...flags]);
    return parseList(stdout).devices.map(({ name }) => name);
  };
  t.strictSame(await names(), ['Harbour 1, pier', null, 'Dom', null]);
  t.strictSame(await names('--label', 'city'), ['Harbour 1, pier', 'Dom']);
  t.strictSame(await names('--label', 'city=Köln', '--label', 'row=2'), ['Dom']);
  t.strictSame(await names('--search', 'PIER'), ['Harbour 1, pier']);
  t.strictSame(await names('--presence', 'late,online'), []);
  t.strictSame(await names('--state', 'low-battery,Locked'), [], 'states in any spelling');
  const typed = await lockgate(gateway, ['device', 'list', '--state', 'foo-bar']);
  t.match(typed, { code: 2, stderr: /--state is "foo-bar": expected locked, unlocked, theft/ }, 'as it was typed');
  const set = await lockgate(gateway, ['device', 'set', mac2 ?? '', '--name', 'Harbour 2', '--labels', 'city=Hamburg']);
  t.match(set.stdout, /named "Harbour 2"\.\nLabels: city=Hamburg/);
  t.strictSame(await names('--label', 'city=Hamburg'), ['Harbour 1, pier', 'Harbour 2']);
  t.match((await lockgate(gateway, ['device', 'show', mac2 ?? ''])).stdout, /Harbour 2 {2}city=Hamburg/);
  t.match((await lockgate(gateway, ['device', 'list'], 200)).stdout, /NAME .*LABELS/);
  await lockgate(gateway, ['device', 'set', mac2 ?? '', '--name', '', '--labels', '']);
  t.strictSame(await names('--label', 'city=Hamburg'), ['Harbour 1, pier']);
  t.match((await lockgate(gateway, ['device', 'list', '--search', 'nobody'])).stderr, /No locks match/);
});

t.test('bad names, labels and flags are refused with what was expected', async (t) => {
  const gateway = await testGateway(t);
  const file = path.join(tempFolder(t), 'bad.csv');
  const mac = formatMac(testMac(1));
  const lines = `mac,name,labels\n${mac},${'x'.repeat(61)},\n${formatMac(testMac(2))},a,city\n`;
  writeFileSync(file, lines);
  const bad = await lockgate(gateway, ['device', 'import', file]);
  t.match(bad, { code: 2, stderr: /bad\.csv:2: the name: expected at most 60 characters/ });
  t.match(bad.stderr, /bad\.csv:3: "city" is no label: expected key=value/);
  t.match(await lockgate(gateway, ['device', 'list', '--presence', 'gone']), {
    code: 2,
    stderr: /gone.*expected|expected.*late/s,
  });
  t.match(await lockgate(gateway, ['device', 'list', '--sort', 'colour']), { code: 2, stderr: /trouble/ });
  t.match(await lockgate(gateway, ['device', 'list', '--merchant', 'Nobody']), {
    code: 3,
    stderr: /no merchant named/,
  });
  t.match(await lockgate(gateway, ['device', 'set', mac, '--labels', 'a b=1']), { code: 2, stderr: /letters, digits/ });
});
