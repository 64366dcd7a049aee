import { type Command, InvalidArgumentError } from 'commander';
import { NEW_FLAG, SETTING_FLAGS } from '../serve/serve.js';
import type { DemoFlags } from './flags.js';

const LOCKS = 12;
const SPEED = 60;
const MOST_LOCKS = 500;
const MOST_SPEED = 600;

/** `lockgate demo`: what `npm start` runs. */
export function addDemoCommand(program: Command): void {
  const demo = program
    .command('demo')
    .description('Run a gateway, simulated locks and a webhook receiver, and show what they do.');
  demo.option('--locks <n>', 'The number of locks.', whole(MOST_LOCKS), LOCKS);
  demo.option('--speed <n>', 'How much faster than real time the locks live.', whole(MOST_SPEED), SPEED);
  demo.option('--seed <text>', 'The seed of the fleet, for the first start on a data folder.', 'demo');
  demo.option(
    '--webhook-port <port>',
    'Where the webhook receiver listens (default: 9000, or a free one).',
    whole(65535),
  );
  for (const [flag, help] of SETTING_FLAGS) demo.option(flag, help);
  demo.option(...NEW_FLAG);
  demo
    .addHelpText('after', '\nExample:\n  $ lockgate demo --locks 30 --speed 120')
    .action(async (flags: DemoFlags) => await (await import('./demo.js')).runDemo(flags));
}

function whole(most: number): (text: string) => number {
  return (text) => {
    if (/^[1-9]\d{0,6}$/.test(text) && Number(text) <= most) return Number(text);
    throw new InvalidArgumentError(`Expected a whole number, 1 to ${most}.`);
  };
}
