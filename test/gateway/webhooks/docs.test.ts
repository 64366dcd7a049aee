/**
 * docs/webhooks.md is correct: its examples are bodies that the code makes, its tables match the code, and its sample
 * code verifies lockgate's signatures in each language that is installed.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import {
  MERCHANT_EVENT_KINDS,
  type MerchantEventType,
} from '../../../gateway/store/contract/webhooks/merchant-event.js';
import { uplinkDigest } from '../../../gateway/webhooks/event-id.js';
import { webhookBody } from '../../../gateway/webhooks/payload/body.js';
import { memberTable } from '../../../gateway/webhooks/payload/member-table.js';
import { merchantEventBody } from '../../../gateway/webhooks/payload/merchant-event-body.js';
import { signHeaders } from '../../../gateway/webhooks/payload/signature.js';
import { RETRY_DELAYS } from '../../../gateway/webhooks/url/schedule.js';
import { Hours, Minutes, Seconds } from '../../../proto/clock.js';
import { markdownTable, withGeneratedParts } from '../../../proto/reference/generated-parts.js';
import { encodeUplink, UPLINK_MAX_BYTES } from '../../../proto/wire/codec.js';
import { parseMac } from '../../../proto/wire/mac.js';
import { DEFAULT_POWER, type Ping } from '../../../proto/wire/ping.js';
import { REASONS } from '../../../proto/wire/reasons.js';
import { root } from '../../helpers/house/our-files.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

const webhooksPage = readFileSync(join(root, 'docs/webhooks.md'), 'utf8');

/** The code blocks of a language, in order. */
function codeBlocks(language: string): string[] {
  return [...webhooksPage.matchAll(new RegExp(`^\`\`\`${language}\n([^]*?)^\`\`\`$`, 'gm'))].map(
    ([, text = '']) => text,
  );
}

/** The rows of the table below a heading row, each as its cells. */
function tableOf(...heading: string[]): string[][] {
  const lines = webhooksPage.split('\n');
  const start = lines.indexOf(`| ${heading.join(' | ')} |`);
  if (start === -1) throw new Error(`docs/webhooks.md has no table ${heading.join(', ')}`);
  const end = lines.findIndex((line, index) => index > start && !line.startsWith('|'));
  const cells = (line: string): string[] => line.split(' | ').map((cell) => cell.replace(/^\| | \|$/g, ''));
  return lines.slice(start + 2, end).map(cells);
}

/** When the first example was made. */
const START_MS = Date.UTC(2026, 10, 20, 6, 0, 1);
const CELLULAR = {
  kind: 'cellular',
  reason: 'REASON_PERIOD_TRACKING',
  lockState: 'locked',
  batteryPercent: 81,
  firmwareVersion: '2.4.1',
  ebikeVolts: null,
  tetherState: 'detached',
  position: null,
} as const;
const POSITION = { latitudeDegrees: 52.3702157, longitudeDegrees: 4.8951679, uncertaintyMeters: 8 };
const GPS = { ...CELLULAR, kind: 'gps', position: POSITION, speedMetersPerSecond: 0, directionDegrees: 0 } as const;
const CLOSE = { ...CELLULAR, kind: 'close_connection', reason: 'REASON_CLOSE_CONNECTION' } as const;
const PHONE = { ...CELLULAR, reason: 'PHONE', lockState: 'unlocked', position: POSITION } as const;

/** Pings of a lock's day, from connecting to disconnecting, and a phone's ping. */
const EXAMPLES: readonly [body: Ping, sequence: number, afterMs: number][] = [
  [CELLULAR, 12, 0],
  [GPS, 13, Seconds(30)],
  [CLOSE, 14, Seconds(50)],
  [PHONE, 3, Hours(2)],
];

/** The webhook's body for one of the pings above, as the page prints it. */
function example([body, sequence, afterMs]: (typeof EXAMPLES)[number]): string {
  const mac = parseMac('A4:C1:38:F0:E1:D2');
  if (!mac.ok) throw new Error(mac.error.message);
  const timeMs = START_MS + afterMs;
  // A phone counts separately from its lock and has another credential.
  const boot = body.reason === 'PHONE' ? 7 : 41;
  const bytes = Buffer.from(encodeUplink({ boot, sequence, timeMs, power: DEFAULT_POWER, kept: 0, dropped: 0, body }));
  const credentialId = body.reason === 'PHONE' ? 2 : 1;
  const key = { mac: mac.value, credentialId, boot, sequence, digest: uplinkDigest(bytes) };
  const stored = {
    ...key,
    id: 1,
    deviceId: 1,
    merchantId: 1,
    simulated: false,
    source: 'lock',
    kind: 1,
    bytes,
  } as const;
  const arrived = { receivedAtMs: timeMs + 412, buffered: false, isDamaged: false };
  return `${JSON.stringify(webhookBody({ ...stored, ...arrived }), null, 2)}\n`;
}

/** Events that are not pings, each with its type and its content. */
const OTHER_EXAMPLES: readonly [type: MerchantEventType, content: object][] = [
  [
    'command',
    {
      id: 7,
      command: 'unlock',
      parameters: {},
      state: 'done',
      detail: '',
      askedBy: 'API key 3f9a0c2b7d41 (shop backend)',
      createdAtMs: START_MS,
      firstSentAtMs: START_MS + 20,
      sentCount: 1,
    },
  ],
  ['presence', { presence: 'late', lateSinceMs: START_MS }],
  ['battery', { battery: 'low', percent: 9 }],
];

/** The webhook's body for one of these events, as the page prints it. */
function otherExample([type, content]: (typeof OTHER_EXAMPLES)[number], index: number): string {
  const mac = parseMac('A4:C1:38:F0:E1:D2');
  if (!mac.ok) throw new Error(mac.error.message);
  const bytes = Buffer.from(JSON.stringify(content));
  const key = { mac: mac.value, credentialId: 0, boot: 0, sequence: 90 + index, digest: uplinkDigest(bytes) };
  const lock = { deviceId: 1, merchantId: 1, simulated: false, source: 'lock' } as const;
  const arrived = { receivedAtMs: START_MS + 412, buffered: false, isDamaged: false };
  const stored = { ...key, ...lock, ...arrived, id: 1, kind: MERCHANT_EVENT_KINDS[type], bytes };
  return `${JSON.stringify(merchantEventBody(stored), null, 2)}\n`;
}

t.test('the examples are bodies that the code makes', async (t) => {
  const expected = [...EXAMPLES.map(example), ...OTHER_EXAMPLES.map(otherExample)];
  t.same(codeBlocks('json'), expected);
});

t.test('a body is never longer than docs/webhooks.md says', async (t) => {
  t.match(webhooksPage.replaceAll('\n', ' '), / A body has some 400 bytes, and never more than 8 KiB\. /);
  const asSent = JSON.stringify(JSON.parse(example([CELLULAR, 12, 0])));
  t.ok(Math.abs(Buffer.byteLength(asSent) - 400) < 50, 'some 400 bytes');
  // The longest text that fits into a lock's message beside the other members, of characters with the longest JSON
  // escapes.
  const longestPing = { ...PHONE, firmwareVersion: '\u0001'.repeat(UPLINK_MAX_BYTES - 60) };
  t.ok(Buffer.byteLength(example([longestPing, 2 ** 32 - 1, 0])) < 8 * 1024);
});

t.test('the table of members is up to date', async (t) => {
  const { head, rows } = memberTable();
  t.ok(rows.length > 20, 'the table has the members');
  const upToDate = withGeneratedParts(webhooksPage, { members: markdownTable(head, rows) });
  t.equal(webhooksPage, upToDate, 'npm run gen writes it');
});

t.test('docs/webhooks.md and the code have the same reasons', async (t) => {
  const expected = REASONS.map(({ name, meaning }) => [name, meaning]);
  t.same(tableOf('reason', 'meaning'), expected);
});

t.test('docs/webhooks.md has the waits of the retry schedule', async (t) => {
  const spanText = (span: number): string => {
    if (span < Minutes(1)) return `${span / Seconds(1)} s`;
    return span < Hours(1) ? `${span / Minutes(1)} min` : `${span / Hours(1)} h`;
  };
  const expected = [['1', 'none'], ...RETRY_DELAYS.map((span, index) => [String(index + 2), spanText(span)])];
  t.same(tableOf('attempt', 'time since the previous one'), expected);
});

/**
 * For each language of the page, the rest of a program whose first part is the page's code, a function `verify`. The
 * program reads cases from standard input and prints, as JSON, which of them verify.
 */
const LANGUAGES = {
  js: {
    command: process.execPath,
    file: 'verify.mjs',
    programRest: `
      import { readFileSync } from 'node:fs';
      const verifies = ({ secret, headers, body, now }) => {
        try { verify(secret, headers, Buffer.from(body, 'base64'), now); return true; } catch { return false; }
      };
      console.log(JSON.stringify(JSON.parse(readFileSync(0, 'utf8')).map(verifies)));`,
  },
  python: {
    command: 'python3',
    file: 'verify.py',
    programRest: `
import json, sys
def verifies(case):
    try:
        verify(case["secret"], case["headers"], base64.b64decode(case["body"]), case["now"])
        return True
    except ValueError:
        return False
print(json.dumps([verifies(case) for case in json.load(sys.stdin)]))`,
  },
  php: {
    command: 'php',
    file: 'verify.php',
    programRest: `
function verifies(array $case): bool {
    try { verify($case['secret'], $case['headers'], base64_decode($case['body']), $case['now']); return true; }
    catch (Exception $e) { return false; }
}
echo json_encode(array_map('verifies', json_decode(file_get_contents('php://stdin'), true))), "\\n";`,
  },
} as const;

/** Why a test with a program is skipped; false if the program is installed. */
function isMissing(command: string, debian: string): string | false {
  return spawnSync(command, ['--version']).error !== undefined && `${command} not installed (Debian: ${debian})`;
}

/** The published test vector of Standard Webhooks, as docs/webhooks.md has it. */
function vectorOfPage() {
  const [secret, id, timestamp, body, signature] = tableOf('what', 'value').map(([, value = '']) =>
    value.replace(/^`|`$/g, ''),
  ) as [string, string, string, string, string];
  const headers = { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature };
  return { secret, headers, body, now: Number(timestamp) };
}

/** A request, and whether its signature is valid at the time `now`, in seconds. */
interface Case {
  readonly name: string;
  readonly verifies: boolean;
  readonly secret: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer;
  readonly now: number;
}

/** Webhooks that a verifier must accept, and others that differ from them in one part and that it must refuse. */
function cases(): Case[] {
  const vector = vectorOfPage();
  const { headers, now } = vector;
  const other = 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD';
  const body = '{"firmware_version":"é 🔒 \ufffd \\u0000 ا"}';
  const signed = signHeaders([other, vector.secret], 'evt_1', now * 1000, body);
  // Decoding replaces the invalid byte 0xff by U+FFFD, so as text the forged body equals the signed one.
  const [bodyStart = '', bodyEnd = ''] = body.split('\ufffd');
  const forgedBody = Buffer.concat([Buffer.from(bodyStart), Buffer.from([0xff]), Buffer.from(bodyEnd)]);
  const withHeader = (name: string, value: string) => ({
    ...vector,
    headers: { ...headers, [`webhook-${name}`]: value },
  });
  const signature = headers['webhook-signature'];
  return [
    { name: 'the vector', verifies: true, ...vector },
    { name: 'at the end of the tolerance', verifies: true, ...vector, now: now + 300 },
    { name: 'a second after the tolerance', verifies: false, ...vector, now: now + 301 },
    { name: 'a second too early', verifies: false, ...vector, now: now - 301 },
    { name: 'another body', verifies: false, ...vector, body: '{"test": 2432232315}' },
    { name: 'another id', verifies: false, ...withHeader('id', 'msg_2') },
    { name: 'another time', verifies: false, ...withHeader('timestamp', String(now + 1)) },
    { name: 'no time', verifies: false, ...withHeader('timestamp', 'now') },
    { name: 'another secret', verifies: false, ...vector, secret: other },
    { name: 'a part of the signature', verifies: false, ...withHeader('signature', signature.slice(0, -1)) },
    { name: 'no signature', verifies: false, ...withHeader('signature', '') },
    {
      name: 'a signature of another version',
      verifies: false,
      ...withHeader('signature', signature.replace('v1', 'v2')),
    },
    { name: 'after an unknown signature', verifies: true, ...withHeader('signature', `v1a,AAAA ${signature}`) },
    { name: 'two signatures, any text', verifies: true, secret: vector.secret, headers: { ...signed }, body, now },
    { name: 'two signatures, the new secret', verifies: true, secret: other, headers: { ...signed }, body, now },
    {
      name: 'other bytes that decode to the same text',
      verifies: false,
      secret: other,
      headers: { ...signed },
      body: forgedBody,
      now,
    },
  ];
}

t.test('the vector of docs/webhooks.md is the published one', async (t) => {
  t.same(vectorOfPage(), {
    secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
    headers: {
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    },
    body: '{"test": 2432232314}',
    now: 1_614_265_330,
  });
});

for (const [language, { command, file, programRest }] of Object.entries(LANGUAGES)) {
  const skip = isMissing(command, `${command}${command === 'php' ? '-cli' : ''}`);
  t.test(
    `the ${language} code of docs/webhooks.md verifies valid requests and refuses all others`,
    { skip },
    async (t) => {
      const [snippet = '', ...others] = codeBlocks(language);
      t.same(others, []);
      t.ok(snippet.split('\n').length <= 14, 'about ten lines');
      const path = join(tempFolder(t), file);
      writeFileSync(path, snippet + programRest);
      const all = cases();
      const input = all.map(({ secret, headers, body, now }) => {
        return { secret, headers, body: Buffer.from(body).toString('base64'), now };
      });
      const result = spawnSync(command, [path], { input: JSON.stringify(input), encoding: 'utf8', timeout: 30_000 });
      t.equal(result.status, 0, result.stderr);
      const verdicts = JSON.parse(result.stdout) as boolean[];
      for (const [index, { name, verifies }] of all.entries()) t.equal(verdicts[index], verifies, name);
    },
  );
}
