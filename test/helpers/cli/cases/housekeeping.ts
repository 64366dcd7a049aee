// Calls of the commands about usage, settings and the store, which the contract test makes last; some work on the data
// folder `closed`, which no gateway uses. case.ts says what each member of a case is.
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterThisTurn } from '../../../../proto/clock.js';
import type { CommandSite } from '../command-site.js';
import { type CommandCase, PRICE } from './case.js';

// Parts of the output that vary, for `varies`.
/** The version of a store, such as `0020-usage-by-lock`, and its sizes. */
const STORE_SIZE = [
  [/\b\d{4}-[a-z]+(-[a-z]+)*/g, '0012-its-version'],
  [/\b\d[\d,]* (bytes|blocks|pages|frames|tables|items|rows|events)\b */g, 'N $1  '],
  [/("(?:bytes|count)": )\d+/g, '$1"N"'],
  [/bytes \d+ to \d+|of page \d+/g, 'N'],
] as const;

/** Deletes the key file of the closed data folder. */
const loseKey = ({ folder }: CommandSite): void => rmSync(path.join(folder, 'closed/key'));
/** Damages the file of checksums, so that it does not match its own checksum. */
const spoilSums = ({ folder }: CommandSite): void => {
  const sums = path.join(folder, 'closed/lockgate.sqlite.sums');
  writeFileSync(sums, readFileSync(sums, 'utf8').trimEnd().replace(/.$/, 'z'));
};

export const HOUSEKEEPING: readonly CommandCase[] = [
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
  {
    command: 'db move',
    shows: { reason: 'A successful move needs PostgreSQL; test/gateway/store/postgres/move.slow.test.ts tests it.' },
    // The text after the scheme is not quoted: it may have a password.
    wrong: ['--to mysql://ann:secret@db/x --data closed', /--to is not the URL of a database: expected postgres:/],
    refused: '--to postgres://127.0.0.1:1/none --data closed',
  },
  { command: 'db migrate', varies: STORE_SIZE, shows: '--data closed --dry-run', wrong: ['--data nowhere', /nowhere/] },
  { command: 'completion', shows: 'bash', wrong: ['basch', /expected bash, zsh, fish\. Did you mean bash\?/] },
];
