/** `lockgate demo`: flags and help. demo.ts does the work and is loaded on demand. */
import { type Command, InvalidArgumentError } from 'commander';
import { NEW_FLAG, SETTING_FLAGS } from '../serve/serve.js';
import type { DemoFlags } from './flags.js';

const DEFAULT_LOCKS = 12;
const DEFAULT_SPEED = 60;
const MAX_LOCKS = 500;
const MAX_SPEED = 600;

/** Adds the command to the program. `npm start` runs it. */
export function addDemoCommand(program: Command): void {
  const demo = program
    .command('demo')
    .description('Run a gateway, simulated locks and a webhook receiver, and show what they do.');
  demo.option('--locks <n>', 'Number of locks.', wholeNumber(MAX_LOCKS), DEFAULT_LOCKS);
  demo.option('--speed <n>', 'How many times faster than real time.', wholeNumber(MAX_SPEED), DEFAULT_SPEED);
  demo.option('--seed <text>', 'The seed of the fleet; used at the first start on a data folder.', 'demo');
  demo.option(
    '--webhook-port <port>',
    'The port of the webhook receiver (default: 9000, or a free port).',
    wholeNumber(65535),
  );
  for (const [flag, help] of SETTING_FLAGS) demo.option(flag, help);
  demo.option(...NEW_FLAG);
  demo
    .addHelpText('after', '\nExample:\n  $ lockgate demo --locks 30 --speed 120')
    .action(async (flags: DemoFlags) => await (await import('./demo.js')).runDemo(flags));
}

function wholeNumber(max: number): (text: string) => number {
  return (text) => {
    if (/^[1-9]\d{0,6}$/.test(text) && Number(text) <= max) return Number(text);
    throw new InvalidArgumentError(`Expected a whole number, 1 to ${max}.`);
  };
}
