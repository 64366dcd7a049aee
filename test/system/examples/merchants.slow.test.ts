/**
 * The merchants' programs of docs/clients, each in a process of its own against a gateway: they verify a webhook and
 * refuse a forged one, read every missed event once, and unlock a lock once, however often they are called.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { transformSync } from 'esbuild';
import t, { type Test } from 'tap';
import { systemClock } from '../../../proto/clock.js';
import { Program, runProgram } from '../../helpers/cli/program.js';
import { MERCHANT, testBytes, testGateway, testMac } from '../../helpers/gateway/test-gateway.js';
import { eventually } from '../../helpers/gateway/webhook-setup.js';
import { root } from '../../helpers/house/our-files.js';
import { freePort } from '../../helpers/http/free-port.js';
import { apiKey, callMerchantApi } from '../../helpers/http/merchant-call.js';
import { connectedLock } from '../../helpers/mqtt/test-lock.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

t.setTimeout(150_000);

const MAC = 'A4:C1:38:00:00:01';
const clients = path.join(root, 'docs/clients');

/** The merchant's program in one language. */
interface Client {
  readonly command: string;
  /** The words before those of a task. */
  readonly words: (test: Test) => string[];
  /** The words for receiving webhooks; those of a task if undefined. */
  readonly receive?: (port: string) => string[];
  /** What the receiver prints when it takes webhooks, and where it prints. */
  readonly ready: RegExp;
  readonly output: 'stdout' | 'stderr';
}

/** The TypeScript program without its types, as Node.js 20 runs it. */
function erased(test: Test): string {
  const file = path.join(tempFolder(test), 'merchant.mjs');
  const text = readFileSync(path.join(clients, 'merchant.ts'), 'utf8');
  writeFileSync(file, transformSync(text, { loader: 'ts', format: 'esm' }).code);
  return file;
}

const php = path.join(clients, 'merchant.php');
const CLIENTS: Readonly<Record<string, Client>> = {
  TypeScript: {
    command: process.execPath,
    words: (test) => [erased(test)],
    ready: /^receiving on port/,
    output: 'stdout',
  },
  Python: {
    command: 'python3',
    words: () => [path.join(clients, 'merchant.py')],
    ready: /^receiving on port/,
    output: 'stdout',
  },
  PHP: {
    command: 'php',
    words: () => [php],
    receive: (port) => ['-S', `127.0.0.1:${port}`, php],
    ready: /Development Server .* started/,
    output: 'stderr',
  },
};

/** The ids of the events that a program printed, in order. */
const idsOf = (lines: readonly string[]): string[] =>
  lines.map((line) => /^(evt_\S+) A4:C1/.exec(line)?.[1] ?? '').filter((id) => id !== '');

for (const [language, { command, words, receive, ready, output }] of Object.entries(CLIENTS)) {
  const skip = spawnSync(command, ['--version']).error !== undefined && `${command} not installed`;
  t.test(`the program in ${language}`, { skip }, async (t) => {
    const gateway = await testGateway(t);
    const lock = await connectedLock(t, gateway, testMac());
    const program = words(t);
    const environment: Record<string, string> = {
      LOCKGATE_URL: `http://127.0.0.1:${gateway.httpPort}`,
      LOCKGATE_KEY: await apiKey(gateway, MERCHANT),
      SEEN_FILE: path.join(tempFolder(t), 'seen'),
    };
    const run = async (...task: string[]): Promise<string[]> => {
      const done = await runProgram(t, command, [...program, ...task], environment);
      t.equal(done.exit?.code, 0, done.stderr.join('\n'));
      return done.stdout;
    };

    await t.test('reads every event once', async (t) => {
      const cursor = path.join(tempFolder(t), 'cursor');
      t.same(await run('events', cursor), []);
      for (let sequence = 1; sequence <= 103; sequence += 1) await lock.send(testBytes(sequence));
      const ids = idsOf(await run('events', cursor));
      t.equal(new Set(ids).size, 103, 'two pages');
      t.same(await run('events', cursor), [], 'the cursor is stored');
      await lock.send(testBytes(104));
      t.equal(idsOf(await run('events', cursor)).length, 1);
    });

    await t.test('unlocks once', async (t) => {
      const first = await run('unlock', MAC, 'rental 4711 start');
      t.match(first, [/^command \d+ (queued|sent)$/]);
      const id = (lines: string[]): string | undefined => /^command (\d+)/.exec(lines[0] ?? '')?.[1];
      t.equal(id(await run('unlock', MAC, 'rental 4711 start')), id(first));
      t.not(id(await run('unlock', MAC, 'rental 4712 start')), id(first));
      const wrong = await runProgram(t, command, [...program, 'unlock', 'A4:C1:38:00:00:99', 'x'], environment);
      t.not(wrong.exit?.code, 0);
      t.match([...wrong.stdout, ...wrong.stderr].join('\n'), /status 404/);
    });

    await t.test('verifies webhooks', async (t) => {
      const port = String(await freePort());
      const added = await gateway.accounts.addWebhookUrl({ url: `http://127.0.0.1:${port}/` });
      const receiving = receive?.(port) ?? [...program, 'receive', port];
      const receiver = new Program(t, command, receiving, { ...environment, WEBHOOK_SECRET: added.secret });
      await receiver.waitForLine(ready, output);
      const post = async (headers: Record<string, string>): Promise<number> =>
        (await callMerchantApi({ httpPort: Number(port) }, '/', { body: { event_id: 'evt_forged' }, headers })).status;
      const sent = { 'webhook-id': 'evt_forged', 'webhook-timestamp': String(Math.floor(systemClock.now() / 1000)) };
      t.equal(await post({ ...sent, 'webhook-signature': 'v1,bm8gc2lnbmF0dXJl' }), 401);
      t.equal(await post({}), 401);
      await lock.send(testBytes(105));
      await eventually('the webhook is received', () => idsOf(receiver[output]).length === 1);
      t.equal(receiver.stderr.filter((line) => /^refused: /.test(line)).length, 2);
      t.notMatch(receiver[output].join('\n'), /evt_forged A4/);
    });
  });
}
