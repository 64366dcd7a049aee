/**
 * The command line on a real terminal: tables, --watch, questions, progress and completion. `new Terminal(t, 80, 24)`
 * has 80 columns and 24 rows.
 */
import { spawn, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import t from 'tap';
import { addressFile } from '../../cli/client.js';
import { COMPLETION_SCRIPTS } from '../../cli/commands/completion/scripts.js';
import { widthOf } from '../../cli/terminal/text-width.js';
import type { Gateway } from '../../gateway/gateway.js';
import { LOCKGATE } from '../helpers/cli/program.js';
import { NO_TERMINAL, Terminal } from '../helpers/cli/terminal.js';
import { MERCHANT, openGateway, testBytes, testMac, waitForEvents } from '../helpers/gateway/test-gateway.js';
import { testReceiver } from '../helpers/gateway/test-receiver.js';
import { connectedLock } from '../helpers/mqtt/test-lock.js';
import { type Teardown, tempFolder } from '../helpers/store/temp-folder.js';

/** The first character of colour codes. */
const ESCAPE = '\u001b';

/** A gateway whose data folder contains its address, so that commands find it. */
async function gatewayOn(test: Teardown, folder: string): Promise<Gateway> {
  const gateway = await openGateway(test, folder);
  writeFileSync(addressFile(folder), `http://127.0.0.1:${gateway.operatorPort}\n`);
  return gateway;
}

t.test('device show and webhook deliveries fit 80 columns without cutting ids', { skip: NO_TERMINAL }, async (t) => {
  const folder = tempFolder(t);
  const gateway = await gatewayOn(t, folder);
  await gateway.accounts.addMerchant(MERCHANT);
  const receiver = await testReceiver(t);
  await gateway.accounts.addWebhookUrl({ url: receiver.url });
  const delivered = waitForEvents(gateway, 'delivery', 1);
  const lock = await connectedLock(t, gateway, testMac(1));
  await lock.send(testBytes(1));
  const [{ eventId } = { eventId: '' }] = await delivered;
  const terminal = new Terminal(t, 80, 24, { LOCKGATE_DATA: folder });
  terminal.typeLine(`lockgate webhook deliveries; lockgate device show ${testMac(1)}; echo over`);
  const screen = await terminal.waitForScreen(/^over/m);
  const lines = screen.split('\n');
  t.ok(lines.includes(`    ${eventId}`), screen);
  t.match(screen, /^✓ delivered +(now|\d+ s ago) +\S+ +1 +1 +204 in \d+ ms$/m);
  t.match(screen, /^SIM active since \S+\nused in 20\d\d-\d\d: [\d.]+ k?B, 1 message, 1 connection$/m);
});

t.test(
  'a watched list is redrawn, survives a restart of the gateway, and restores the terminal',
  {
    skip: NO_TERMINAL,
  },
  async (t) => {
    const folder = tempFolder(t);
    const gateway = await gatewayOn(t, folder);
    await gateway.accounts.addMerchant('東京自転車');
    const terminal = new Terminal(t, 80, 24, { LOCKGATE_DATA: folder });
    // The shell shows its prompt before it gets the line.
    await terminal.waitForScreen(/^\$\s*$/);
    terminal.typeLine('echo before; lockgate device list --watch 0.5');
    await terminal.waitForScreen(/There is no lock yet/);
    t.equal(terminal.tmuxVariable('alternate_on'), '1', 'the alternate screen is shown');
    t.equal(terminal.tmuxVariable('cursor_flag'), '0', 'the cursor is hidden');
    await gateway.accounts.addDevice({ mac: testMac(1), merchant: '東京自転車' });
    const seen = await terminal.waitForScreen(/A4:C1:38:00:00:01 .*never-seen/);
    t.match(seen, /^lockgate device list, every 0.5 s\. Ctrl-C quits\./);
    t.notMatch(seen, /no lock yet/, 'the previous screen is replaced');
    terminal.resize(40, 12);
    await terminal.waitForScreen(/^MAC +A4:C1:38:00:00:01$/m);
    terminal.resize(80, 24);
    await terminal.waitForScreen(/A4:C1:38:00:00:01 .*never-seen/);
    await gateway.close();
    t.match(await terminal.waitForScreen(/no gateway at/), /A4:C1:38:00:00:01/, 'the last result stays');
    const again = await gatewayOn(t, folder);
    await again.accounts.addDevice({ mac: testMac(2), merchant: '東京自転車' });
    t.notMatch(await terminal.waitForScreen(/A4:C1:38:00:00:02/), /no gateway/);
    terminal.pressKeys('C-c');
    terminal.typeLine('echo code $?');
    t.match(await terminal.waitForScreen(/^code \d/m), /^\$ echo before;.*\nbefore\n.*code 130\n/s);
    t.same(
      [terminal.tmuxVariable('alternate_on'), terminal.tmuxVariable('cursor_flag'), terminal.tmuxVariable('wrap_flag')],
      ['0', '1', '1'],
      'the usual screen, a visible cursor, and long lines that wrap',
    );
  },
);

t.test('in a pipe --watch prints a JSON line per refresh, until the reader closes the pipe', async (t) => {
  const folder = tempFolder(t);
  const gateway = await gatewayOn(t, folder);
  await gateway.accounts.addMerchant('Amber');
  const line = `${process.execPath} ${LOCKGATE} merchant list --json --watch 0.5 | head -2; echo "\${PIPESTATUS[0]}"`;
  const { stdout, stderr } = await bash(line, { LOCKGATE_DATA: folder });
  const lines = stdout.trim().split('\n');
  t.equal(lines.length, 3);
  for (const each of lines.slice(0, 2)) t.match(JSON.parse(each), { merchants: [{ name: 'Amber' }] });
  t.equal(lines[2], '0', 'a closed pipe is no failure');
  t.equal(stderr, '');
});

/** Runs a line in bash, and returns its output. */
async function bash(line: string, environment: NodeJS.ProcessEnv): Promise<{ stdout: string; stderr: string }> {
  const child = spawn('bash', ['--norc', '-c', line], { env: { PATH: process.env.PATH, ...environment } });
  const output = { stdout: '', stderr: '' };
  child.stdout.on('data', (chunk: Buffer) => (output.stdout += chunk));
  child.stderr.on('data', (chunk: Buffer) => (output.stderr += chunk));
  await new Promise((resolve) => child.on('close', resolve));
  return output;
}

t.test('widthOf agrees with the columns that a terminal uses', { skip: NO_TERMINAL }, async (t) => {
  const folder = tempFolder(t);
  const texts = [
    'abc',
    '東京自転車',
    'Zu\u0308rich',
    'ｶﾀｶﾅ',
    '한글',
    '🚲 Vélos',
    'ＡＢ',
    '「引用」',
    '–…█▌',
    'ﾊﾞｲｸ',
    'दिल्ली',
  ];
  const terminal = new Terminal(t, 80, 24);
  for (const [index, text] of texts.entries()) {
    const file = path.join(folder, `text-${index}`);
    writeFileSync(file, text);
    // The escape sequence sets the title, so that the text before it is on the screen when the title is. `read` waits
    // for Enter, so that the prompt does not move the cursor.
    terminal.typeLine(`clear; printf '%s' "$(cat ${file})"; printf '\\033]2;shown-${index}\\007'; read`);
    while (terminal.tmuxVariable('pane_title') !== `shown-${index}`) await terminal.waitForScreen(/./s);
    t.equal(terminal.tmuxVariable('cursor_x'), String(widthOf(text)), text);
    terminal.pressKeys('Enter');
  }
});

t.test('tables and help fit 80 and 200 columns, and have colours only if wanted', { skip: NO_TERMINAL }, async (t) => {
  const folder = tempFolder(t);
  const gateway = await gatewayOn(t, folder);
  const merchants = ['Amber Bikes of the whole long river bank', '東京自転車', '🚲 Vélos'];
  for (const [index, name] of merchants.entries()) {
    await gateway.accounts.addMerchant(name);
    await gateway.accounts.addDevice({ mac: testMac(index + 1), merchant: name });
  }
  const narrow = new Terminal(t, 80, 60, { LOCKGATE_DATA: folder });
  narrow.typeLine('lockgate device list; echo end');
  const table = await narrow.waitForScreen(/^end$/m);
  t.match(table, /\nA4:C1:38:00:00:03 .*\nend\n/, 'each row is one line');
  t.notMatch(table, /MERCHANT/, 'optional columns are dropped');
  await narrow.clear();
  narrow.typeLine('lockgate model show; echo end');
  t.notMatch(await narrow.waitForScreen(/^end$/m), /…/, 'no word of the model is cut');
  t.match(narrow.screen(), /network ping every: 15 min/);
  await narrow.clear();
  narrow.typeLine('lockgate command send --help; echo end');
  const help = await narrow.waitForScreen(/^end$/m);
  t.match(help, /^A lock gets its commands one at a time, in order, when it is next reachable, and$/m);
  t.match(help, /^executes each once\. Unlock, lock and siren expire/m, 'paragraphs are rewrapped');
  const wide = new Terminal(t, 200, 40, { LOCKGATE_DATA: folder });
  wide.typeLine('lockgate device list; NO_COLOR=1 lockgate merchant list; TERM=dumb lockgate merchant list; echo end');
  const isStyled = true;
  const styled = await wide.waitForScreen(/^end$/m, isStyled);
  t.match(styled, new RegExp(`${ESCAPE}\\[1mMAC .* MERCHANT .* RECEIVED`));
  t.match(
    styled,
    /^NAME +ADDED +NOTIFIED AT\n.*\n.*\n.*\nNAME +ADDED +NOTIFIED AT$/m,
    'no colours with NO_COLOR or TERM=dumb',
  );
  t.match(styled, /^東京自転車 {32}(now|\d+ s ago) +–$/m, 'wide letters are two columns');
  await wide.clear();
  wide.typeLine('lockgate merchant list | cat; FORCE_COLOR=1 lockgate merchant list | cat; echo end');
  t.match(
    await wide.waitForScreen(/^end$/m, isStyled),
    new RegExp(`^NAME +ADDED +NOTIFIED AT\n.*\n.*\n.*\n${ESCAPE}\\[1mNAME`, 'm'),
  );
  await wide.clear();
  const prices = '--per-mb 1.2 --per-sim 0.5 --currency EUR --from 2030-01';
  wide.typeLine(`lockgate usage plan set 東京自転車 ${prices}; echo end`);
  t.match(
    await wide.waitForScreen(/^end$/m, isStyled),
    new RegExp(`per active SIM and month, from ${ESCAPE}\\[1m2030-01`),
    'the colour of a part of a sentence is not taken for a control character of its text',
  );
});

t.test('a terminal is asked for confirmation, and Ctrl-C cancels', { skip: NO_TERMINAL }, async (t) => {
  const folder = tempFolder(t);
  const gateway = await gatewayOn(t, folder);
  await gateway.accounts.addMerchant('Amber');
  await gateway.accounts.addDevice({ mac: testMac(1), merchant: 'Amber' });
  const terminal = new Terminal(t, 80, 24, { LOCKGATE_DATA: folder });
  const ask = async (): Promise<void> => {
    await terminal.clear();
    terminal.typeLine('lockgate device erase a4-c1-38-00-00-01; echo code $?');
    await terminal.waitForScreen(/Erase all positions and pings of A4:C1:38:00:00:01 permanently\? Type yes:/);
  };
  await ask();
  terminal.typeLine('no');
  await terminal.waitForScreen(/Type yes: no\nlockgate: nothing was erased\ncode 2/);
  await ask();
  terminal.pressKeys('C-c');
  await terminal.waitForScreen(/Type yes:\s*\ncode 130/);
  await ask();
  terminal.pressKeys('C-d');
  await terminal.waitForScreen(/lockgate: nothing was erased\ncode 2/);
  await ask();
  terminal.typeLine('yes');
  await terminal.waitForScreen(/Erased the history of A4:C1:38:00:00:01:\n.*\ncode 0/);
});

t.test('a slow command shows progress, and Ctrl-C removes the progress line', { skip: NO_TERMINAL }, async (t) => {
  // It never answers.
  const server = createServer(() => undefined).listen(0, '127.0.0.1');
  t.teardown(() => server.closeAllConnections());
  t.teardown(() => void server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  const environment = { LOCKGATE_GATEWAY: `http://127.0.0.1:${port}`, LOCKGATE_TOKEN: 'x' };
  const terminal = new Terminal(t, 80, 24, environment);
  terminal.typeLine('lockgate merchant list; echo code $?');
  await terminal.waitForScreen(/^Waiting for the gateway at http/m);
  terminal.pressKeys('C-c');
  t.notMatch(await terminal.waitForScreen(/^code 130$/m), /Waiting/);
  const terminated = await bash(
    `${process.execPath} ${LOCKGATE} merchant list & pid=$!; kill -TERM $pid; wait $pid; echo $?`,
    environment,
  );
  t.match(terminated, { stdout: /^143\n$/ }, 'the code of SIGTERM, 128 + 15, whether it is handled already or not');
});

t.test('bash completes commands, flags and live values', { skip: NO_TERMINAL }, async (t) => {
  const folder = tempFolder(t);
  const gateway = await gatewayOn(t, folder);
  await gateway.accounts.addMerchant('Köln "Süd" $1');
  await gateway.accounts.addDevice({ mac: testMac(1), merchant: 'Köln "Süd" $1' });
  await gateway.accounts.addDevice({ mac: testMac(2), merchant: 'Köln "Süd" $1' });
  const terminal = new Terminal(t, 100, 24, { LOCKGATE_DATA: folder });
  terminal.typeLine('source <(lockgate completion bash); echo ready');
  await terminal.waitForScreen(/^ready$/m);
  // Types a text and Tab, and waits for the completed line.
  const tab = async (typed: string, completed: RegExp): Promise<void> => {
    await terminal.clear();
    // `-l` of tmux: the text is typed even if it is the name of a key.
    terminal.pressKeys('-l', typed);
    terminal.pressKeys('Tab');
    t.match(await terminal.waitForScreen(completed), completed, typed);
    terminal.pressKeys('C-c');
    // The shell discards text that is typed while it handles Ctrl-C.
    await terminal.waitForScreen(/\^C\n\$\s*$/);
  };
  await tab('lockgate dev', /\$ lockgate device$/m);
  await tab('lockgate device list --wa', /device list --watch$/m);
  await tab('lockgate model show --format=me', /--format=mermaid$/m);
  await tab('lockgate device show a4', /device show A4:C1:38:00:00:0$/m);
  await tab('lockgate user list --merchant K', /--merchant Köln\\ \\"Süd\\"\\ \\\$1$/m);
  await tab('lockgate user list --merchant "K', /--merchant "Köln \\"Süd\\" \\\$1"$/m);
  await tab('lockgate trace check ~/lockg', /trace check ~\/lockgate$/m);
});

for (const shell of ['zsh', 'fish'] as const) {
  const skip = spawnSync(shell, ['--version']).error === undefined ? false : `no ${shell} here`;
  t.test(`${shell} accepts its completion script`, { skip }, async (t) => {
    const file = path.join(tempFolder(t), 'script');
    writeFileSync(file, COMPLETION_SCRIPTS[shell]);
    t.match(spawnSync(shell, ['-n', file], { encoding: 'utf8' }), { status: 0, stderr: '' });
  });
}
