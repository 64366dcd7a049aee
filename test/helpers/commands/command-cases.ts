/**
 * The calls of every command of the command line. The contract test (test/cli/contract.test.ts) compares their output
 * with snapshots: for people, as JSON, with a mistake, without a gateway, and with a negative answer. The calls run in
 * this order on one site (command-site.ts: a gateway with data), so that later calls see the results of earlier ones.
 * The site has the files that the calls name, such as fine.jsonl. Nothing listens on port 9, so webhooks to it fail. A
 * command without a case fails the test.
 */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterThisTurn } from '../../../proto/clock.js';
import type { RunningCommand } from '../cli/command-line.js';
import type { CommandSite } from './command-site.js';

/** The calls of one command. */
export interface CommandCase {
  readonly command: string;
  /** The arguments of the call for people, on a terminal of 80 columns; or why there is no such call. */
  readonly shows: string | { readonly reason: string };
  /** The arguments of the call with --json; by default those of `shows`; null for a command without --json. */
  readonly json?: string | null;
  /** Wrong arguments (exit code 2), and the expected error. */
  readonly wrong: readonly [args: string, error: RegExp];
  /** Arguments with a negative answer: exit code 1. */
  readonly negative?: string;
  /** Arguments that the gateway refuses: exit code 3. */
  readonly refused?: string;
  /** The arguments of the call without a gateway; by default those of `shows`, for commands with --gateway. */
  readonly withoutGateway?: string;
  readonly stdin?: string;
  /** Runs before the call for people, and again before the call with --json. */
  readonly before?: (site: CommandSite) => Promise<void> | void;
  /** Runs during the call with the negative answer. */
  readonly duringNegative?: (running: RunningCommand, site: CommandSite) => Promise<void>;
  /** Runs during the other calls. */
  readonly during?: (running: RunningCommand, site: CommandSite) => Promise<void>;
  /** Parts of the output that vary from run to run, and their replacements in the snapshot. */
  readonly varies?: readonly (readonly [pattern: RegExp, replacement: string])[];
  /** A value of the JSON output that later calls use as `{name}`. */
  readonly remembers?: { readonly name: string; readonly from: RegExp };
}

const LOCK = 'A4:C1:38:F0:E1:D2';
const NOT_A_MAC = /"A4:C1" is no MAC: expected 12 hex digits/;
const NOT_A_NUMBER = /Expected a (whole )?number|expected a number/;
const PRICE = '--per-mb 0.12 --per-sim 0.80 --currency EUR';

// Parts of the output that vary, for `varies`.
/** The sizes and the version of a store. */
const STORE_SIZE = [
  [/\b\d{4}-[a-z]+(-[a-z]+)*/g, '0012-its-version'],
  [/\b\d[\d,]* (bytes|blocks|pages|frames|tables|items|rows|events)\b */g, 'N $1  '],
  [/("(?:bytes|count)": )\d+/g, '$1"N"'],
  [/bytes \d+ to \d+|of page \d+/g, 'N'],
] as const;
/** The state of the sending of notices. */
const SENDING = [
  [/Sent to .*/, 'Sent to N'],
  [/("(?:notices_)?sending": )\{[\s\S]*?\n {2}\}/, '$1"N"'],
] as const;
/** How long an answer took. */
const ANSWER_TIME = [
  [/after \d+ ms/, 'after N ms'],
  [/("duration_ms": )\d+/, '$1"N"'],
] as const;
/** Deletes the key file of the closed data folder. */
const loseKey = ({ folder }: CommandSite): void => rmSync(path.join(folder, 'closed/key'));
/** Damages the file of checksums, so that it does not match its own checksum. */
const spoilSums = ({ folder }: CommandSite): void => {
  const sums = path.join(folder, 'closed/lockgate.sqlite.sums');
  writeFileSync(sums, readFileSync(sums, 'utf8').trimEnd().replace(/.$/, 'z'));
};
/** Interrupts a running command once its output matches. */
const interruptAfter =
  (started: RegExp) =>
  async (running: RunningCommand): Promise<void> => {
    await running.waitUntil(started);
    running.interrupt();
  };

const GENERAL: readonly CommandCase[] = [
  {
    command: 'demo',
    shows: { reason: 'It runs until Ctrl-C; test/system runs it.' },
    json: null,
    wrong: ['--locks many', /Expected|expected/],
  },
  {
    command: 'serve',
    shows: { reason: 'It runs until Ctrl-C; test/system runs it.' },
    json: null,
    wrong: ['--mqtt-port many', /--mqtt-port is "many": expected a port/],
  },
  {
    command: 'tail',
    // Only the events of one lock, since events of the gateway itself depend on how busy the machine is.
    shows: `--mac ${LOCK} --hex`,
    wrong: ['--mac A4:C1', NOT_A_MAC],
    during: async (running, site) => {
      await site.waitForListener();
      await site.sendPing();
      await running.waitUntil(/disconnect[\s\S]*(pres|"presence")/);
      running.interrupt();
    },
  },
  {
    command: 'why',
    // The lock’s second ping, named by its boot and sequence numbers.
    shows: `${LOCK} 41/13`,
    wrong: [`${LOCK} --url 1`, /--url requires an event’s id/],
    negative: 'finding:99',
  },
  {
    command: 'status',
    shows: '',
    wrong: ['--watch', /in a pipe add --json/],
    varies: [
      [/\d+(\.\d+)? [kMGT]?B\b/g, 'N B'],
      [/\d[\d,]*( of \d[\d,]*)? open/, 'N open'],
      [/\d+\.\d\/s/, 'N/s'],
      [/started .* ago|started now/, 'started N ago'],
      [/(none unread|! \d+ unread: .*)/, 'N unread'],
      ...SENDING,
      [
        /("(?:store_bytes|free_bytes|open|limit|worst_delay_ms|pings_per_second|notices_unread|port)": )[\d.]+/g,
        '$1"N"',
      ],
    ],
  },
  {
    command: 'console',
    shows: '--no-open',
    wrong: ['--browser firefox', /unknown option '--browser'/],
    varies: [
      [/:\d+\/#lgl_[\w-]+/g, ':8081/#lgl_N'],
      [/in \d min/, 'in 4 min'],
      [/("expires_at": )"[^"]*"/, '$1"N"'],
    ],
  },
  {
    command: 'notices',
    shows: '--all',
    wrong: ['--kind lost', /--kind is "lost": expected url-disabled/],
    varies: SENDING,
  },
  { command: 'notices rotate-secret', shows: '--grace 1h', json: '--now', wrong: ['--grace long', /such as 90s, 15m/] },
  { command: 'notices test', shows: '', wrong: ['--loud', /unknown option '--loud'/], varies: ANSWER_TIME },
  { command: 'notices read', shows: '1', json: '--all', wrong: ['', /expected ids of notices, or --all/] },
  { command: 'audit', shows: '--limit 5', wrong: ['--since yesterday', /--since is "yesterday": expected a span/] },
  {
    command: 'merchant add',
    shows: '"Cargo Bikes"',
    json: '"Dune Bikes"',
    wrong: ['', /missing required argument 'name'/],
    refused: '"Amber Bikes"',
  },
  {
    command: 'merchant set',
    shows: '"Amber Bikes" --notify-url http://127.0.0.1:9/ops',
    json: '"Basil Bikes" --notify-url http://127.0.0.1:9/ops',
    wrong: ['"Amber Bikes"', /nothing to change: give --name NAME, --notify-url URL or --no-notify-url/],
    refused: '"Cargo Bikes" --name "Amber Bikes"',
  },
  {
    command: 'merchant rotate-notify-secret',
    shows: '"Amber Bikes" --grace 1h',
    json: '"Amber Bikes" --now',
    wrong: ['"Amber Bikes" --grace long', /such as 90s, 15m, 1h or 2d/],
    refused: 'Nobody',
  },
  {
    command: 'merchant test-notify',
    shows: '"Amber Bikes"',
    wrong: ['', /missing required argument 'name'/],
    negative: '"Basil Bikes"',
    refused: 'Nobody',
    before: async ({ gateway, receiver }) => void (await gateway.notifier.setMerchantUrl(1, receiver.url)),
    varies: ANSWER_TIME,
  },
  {
    command: 'merchant close',
    shows: '"Cargo Bikes" --yes',
    json: '"Dune Bikes" --yes',
    wrong: ['"Cargo Bikes"', /confirm with --yes/],
    refused: '"Cargo Bikes" --yes',
  },
  {
    command: 'merchant list',
    shows: '--all',
    wrong: ['--watch', /in a pipe add --json/],
    before: async ({ gateway }) => void (await gateway.notifier.setMerchantUrl(2, null)),
  },
  {
    command: 'merchant reopen',
    shows: '"Cargo Bikes"',
    json: '"Dune Bikes"',
    wrong: ['', /missing required argument 'name'/],
    refused: '"Cargo Bikes"',
  },
  {
    command: 'user add',
    shows: 'ada --merchant "Amber Bikes"',
    json: 'bo --merchant "Amber Bikes" --email bo@example.com --password-file password',
    wrong: ['cy --merchant "Amber Bikes" --password-file nowhere', /nowhere can't be read/],
    refused: 'ada --merchant "Amber Bikes"',
  },
  { command: 'user list', shows: '--merchant "Amber Bikes"', wrong: ['', /which merchant\?/] },
  {
    command: 'user set',
    shows: 'ada --merchant "Amber Bikes" --dashboard staff',
    json: 'bo --merchant "Amber Bikes" --dashboard viewer',
    wrong: ['ada --merchant "Amber Bikes" --dashboard admin', /expected owner, staff, viewer, none/],
    refused: 'nobody --merchant "Amber Bikes" --dashboard none',
  },
  {
    command: 'user set-password',
    shows: 'ada --merchant "Amber Bikes" --password-file password',
    json: 'bo --merchant "Amber Bikes" --password-file password',
    wrong: ['ada --merchant "Amber Bikes" --password-file nowhere', /nowhere can't be read/],
    refused: 'nobody --merchant "Amber Bikes" --password-file password',
  },
  {
    command: 'user remove',
    shows: 'bo --merchant "Amber Bikes"',
    json: 'ada --merchant "Amber Bikes"',
    wrong: ['', /missing required argument 'username'/],
    refused: 'nobody --merchant "Amber Bikes"',
  },
  {
    command: 'user invite',
    shows: 'eve --merchant "Amber Bikes" --dashboard owner --expires 24h',
    json: '--merchant "Amber Bikes" --dashboard staff --url https://locks.example.com/',
    wrong: ['--merchant "Amber Bikes" --dashboard staff --url locks.example.com', /expected an http or https address/],
    refused: 'eve --merchant Nobody --dashboard staff',
    varies: [
      [/lgi_[\w-]+/g, 'lgi_…'],
      [/127\.0\.0\.1:\d+\/#/g, '127.0.0.1:8080/#'],
    ],
  },
  { command: 'user invitations', shows: '--merchant "Amber Bikes"', wrong: ['', /which merchant\?/] },
  {
    command: 'user uninvite',
    shows: '1 --merchant "Amber Bikes"',
    json: '2 --merchant "Amber Bikes"',
    wrong: ['', /missing required argument 'id'/],
    refused: '99 --merchant "Amber Bikes"',
  },
  {
    command: 'key create',
    shows: '"shop backend" --merchant "Amber Bikes"',
    json: '"shop frontend" --merchant "Amber Bikes" --expires 90d',
    wrong: ['"shop backend"', /which merchant\?/],
    remembers: { name: 'key', from: /"id":\s*"([0-9a-f]{12})"/ },
  },
  { command: 'key list', shows: '', wrong: ['--merchant', /argument missing/] },
  {
    command: 'token create',
    shows: 'prometheus --role metrics',
    json: 'ada --role operate --expires 90d',
    wrong: ['ada --role owner', /expected metrics, read, operate, admin/],
    refused: 'ada --role read',
  },
  { command: 'token list', shows: '', wrong: ['--watch', /in a pipe add --json/] },
  {
    command: 'token revoke',
    shows: 'prometheus',
    json: 'ada',
    wrong: ['', /missing required argument 'name'/],
    refused: 'nobody',
  },
  { command: 'key revoke', shows: '{key}', wrong: ['', /missing required argument 'id'/], refused: 'nothing' },
];

const DEVICES: readonly CommandCase[] = [
  {
    command: 'device add',
    shows: 'a4c138f0e1d5 --merchant "Amber Bikes"',
    json: 'a4c138f0e1d6 --merchant "Amber Bikes" --simulated',
    wrong: ['A4:C1', NOT_A_MAC],
    refused: `${LOCK} --merchant "Amber Bikes"`,
  },
  { command: 'device list', shows: '', wrong: ['--watch 0.1', /Expected seconds, 0\.5 to 3600/] },
  { command: 'device show', shows: LOCK, wrong: ['A4:C1', NOT_A_MAC], refused: 'A4:C1:38:F0:E1:FF' },
  {
    command: 'device rotate-secret',
    shows: 'A4:C1:38:F0:E1:D5 --keep-old-for 1h',
    json: 'A4:C1:38:F0:E1:D6',
    wrong: ['A4:C1:38:F0:E1:D5 --keep-old-for long', /--keep-old-for is "long": expected a span/],
  },
  {
    command: 'device import',
    shows: 'locks.csv --merchant "Amber Bikes" --out secrets.csv',
    json: 'more.csv --merchant "Amber Bikes"',
    wrong: ['nowhere.csv --merchant "Amber Bikes"', /nowhere\.csv/],
    withoutGateway: 'locks.csv --out other.csv',
  },
  {
    command: 'device set',
    shows: 'A4:C1:38:F0:E1:D5 --merchant "Basil Bikes"',
    json: 'A4:C1:38:F0:E1:D5 --simulated',
    wrong: [`${LOCK} --simulated --not-simulated`, /exclude each other/],
    refused: `${LOCK} --merchant Nobody`,
  },
  {
    command: 'device reflashed',
    shows: `${LOCK} --at 2026-11-20T06:00:00Z`,
    wrong: ['A4:C1', NOT_A_MAC],
    refused: 'A4:C1:38:F0:E1:FF',
  },
  {
    command: 'device remove',
    shows: 'A4:C1:38:F0:E1:D5',
    json: 'A4:C1:38:F0:E1:D6',
    wrong: ['A4:C1', NOT_A_MAC],
    refused: 'A4:C1:38:F0:E1:FF',
  },
  {
    command: 'device erase',
    shows: 'A4:C1:38:F0:E1:E1 --yes',
    wrong: ['A4:C1:38:F0:E1:E1', /erasing can’t be undone: confirm with --yes/],
  },
  {
    command: 'device rejudge',
    shows: { reason: 'The judge fails at no lock here; test/gateway/ingest/unjudged.test.ts has one.' },
    wrong: ['A4:C1', NOT_A_MAC],
    refused: LOCK,
    withoutGateway: LOCK,
  },
  {
    command: 'device phone add',
    shows: `${LOCK} "Ada’s phone" --expires 30d`,
    json: `${LOCK} "Bo’s phone"`,
    wrong: [`${LOCK} phone --expires soon`, /--expires is "soon": expected a span/],
    refused: `${LOCK} "Ada’s phone"`,
  },
  { command: 'device phone list', shows: LOCK, wrong: ['A4:C1', NOT_A_MAC] },
  {
    command: 'device phone revoke',
    shows: `${LOCK} "Ada’s phone"`,
    json: `${LOCK} "Bo’s phone"`,
    wrong: [LOCK, /missing required argument 'name'/],
    refused: `${LOCK} "Nobody’s phone"`,
  },
  {
    command: 'command send',
    shows: `${LOCK} siren --seconds 20`,
    json: `${LOCK} unlock`,
    wrong: [`${LOCK} siren --seconds loud`, NOT_A_NUMBER],
    negative: `${LOCK} lock --wait`,
    // A cancelled command is not done, so --wait ends with a negative answer.
    duringNegative: async (_running, { gateway, waitForQueued }) =>
      void (await gateway.commands.cancel(await waitForQueued('lock'))),
  },
  { command: 'command list', shows: '', wrong: ['--state gone', /--state is "gone": expected queued, sent/] },
  { command: 'command show', shows: '1', wrong: ['one', NOT_A_NUMBER], refused: '99' },
  { command: 'command cancel', shows: '1', json: '2', wrong: ['one', NOT_A_NUMBER], refused: '1' },
];

const WEBHOOKS: readonly CommandCase[] = [
  {
    command: 'webhook add',
    shows: 'http://127.0.0.1:9/locks --merchant "Basil Bikes" --header "X-Team: bikes" --rate 5',
    json: 'http://127.0.0.1:9/more --merchant "Basil Bikes" --ordered --reasons REASON_THEFT --events ping,command',
    wrong: ['ftp://hooks.example.com/ --merchant "Basil Bikes"', /not an http or https URL/],
    refused: 'http://127.0.0.1:9/locks --merchant Nobody',
  },
  { command: 'webhook list', shows: '', wrong: ['--watch often', /Expected seconds/] },
  { command: 'webhook show', shows: '1', wrong: ['one', /Expected/], refused: '99' },
  {
    command: 'webhook set',
    shows: '2 --ordered on --disable --ping-types gps --reasons REASON_THEFT,REASON_GPS_PING --timeout 3',
    json: '2 --enable --ping-types all --reasons all --events ping,battery --timeout none',
    wrong: ['2 --enable --disable', /--enable and --disable exclude each other/],
    refused: '99 --enable',
  },
  {
    command: 'webhook rotate-secret',
    shows: '2 --grace 1h',
    json: '2 --now',
    wrong: ['2 --grace long', /such as 90s, 15m, 1h or 2d/],
    refused: '99',
  },
  {
    command: 'webhook deliveries',
    shows: '',
    wrong: ['--state lost', /--state is "lost": expected pending, delivered, dead, kept/],
    refused: '--url 99',
    remembers: { name: 'event', from: /"event_id":\s*"(evt_[^"]*)"/ },
  },
  {
    command: 'webhook resend',
    shows: '{event}',
    wrong: ['evt_nonsense', /not an event id/],
    refused: '{event} --url 99',
  },
  {
    command: 'webhook recover',
    // The event that was sent again just before may still be under way.
    varies: [
      [/^(\d +)\d+$/gm, '$1N'],
      [/("events": )\d+/g, '$1"N"'],
    ],
    shows: '--since 2026-11-20T06:00:00Z',
    wrong: ['', /--since <time>' not specified/],
    refused: '--since 2026-11-20T06:00:00Z --url 99',
  },
  {
    command: 'webhook test',
    shows: LOCK,
    wrong: ['A4:C1', NOT_A_MAC],
    negative: 'A4:C1:38:F0:E1:D3 --url 2',
    // The width of the column before it depends on the measured times.
    varies: [[/ +(?=RESULT|refused\))/g, '  ']],
    refused: `${LOCK} --url 99`,
  },
  {
    command: 'webhook trigger',
    shows: `theft ${LOCK} --fast`,
    json: '--list',
    wrong: [`thef ${LOCK}`, /Did you mean theft\?/],
    negative: 'theft A4:C1:38:F0:E1:D3 --fast --url 2',
  },
  { command: 'webhook remove', shows: '2', json: '3', wrong: ['two', NOT_A_NUMBER], refused: '99' },
  {
    command: 'webhook listen',
    shows: '--port 0',
    wrong: ['--port 99999', /Expected a port/],
    negative: '--port 0 --expect 1 --within 1s',
    during: interruptAfter(/Listening/),
  },
  {
    command: 'webhook schema',
    shows: '--types',
    json: '',
    wrong: ['--type', /unknown option '--type'\. Did you mean/],
  },
];

const SIMULATOR: readonly CommandCase[] = [
  {
    command: 'sim run',
    shows: '--virtual --locks 3 --days 1 --seed 7 --out week.jsonl',
    wrong: ['--virtual --mix warp=100', /warp/],
    negative: '--virtual --scenario hopeless.yaml',
    withoutGateway: '--locks 1',
  },
  {
    command: 'sim plan',
    shows: `--locks 30 --days 1 --mix mid=100 ${PRICE}`,
    wrong: ['', /--locks <n>' not specified/],
  },
  {
    command: 'sim shell',
    shows: '',
    stdin: 'steal for 1 min\nstate\n',
    wrong: ['--battery full', /Expected a whole number, 0 to 100/],
    withoutGateway: '--gateway http://127.0.0.1:9',
  },
  {
    command: 'sim shadow',
    shows: LOCK,
    wrong: ['A4:C1', NOT_A_MAC],
    during: interruptAfter(/Ctrl-C|"begin"/),
    varies: [[/"seconds": ?\d+/g, '"seconds":N']],
  },
  { command: 'sim scenarios', shows: '', wrong: ['thef', /Did you mean theft\?/] },
  { command: 'sim bugs', shows: '', wrong: ['--jsn', /Did you mean --json\?/] },
  { command: 'sim faults', shows: '', wrong: ['--jsn', /Did you mean --json\?/] },
  {
    command: 'trace check',
    shows: 'fine.jsonl --coverage',
    wrong: ['nowhere.jsonl', /nowhere\.jsonl/],
    negative: 'broken.jsonl',
  },
  {
    command: 'trace show',
    shows: 'fine.jsonl',
    wrong: ['fine.jsonl --reason REASON_THEF', /is not a reason: .*Did you mean REASON_THEFT\?/],
  },
  { command: 'trace why', shows: 'broken.jsonl:6', wrong: ['fine.jsonl:1', /fine\.jsonl:1 is the header/] },
  {
    command: 'trace certify',
    shows: 'fine.jsonl --firmware 2.4.1',
    wrong: ['fine.jsonl --verify fine.jsonl', /fine\.jsonl is not a certificate/],
    negative: 'broken.jsonl',
  },
  { command: 'trace anonymise', shows: 'fine.jsonl --seed 1', json: null, wrong: ['nowhere.jsonl', /nowhere\.jsonl/] },
  { command: 'trace export', shows: '', json: null, wrong: ['--since noon', /noon/] },
  {
    command: 'trace record',
    shows: '--out now.jsonl',
    json: null,
    wrong: ['--mac A4:C1', NOT_A_MAC],
    during: interruptAfter(/Ctrl-C/),
  },
  {
    command: 'trace replay',
    shows: 'fine.jsonl --provision --merchant "Amber Bikes" --speed max',
    wrong: ['fine.jsonl', /give --secrets FILE\.csv or --provision/],
  },
  {
    command: 'trace import',
    shows: '--from mosquitto-log sub.txt --mac A4:C1:38:F0:E1:D2 --out imported.jsonl',
    wrong: ['--from pcap sub.txt', /sub\.txt: offset 0: the file starts with/],
  },
  {
    command: 'trace shrink',
    shows: 'broken.jsonl --rule after-close',
    json: 'broken.jsonl --rule after-close --out small.jsonl',
    wrong: ['broken.jsonl --rule after-clos', /there is no rule after-clos: .*Did you mean after-close\?/],
    negative: 'fine.jsonl --rule after-close',
  },
  {
    command: 'trace diff',
    shows: 'fine.jsonl fine.jsonl --tolerance 1s',
    wrong: ['fine.jsonl broken.jsonl --tolerance soon', /--tolerance is "soon": expected a span such as 5s/],
    negative: 'fine.jsonl broken.jsonl',
  },
  {
    command: 'trace what-if',
    shows: 'fine.jsonl --mode HIGH --window 06:00-22:00',
    wrong: ['fine.jsonl --window 6-22', /--window is "6-22".*expected a window such as 06:00-22:00/],
  },
  {
    command: 'ping decode',
    // A close-connection ping of boot 41, sequence 14.
    shows: '0829100e18b8b4acbc9f344a0408011051',
    wrong: ['08', /the bytes are no protobuf Uplink|the uplink/],
  },
  {
    command: 'ping encode',
    shows:
      `'{"ping_type":"close_connection","lock_state":"locked","battery_percent":81,` +
      `"boot":41,"sequence":14,"date":"2026-11-20T06:00:51.000Z"}'`,
    wrong: ["'{}'", /ping_type|expected/],
  },
  {
    command: 'model show',
    shows: '--rules',
    json: '',
    wrong: ['--format pdf', /--format is "pdf": expected text, json/],
  },
];

const HOUSEKEEPING: readonly CommandCase[] = [
  {
    command: 'usage show',
    shows: '',
    json: '--by month',
    wrong: ['--month 11', /"11" is no month/],
    refused: '--merchant Nobody',
  },
  {
    command: 'usage statement',
    shows: '--month 2026-10 --merchant "Amber Bikes"',
    json: '--month 2026-10 --merchant "Basil Bikes"',
    wrong: ['--format pdf', /--format is "pdf": expected table, csv, json/],
    refused: '--month 2026-01',
  },
  {
    command: 'usage close',
    shows: '--month 2026-10',
    wrong: ['--month October', /"October" is no month/],
    refused: '--month 2026-11',
  },
  {
    command: 'usage plan set',
    shows: `"Basil Bikes" ${PRICE}`,
    wrong: ['"Basil Bikes" --per-mb 0.12 --per-sim 0.80 --currency euro', /no currency/],
    refused: `Nobody ${PRICE}`,
  },
  { command: 'usage plan show', shows: '', wrong: ['--month', /unknown option/], refused: 'Nobody' },
  { command: 'config show', shows: '', wrong: ['--mqtt-port many', /--mqtt-port is "many": expected a port/] },
  {
    command: 'config confirm-clock',
    shows: '',
    json: '--dry-run',
    wrong: ['--dryrun', /Did you mean --dry-run\?/],
  },
  {
    command: 'config reset-operator-token',
    shows: '--data closed',
    wrong: ['--data nowhere', /nowhere/],
  },
  { command: 'config rotate-key', shows: '--data closed', wrong: ['--data nowhere', /nowhere/] },
  {
    command: 'config forget-secrets',
    shows: '--data closed --yes',
    wrong: ['--data closed', /confirm with --yes/],
    before: loseKey,
  },
  {
    command: 'db check',
    varies: STORE_SIZE,
    shows: '--data closed',
    wrong: ['nowhere.sqlite', /nowhere\.sqlite/],
    negative: 'rotten.sqlite',
  },
  {
    command: 'db backup',
    varies: STORE_SIZE,
    shows: '--out monday.sqlite',
    json: '--out tuesday.sqlite',
    wrong: ['--out fine.jsonl', /exists already; --force overwrites it/],
    withoutGateway: '--out friday.sqlite',
    // The gateway makes one backup at a time: waits until it has removed the last one.
    before: async ({ data }) => {
      while (existsSync(path.join(data, 'backup.part'))) await new Promise<void>((resolve) => afterThisTurn(resolve));
    },
  },
  {
    command: 'db accept',
    shows: '--data closed --yes',
    wrong: ['--data closed', /confirm with --yes/],
    before: spoilSums,
  },
  { command: 'db migrate', varies: STORE_SIZE, shows: '--data closed --dry-run', wrong: ['--data nowhere', /nowhere/] },
  { command: 'completion', shows: 'bash', wrong: ['basch', /expected bash, zsh, fish\. Did you mean bash\?/] },
];

/** All cases, in the order of their calls. */
export const COMMAND_CASES: readonly CommandCase[] = [
  ...GENERAL,
  ...DEVICES,
  ...WEBHOOKS,
  ...SIMULATOR,
  ...HOUSEKEEPING,
];
