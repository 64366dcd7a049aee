// Calls of the commands about webhook URLs and deliveries, whose output the contract test compares with snapshots:
// `shows` has the arguments of the call for people, `json` those with --json, `wrong` a mistake and its error,
// `refused` a call that the gateway refuses (exit code 3), `negative` one with exit code 1. `varies` replaces parts of
// the output that differ in each run, and `remembers` takes a value from it for later calls (`{event}`). The site has
// URL 1, at which its receiver answers; `webhook add` adds the URLs 2 and 3, at which nothing listens.
import { type CommandCase, interruptAfter, LOCK, NOT_A_MAC, NOT_A_NUMBER } from './case.js';

export const WEBHOOKS: readonly CommandCase[] = [
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
