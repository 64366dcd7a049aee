/**
 * `npm run test:chaos`: gateways on one PostgreSQL with a standby, thousands of locks, and a fault every 20 seconds.
 * Prints what happened, and ends with code 1 if anything acknowledged was lost or doubled. `--help` lists the flags.
 */
import { parseArgs } from 'node:util';
import { Minutes, Seconds } from '../../proto/clock.js';
import { percentile } from '../bench/measure.js';
import { Resources } from '../bench/resources.js';
import { ChaosRun, type ServedAgain } from '../helpers/chaos/chaos-run.js';
import { type FaultName, faultNames } from '../helpers/chaos/faults.js';
import { chooseSeed } from '../helpers/pair/seeded-chance.js';
import { postgresMissing } from '../helpers/store/postgres/server.js';

const HELP = `Usage: npm run test:chaos -- [flags]

  --minutes N      how long faults are made (60)
  --seed N         repeats the faults of a run
  --locks N        how many locks connect (2000)
  --ping-every S   seconds between two pings of a lock (20)
  --gateways N     how many gateways share the database (3)
  --fault-every S  seconds between two faults (20)
  --only NAMES     only these faults, with commas between
  --no-standby     a database without a standby
  --help           this text
`;
const EXIT_FOUND = 1;
const EXIT_WRONG_FLAGS = 2;
/** The slowest of 100 locks may take this long until another gateway serves it. */
const MAX_SERVED_AGAIN = Seconds(10);
/** How many broken promises are printed. */
const MAX_PRINTED = 30;

const FLAGS = {
  minutes: { type: 'string', default: '60' },
  seed: { type: 'string' },
  locks: { type: 'string', default: '2000' },
  'ping-every': { type: 'string', default: '20' },
  gateways: { type: 'string', default: '3' },
  'fault-every': { type: 'string', default: '20' },
  only: { type: 'string' },
  'no-standby': { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const;

const WHOLE_FLAGS = ['seed', 'locks', 'gateways'] as const;
type WholeFlag = (typeof WHOLE_FLAGS)[number];
type Flags = ReturnType<typeof readFlags>;

/** @throws TypeError for an unknown flag, RangeError for a wrong value */
function readFlags(args: readonly string[]) {
  const { values } = parseArgs({ args: [...args], options: FLAGS, strict: true });
  const withStandby = !values['no-standby'];
  const number = (name: 'minutes' | 'ping-every' | 'fault-every' | WholeFlag): number => {
    const value = Number(values[name]);
    const isWhole = (WHOLE_FLAGS as readonly string[]).includes(name);
    if (value > 0 && (Number.isInteger(value) || !isWhole)) return value;
    if (name === 'seed' && values.seed === '0') return value;
    throw new RangeError(`--${name} ${values[name]}: expected a ${isWhole ? 'whole ' : ''}number above 0`);
  };
  const known: readonly string[] = faultNames(withStandby);
  const only = values.only?.split(',');
  const stranger = only?.find((name) => !known.includes(name));
  if (stranger !== undefined) throw new RangeError(`--only ${stranger}: expected some of ${known.join(', ')}`);
  const faultEveryMs = Seconds(number('fault-every'));
  return {
    isHelp: values.help,
    options: {
      seed: values.seed === undefined ? chooseSeed() : number('seed'),
      gateways: number('gateways'),
      locks: number('locks'),
      pingEveryMs: Seconds(number('ping-every')),
      faultEveryMs,
      faults: Math.ceil(Minutes(number('minutes')) / faultEveryMs),
      ...(only === undefined ? {} : { only: only as FaultName[] }),
      withStandby,
      // The locks have a process of their own, so that so many take no time from the run's other work.
      locksInOwnProcess: true,
      // The merchant refuses 1 in 100 webhooks at first.
      webhookFailureShare: 0.01,
    },
  };
}

/** How long locks were without a gateway, by fault; of those that began while a gateway was not ready, separately. */
function servedAgainLines(servedAgain: readonly ServedAgain[]): string[] {
  const kindOf = ({ fault, wereReady }: ServedAgain): string =>
    wereReady ? fault : `${fault} while a gateway was not ready`;
  const kinds = [...new Set(servedAgain.map(kindOf))].sort();
  return kinds.map((kind) => {
    const times = servedAgain.filter((each) => kindOf(each) === kind).map(({ milliseconds }) => milliseconds);
    const seconds = (share: number): string => (percentile(times, share) / Seconds(1)).toFixed(1);
    const figures = `${seconds(0.5)} s (p50), ${seconds(0.99)} s (p99), ${seconds(1)} s at most`;
    return `after ${kind}: ${times.length} times a lock was served again, in ${figures}`;
  });
}

async function run({ options }: Flags): Promise<void> {
  console.log(`npm run test:chaos -- --seed ${options.seed}: ${JSON.stringify(options)}`);
  const resources = new Resources();
  const test = {
    teardown: (undo: () => unknown) => resources.teardown(undo),
    comment: (line: string) => console.log(line),
  };
  try {
    const { broken, acked, delivered, servedAgain, exits } = await ChaosRun.run(test, options);
    const times = (code: number | null): number => exits.filter((each) => each === code).length;
    console.log(`${acked} acknowledged, ${delivered} delivered`);
    console.log(`${times(null)} processes were killed, ${times(4)} were replaced by others and ended`);
    for (const line of servedAgainLines(servedAgain)) console.log(line);
    const killed = servedAgain.filter(({ fault }) => fault === 'kill').map(({ milliseconds }) => milliseconds);
    if (percentile(killed, 0.99) > MAX_SERVED_AGAIN)
      broken.push('after a kill, 1 in 100 locks waited over 10 s for another gateway');
    for (const line of broken.slice(0, MAX_PRINTED)) console.log(`BROKEN: ${line}`);
    console.log(broken.length === 0 ? 'Nothing is broken.' : `${broken.length} promises are broken.`);
    if (broken.length > 0) process.exitCode = EXIT_FOUND;
  } finally {
    await resources.release();
  }
}

async function main(args: readonly string[]): Promise<void> {
  if (postgresMissing !== undefined) {
    console.log(`Not run: ${postgresMissing}.`);
    return;
  }
  let flags: Flags;
  try {
    flags = readFlags(args);
  } catch (error) {
    if (!(error instanceof TypeError || error instanceof RangeError)) throw error;
    console.error(`${error.message}\n\n${HELP}`);
    process.exitCode = EXIT_WRONG_FLAGS;
    return;
  }
  if (flags.isHelp) console.log(HELP);
  else await run(flags);
}

await main(process.argv.slice(2));
