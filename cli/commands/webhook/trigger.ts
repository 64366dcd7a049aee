/** `lockgate webhook trigger`: flags and help. story.ts does the work and is loaded on demand. */
import type { Command } from 'commander';
import { untilInterrupted } from '../../terminal/interrupt.js';
import { addClientFlags } from '../../terminal/shared-flags.js';
import { readCount } from './flags.js';
import type { TriggerFlags } from './story.js';

const HELP = `
A simulated lock goes through the story at the real lock's last known position, so pings, order and timing follow the
power model. The lock starts locked and asleep, with the power settings that the story needs. The pings are sent as
test webhooks: signed, marked test, each with a new id, never retried and not stored. Their boot is 0, which real
locks don't use; sequences grow from story to story.

With --fast the pings are sent without pauses: date and received_at have the same intervals but are in the past.

Exit codes: 0 all pings were accepted, 1 a URL did not accept one, 2 the story does not exist, 3 the gateway can't be
reached or refuses, 130 interrupted by Ctrl-C.

Example:
  $ lockgate webhook trigger --list
  $ lockgate webhook trigger theft A4:C1:38:F0:E1:D2 --fast`;

/** Adds the command to its group. */
export function addTriggerCommand(webhook: Command): void {
  addClientFlags(
    webhook.command('trigger').description('Send the pings of a story, such as a theft, as test webhooks.'),
  )
    .argument('[story]', 'The story; --list shows all stories.')
    .argument('[mac]', 'The lock. Its merchant’s URLs get the pings.')
    .option('--list', 'List the stories and their durations.')
    .option('--fast', 'Do not wait between pings.')
    .option('--url <id>', 'Send only to this webhook URL, even if it is disabled.', readCount)
    .addHelpText('after', HELP)
    .action(async (story: string | undefined, mac: string | undefined, flags: TriggerFlags) => {
      const { listStories, triggerStory } = await import('./story.js');
      if (flags.list) listStories(flags);
      else await triggerStory(story, mac, flags, untilInterrupted());
    });
}
