// Calls of the commands about locks and phones, whose output the contract test compares with snapshots: `shows` has the
// arguments of the call for people, `json` those with --json, `wrong` a mistake and its error, `refused` a call that
// the gateway refuses. The locks …E1:D5 and …E1:D6 come from `device add`, …E1:E1 from `device import`; …E1:FF is no
// lock.
import { type CommandCase, LOCK, NOT_A_MAC, NOT_A_NUMBER } from './case.js';

export const DEVICES: readonly CommandCase[] = [
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
