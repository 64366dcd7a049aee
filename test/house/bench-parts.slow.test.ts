/**
 * Checks the measuring code of the bench: its statistics, its load generators (programs that send pings of many locks)
 * and its output. An error in it would affect every figure without being noticed. `npm run bench` measures the figures
 * themselves.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import t from 'tap';
import { OWN_DATA_ROUTES } from '../../gateway/http/merchant/own-data/routes.js';
import { HTTP_ROUTES } from '../../gateway/http/merchant/routes.js';
import { ManualClock, systemClock } from '../../proto/clock.js';
import { ok } from '../../proto/errors.js';
import { decodeUplink, encodeUplink } from '../../proto/wire/codec.js';
import { consoleRowWithoutBrowser } from '../bench/console/console-row.js';
import { MarkerSearch } from '../bench/console/marker-search.js';
import { readFlags } from '../bench/flags.js';
import { type GeneratorKind, LoadGenerator } from '../bench/load/generator.js';
import { lockLogins } from '../bench/load/lock-logins.js';
import { dueCount, dueMs, type PacedLock, sendBySchedule } from '../bench/load/pace-schedule.js';
import {
  LONG_SEQUENCE,
  newBootNumber,
  pingTemplate,
  rideUplink,
  SEQUENCE_BEFORE_FIRST,
  SEQUENCE_BYTES,
  SEQUENCE_LIMIT,
  TIME_BYTES,
  writeVarint,
} from '../bench/load/ping-template.js';
import { measureAlternating, percentile, summarizeFigures } from '../bench/measure.js';
import { floods } from '../bench/neighbour/floods.js';
import { type AnswerCounts, type Flood, startFlood } from '../bench/neighbour/http-flood.js';
import { ownShares } from '../bench/profile-shares.js';
import { READ_CALLS } from '../bench/reads/read-calls.js';
import { closingLine, markdownLines, rowJson, rowLines, shortNumber } from '../bench/report.js';
import { withResources } from '../bench/resources.js';
import {
  atLeast,
  atMost,
  atMostMore,
  type BenchRow,
  differenceTo,
  notMeasured,
  ratioTo,
  withoutPeer,
} from '../bench/row.js';
import { missingClient } from '../clients/client-package.js';
import { ourFiles, root } from '../helpers/house/our-files.js';
import { basicAuthorization } from '../helpers/http/merchant-call.js';
import { RecordingBroker } from '../helpers/mqtt/recording-broker.js';
import { JudgedRun } from '../helpers/pair/judged-uplinks.js';

const BENCH = path.join(root, 'dist/test/bench/main.js');
const hasCompiler = spawnSync('g++', ['--version']).error === undefined;
const GENERATORS: readonly { readonly kind: GeneratorKind; readonly missing: string | false }[] = [
  { kind: 'C++', missing: hasCompiler ? false : 'g++ is not installed' },
  { kind: 'Node', missing: false },
];

t.test('a median may lie between two values, a percentile is one of the values', async (t) => {
  t.same(summarizeFigures([5, 1, 4]), { median: 4, minimum: 1, maximum: 5 });
  t.same(summarizeFigures([4, 1, 2, 9]), { median: 3, minimum: 1, maximum: 9 });
  t.same(summarizeFigures([7]), { median: 7, minimum: 7, maximum: 7 });
  const hundred = Array.from({ length: 100 }, (_, index) => 100 - index);
  t.equal(percentile(hundred, 0.99), 99);
  t.equal(percentile(hundred, 0.5), 50);
  t.equal(percentile(hundred, 1), 100);
  t.equal(percentile([3], 0.5), 3);
});

t.test('compared programs take turns in running first, and the warm-up round does not count', async (t) => {
  const order: string[] = [];
  const work = (name: string) => async (): Promise<string> => {
    order.push(name);
    return `${name}${order.length}`;
  };
  t.same(await measureAlternating([work('a'), work('b')], 2), [
    ['a4', 'a5'],
    ['b3', 'b6'],
  ]);
  t.equal(order.join(''), 'abbaab');
});

t.test('an open loop sends by its schedule, and measures latency from the scheduled time', async (t) => {
  t.same(
    [0, 1, 10].map((ping) => dueMs(ping, 200)),
    [0, 5, 50],
    '200 pings a second are 5 ms apart',
  );
  t.same(
    [0, 4.9, 5, 12, 1000].map((afterMs) => dueCount(afterMs, 200, 5)),
    [1, 1, 2, 3, 5],
    'five pings in all',
  );
  const clock = new ManualClock();
  const sent: [lock: number, atMs: number][] = [];
  class SlowLock implements PacedLock {
    onAck: () => void = () => undefined;
    latencyMs = 0;
    isBusy = false;
    readonly number: number;
    readonly takesMs: number;
    constructor(number: number, takesMs: number) {
      this.number = number;
      this.takesMs = takesMs;
    }
    send(scheduledMs: number): void {
      sent.push([this.number, clock.now()]);
      this.isBusy = true;
      clock.after(this.takesMs, () => {
        this.isBusy = false;
        this.latencyMs = clock.now() - scheduledMs;
        this.onAck();
      });
    }
  }
  const latencies: number[] = [];
  const now = (): number => clock.now();
  // One ping every 10 ms, alternating between two locks; lock 1 needs 50 ms for each of its pings.
  const locks = [new SlowLock(0, 1), new SlowLock(1, 50)];
  const [pings, perSecond] = [6, 100];
  const paced = sendBySchedule(locks, pings, perSecond, (ms) => latencies.push(ms), clock, now);
  clock.advance(200);
  await paced;
  const times = (lock: number): number[] => sent.filter(([number]) => number === lock).map(([, atMs]) => atMs);
  t.same(times(0), [0, 20, 40], 'a slow lock does not delay the pings of another');
  t.same(times(1), [10, 60, 110], 'a lock has one ping in flight');
  t.same(
    latencies.sort((a, b) => a - b),
    [1, 1, 1, 50, 80, 110],
    'planned for 10, 30, 50; done at 60, 110, 160',
  );
});

/** The decoded uplinks that a generator of this kind sends. */
async function uplinksOf(
  kind: GeneratorKind,
  play: (generator: LoadGenerator, broker: RecordingBroker) => Promise<void>,
) {
  return await withResources(async (resources) => {
    const broker = await RecordingBroker.start(resources);
    const topic = (mac: string): string => `up/${mac}`;
    const generator = await LoadGenerator.start(resources, { port: broker.port, locks: lockLogins(3), topic, kind });
    t.equal(generator.kind, kind);
    await play(generator, broker);
    return broker.publishes.map(({ clientId, topic: to, payload }) => {
      if (to !== `up/${clientId}`) throw new Error(`a ping of ${clientId} to ${to}`);
      const decoded = decodeUplink(payload);
      if (!decoded.ok) throw new Error(decoded.error.message);
      return { mac: clientId, payload, uplink: decoded.value };
    });
  });
}

for (const { kind, missing } of GENERATORS) {
  t.test(`the generator in ${kind} sends valid pings that break no rule`, { skip: missing }, async (t) => {
    const startMs = systemClock.now();
    const pingCounts: number[] = [];
    const uplinks = await uplinksOf(kind, async (generator) => {
      const flood = await generator.flood(50);
      t.ok(flood.p50_ms <= flood.p99_ms && flood.p99_ms <= flood.max_ms && flood.max_ms <= flood.ms);
      const runMs = 5;
      const run = await generator.floodFor(runMs);
      // 20 pings at 10,000 a second.
      const paced = await generator.sendBySchedule(20, 10_000);
      t.ok(paced.ms >= 1.9, 'the last of 20 leaves 1.9 ms after the first');
      pingCounts.push(flood.pings, run.pings, paced.pings);
    });
    t.equal(pingCounts[0], 50);
    t.equal(pingCounts[2], 20);
    t.equal(
      uplinks.length,
      pingCounts.reduce((sum, count) => sum + count),
      'the generator’s counts match the pings received',
    );
    t.same(
      [...new Set(uplinks.map(({ mac }) => mac))].sort(),
      lockLogins(3).map(({ mac }) => mac),
    );
    for (const { mac } of lockLogins(3)) {
      const ownUplinks = uplinks.filter((each) => each.mac === mac).map(({ uplink }) => uplink);
      const sequences = ownUplinks.map(({ sequence }) => sequence);
      t.same(
        sequences,
        sequences.map((_, index) => SEQUENCE_BEFORE_FIRST + 1 + index),
        'each sequence once, in order',
      );
      const run = new JudgedRun(startMs, { listeningSinceMs: startMs });
      run.judge({ type: 'connect', source: 'lock', atMs: startMs });
      for (const uplink of ownUplinks) run.receive(uplink, uplink.timeMs);
      t.same(run.findings, [], 'the judge finds nothing');
    }
    const times = uplinks.map(({ uplink }) => uplink.timeMs);
    t.ok(Math.min(...times) >= startMs - 1 && Math.max(...times) <= systemClock.now(), 'made when they were sent');
    const expectedUplinks = uplinks.map(({ uplink }) => rideUplink(uplink.boot, uplink.sequence, uplink.timeMs));
    t.same(
      uplinks.map(({ uplink }) => uplink),
      expectedUplinks,
    );
    const encoded = expectedUplinks.map((uplink) => {
      const bytes = Buffer.from(encodeUplink({ ...uplink, sequence: LONG_SEQUENCE }));
      writeVarint(bytes, pingTemplate(uplink.boot).sequenceAt, uplink.sequence, SEQUENCE_BYTES);
      return bytes.toString('hex');
    });
    t.same(
      uplinks.map(({ payload }) => payload.toString('hex')),
      encoded,
      'the bytes are as the codec writes them, apart from the sequence, whose length is fixed',
    );
    const lengths = uplinks.map(({ payload }) => payload.length);
    t.ok(Math.min(...lengths) >= 45 && Math.max(...lengths) <= 55, 'about 50 bytes');
  });

  t.test(`the generator in ${kind} counts only the PUBACK of its ping`, { skip: missing }, async (t) => {
    const answerWrongly = async (generator: LoadGenerator, broker: RecordingBroker): Promise<void> => {
      // A PUBACK (0x40, with 2 more bytes) of packet 0, which no ping has.
      broker.answer = (_puback, socket) => void socket.write(Buffer.from([0x40, 2, 0, 0]));
      await generator.flood(1);
    };
    await t.rejects(uplinksOf(kind, answerWrongly), /a program of the bench has ended/);
  });
}

t.test('each sequence and time fits into the template of a ping', async (t) => {
  const boot = newBootNumber();
  t.not(boot, newBootNumber(), 'two generators use different boots');
  const now = systemClock.now();
  const { bytes, sequenceAt, timeAt } = pingTemplate(boot);
  for (const sequence of [SEQUENCE_BEFORE_FIRST + 1, 127, 128, LONG_SEQUENCE, SEQUENCE_LIMIT - 1]) {
    for (const timeMs of [Date.UTC(2006, 0), now, Date.UTC(2100, 0)]) {
      writeVarint(bytes, sequenceAt, sequence, SEQUENCE_BYTES);
      writeVarint(bytes, timeAt, timeMs, TIME_BYTES);
      t.same(decodeUplink(bytes), ok(rideUplink(boot, sequence, timeMs)), `sequence ${sequence} at ${timeMs}`);
    }
  }
});

const RATES = { median: 12_345, minimum: 9_990, maximum: 1_234_567 };

/** A row that is made up: comparisons whose floor holds, or does not, or is missing, and one that was not measured. */
const ROW: BenchRow = {
  name: 'sample',
  title: 'a row that is made up',
  unit: 'pings/s',
  rates: RATES,
  against: [
    ratioTo('a peer', RATES, { median: 24_690, minimum: 1, maximum: 2 }, { floor: atLeast(0.5), aim: atLeast(1) }),
    ratioTo('a peer whose name is longer than its column is wide', RATES, RATES, { floor: atMost(0.9) }),
    differenceTo('the same', { median: 7, minimum: 7, maximum: 7 }, { median: 3, minimum: 3, maximum: 3 }, 'ms', {
      floor: atMostMore(5, 'ms'),
    }),
    withoutPeer(12_345, 'locks × days', {
      floor: atLeast(10_000, 'locks × days'),
      aim: atLeast(200_000, 'locks × days'),
    }),
    notMeasured('another broker', { floor: atLeast(1), aim: atLeast(2) }, 'another broker is not installed'),
    ratioTo('a peer without a floor', RATES, RATES),
  ],
  details: ['word '.repeat(40).trim()],
};

t.test('a table fits in 80 columns, and says which requirements are met', async (t) => {
  const lines = rowLines(ROW);
  for (const line of lines) t.ok([...line].length <= 80, line);
  const cells = lines.map((line) => line.trim().split(/ {2,}/));
  t.same(cells[0], ['sample: a row that is made up']);
  t.same(cells[1], ['lockgate', '12.3k (9,990–1.23M)', 'pings/s']);
  t.same(cells[2], ['a peer', '24.7k (1.00–2.00)', '0.50 ×', '≥ 0.5 ×', 'yes']);
  const verdicts = lines.filter((line) => / (yes|no|–)$/.test(line)).map((line) => line.split(' ').at(-1));
  t.same(verdicts, ['yes', 'no', 'yes', 'yes', '–', '–']);
  t.ok(
    lines.some((line) => line.includes('another broker is not installed')),
    'the table says what is missing',
  );
  t.equal(closingLine([ROW], []), '3 floors hold, 1 do not (sample), 1 not measured (sample).');
  t.equal(
    closingLine([ROW], ['idle']),
    '3 floors hold, 1 do not (sample), 1 not measured (sample), 1 rows failed (idle).',
  );
  t.same([0.1234, 12.34, 123.4, 9_994, 12_345, 1_234_567].map(shortNumber), [
    '0.12',
    '12.3',
    '123',
    '9,994',
    '12.3k',
    '1.23M',
  ]);
});

t.test('the JSON and Markdown outputs agree with the table', async (t) => {
  const { against } = rowJson(ROW) as {
    against: { holds: boolean | null; reaches_aim: boolean | null; missing?: string }[];
  };
  t.same(
    against.map(({ holds }) => holds),
    [true, false, true, true, null, null],
  );
  t.same(
    against.map(({ reaches_aim: reaches }) => reaches),
    [false, null, null, false, null, null],
  );
  t.equal(against[4]?.missing, 'another broker is not installed');
  const markdown = markdownLines([ROW]);
  t.equal(markdown.length, 2 + ROW.against.length);
  t.equal(new Set(markdown.map((line) => line.split('|').length)).size, 1, 'each line has the same number of cells');
});

t.test('flags choose rows, and a wrong flag gives an error', async (t) => {
  const [rows, rowsWithProfile] = [['ingest', 'idle', 'start'], ['ingest']];
  const read = (...args: string[]) => readFlags(args, rows, rowsWithProfile);
  const all = { names: rows, output: 'table', quick: false, profile: null, flood: null };
  t.same(read(), all);
  t.same(read('--only', 'idle,start', '--json', '--quick'), {
    ...all,
    names: ['idle', 'start'],
    output: 'json',
    quick: true,
  });
  t.same(read('--markdown'), { ...all, output: 'markdown' });
  t.same(read('--profile', 'ingest'), { ...all, names: ['ingest'], profile: 'ingest' });
  t.same(read('--only', 'idle', '--flood', '/v1/events'), { ...all, names: ['idle'], flood: '/v1/events' });
  t.match(read('--help'), { isHelp: true, text: /ingest, idle, start/ });
  for (const args of [['--only', 'ingest,nothing'], ['--only'], ['--fast'], ['--json', '--markdown'], ['idle']])
    t.match(read(...args), { isHelp: false, text: /npm run bench/ }, args.join(' '));
  t.match(read('--profile', 'idle'), { isHelp: false, text: /expected one of ingest/ });
  t.match(read('--profile', 'ingest', '--only', 'idle'), { isHelp: false });
  const { status, stdout, stderr } = spawnSync(process.execPath, [BENCH, '--only', 'nothing'], { encoding: 'utf8' });
  t.equal(status, 2);
  t.equal(stdout, '');
  t.match(stderr, /There is no row named "nothing"\.\n\nnpm run bench/);
});

t.test('the shares in a profile are shares of the busy time', async (t) => {
  const node = (id: number, functionName: string, url = '') => ({
    id,
    callFrame: { functionName, url, lineNumber: 9 },
  });
  const nodes = [node(1, '(root)'), node(2, '(idle)'), node(3, 'judge', 'file:///x/judge.js'), node(4, '(program)')];
  t.same(ownShares({ nodes, samples: [2, 3, 4, 3, 1], timeDeltas: [500, 30, 40, 30, 7] }), [
    ['judge judge.js:10', 0.6],
    ['(program)', 0.4],
  ]);
});

t.test('every script that a row starts exists', async (t) => {
  const sources = ourFiles().filter((file) => /^test\/bench\/.*\.ts$/.test(file));
  const startedScripts = sources.flatMap((file) => {
    return [...readFileSync(path.join(root, file), 'utf8').matchAll(/resources\.startScript\('([^']*)'/g)].map(
      ([, name = '']) => name,
    );
  });
  t.ok(startedScripts.length >= 8, `${startedScripts.length} scripts`);
  for (const name of startedScripts) t.ok(existsSync(path.join(root, 'dist/test/bench', name)), name);
});

t.test('the readers of the bench call each GET of a merchant’s own data with parameters', async (t) => {
  const ids = { merchantId: 1, lastPingId: 1_000, webhookId: 1, lastCommandId: 20, commands: 20, event: 'evt_1' };
  const subject = { locks: 10, ...ids, firstDeviceId: 1, endMs: 0, historyDays: 30, closedMonth: '2026-10' };
  // A stream does not end: its first state is as long as all locks together.
  const gets = OWN_DATA_ROUTES.filter(({ method, path: where }) => method === 'GET' && where !== '/v1/stream');
  const uncalled = gets.filter(({ operationId }) => !READ_CALLS.some((call) => call.operationId === operationId));
  t.strictSame(uncalled, []);
  for (const { name, operationId, path: pathOf } of READ_CALLS) {
    const route = gets.find((each) => each.operationId === operationId);
    const pattern = new RegExp(`^${(route?.path ?? '-').replaceAll(/\{\w+\}/g, '[^/{}]+')}$`);
    // A call's path depends on a random number, and that of some on the newest cursor of the events (here any text).
    for (const random of [0, 0.5, 0.999]) t.match(pathOf(subject, random, 'x').split('?')[0], pattern, name);
  }
});

t.test(
  'the floods of the row neighbour call every route, with a key if the route needs one, and count answers',
  async (t) => {
    const namedFloods = floods();
    const routes = HTTP_ROUTES.map(({ method, path: routePath }) => `${method} ${routePath}`);
    const uncalled = routes.filter((route) => !namedFloods.some(({ name }) => name.startsWith(route)));
    t.same(uncalled, [], 'all routes are called');
    const [key, token] = ['lgk_key', 'lgt_token'];
    const ids = {
      merchantId: 3,
      invitationId: 8,
      webhookId: 4,
      disabledWebhookId: 5,
      queuedCommand: 6,
      expiredCommand: 7,
    };
    const subject = { merchant: 'M', mac: 'A4:C1:38:00:00:01', key, event: 'evt_1', ...ids };
    const merchant = { key, token, subject };
    for (const { name, makeRequest } of namedFloods)
      t.notMatch(makeRequest(merchant).path, /[{}]/, `${name}: no parameter`);
    for (const { name, hasKey, makeRequest } of namedFloods) {
      const text = JSON.stringify(makeRequest(merchant));
      const isKnown = text.includes(basicAuthorization(key)) || text.includes(token);
      t.equal(isKnown, hasKey, name);
    }

    let requestCount = 0;
    let onSixty: () => void = () => undefined;
    const server = createServer((request, response) => {
      requestCount += 1;
      if (requestCount === 60) onSixty();
      // Some answers close the connection, and all come in two chunks.
      if (requestCount % 7 === 0) response.setHeader('connection', 'close');
      request
        .resume()
        .on('end', () => response.writeHead(requestCount % 2 === 0 ? 200 : 429, { 'content-length': '4' }));
      request.on('end', () => response.write('ab')).on('end', () => response.end('cd'));
    });
    t.teardown(() => server.closeAllConnections());
    t.teardown(() => server.close());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const sixtyRequests = new Promise<void>((resolve) => {
      onSixty = resolve;
    });
    const floodOptions = {
      port,
      sourceAddress: '127.0.0.1',
      connections: 3,
      method: 'POST',
      path: '/',
      headers: {},
      body: 'x',
    };
    const endFlood = startFlood(floodOptions satisfies Flood);
    await sixtyRequests;
    const answered: AnswerCounts = endFlood();
    t.same(Object.keys(answered).sort(), ['200', '429']);
    const count = (answered['200'] ?? 0) + (answered['429'] ?? 0);
    t.ok(count > 50 && count <= 60, `${count} of 60 calls were answered when it ended`);
  },
);

t.test('the end of a snapshot is found wherever the stream is split', (t) => {
  const marker = '"last":true';
  const bytes = Buffer.from(`data: {"part":1,"last":false}\n\ndata: {"part":2,${marker}}\n\n`);
  const end = bytes.indexOf(marker) + marker.length;
  for (let split = 1; split < bytes.length; split += 1) {
    const search = new MarkerSearch(marker);
    if (search.take(bytes.subarray(0, split)) !== split >= end || !search.take(bytes.subarray(split)))
      t.fail(`in two chunks, the first of ${split} bytes`);
  }
  const byByte = new MarkerSearch(marker);
  t.equal(
    [...bytes].findIndex((byte) => byByte.take(Buffer.of(byte))),
    end - 1,
    'byte by byte',
  );
  t.end();
});

t.test('where no browser can be driven, the row of the console says what is missing, and has the sizes', async (t) => {
  t.equal(missingClient('no-such-package'), 'no-such-package is not installed in test/clients; npm test installs it.');
  t.equal(missingClient('puppeteer-core'), null);
  const row = consoleRowWithoutBrowser(missingClient('no-such-package') ?? '');
  t.match(row.against[0], { value: null, missing: /no-such-package is not installed in test\/clients/ });
  t.match(rowLines(row).join('\n'), /no-such-package is not installed/);
  t.ok((row.against[1]?.value ?? 0) > 50, 'the sizes of the files, KB');
});
