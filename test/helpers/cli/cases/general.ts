// Calls of the commands about the gateway itself, merchants, users, notices and backups. They are made in this order,
// on one gateway: `shows` has the arguments of the call for people, `json` those with --json, `wrong` a mistake and its
// error, `refused` a call that the gateway refuses, `negative` one with a negative answer. `varies` replaces parts of
// the output that differ from run to run.
import { type CommandCase, LOCK, NOT_A_MAC } from './case.js';

/** The state of the sending of notices, in text and in JSON. */
const SENDING = [
  [/Sent to .*/, 'Sent to N'],
  [/("(?:notices_)?sending": )\{[\s\S]*?\n {2}\}/, '$1"N"'],
] as const;
/** How long an answer took. */
const ANSWER_TIME = [
  [/after \d+ ms/, 'after N ms'],
  [/("duration_ms": )\d+/, '$1"N"'],
] as const;

/** The ids of the site's merchants. */
const [AMBER_ID, BASIL_ID] = [1, 2];

export const GENERAL: readonly CommandCase[] = [
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
    before: async ({ gateway, receiver }) => void (await gateway.notifier.setMerchantUrl(AMBER_ID, receiver.url)),
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
    before: async ({ gateway }) => void (await gateway.notifier.setMerchantUrl(BASIL_ID, null)),
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
