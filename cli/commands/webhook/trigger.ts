/** `lockgate webhook trigger`: names, flags and help. What it does is loaded when it is called. */
import type { Command } from 'commander';
import { untilInterrupted } from '../../terminal/interrupt.js';
import { withConnection } from '../../terminal/shared-flags.js';
import { readCount } from './flags.js';
import type { TriggerFlags } from './story.js';

const HELP = `
The pings are those of a simulated lock to which the story happens at the lock's last known place, so that they are the
ones, in the order and at the distances in time, that the power model makes. It begins locked and asleep, with the power
settings that the story needs. The pings go the way of a test webhook: signed, marked test, each under an id of its
own, never retried and nowhere stored. Their boot is 0, which real locks don't have; their sequence grows from story to
story.

With --fast nothing is waited for: date and received_at keep their distances, and lie in the past.

Exit codes: 0 all pings were taken, 1 a URL did not take one, 2 there is no such story, 3 the gateway can't be reached
or refuses, 130 ended by Ctrl-C.

Example:
  $ lockgate webhook trigger --list
  $ lockgate webhook trigger theft A4:C1:38:F0:E1:D2 --fast`;

/** Adds the command to its group. */
export function addTriggerCommand(webhook: Command): void {
  withConnection(webhook.command('trigger').description('Send the whole sequence of pings of a story, as a test.'))
    .argument('[story]', 'What happens to the lock; --list shows the stories.')
    .argument('[mac]', 'The lock; the pings go to its merchant’s URLs.')
    .option('--list', 'List the stories, with how long they last, and end.')
    .option('--fast', 'Wait for answers alone, not for the times between pings.')
    .option('--url <id>', 'To this webhook URL only, disabled or not.', readCount)
    .addHelpText('after', HELP)
    .action(async (story: string | undefined, mac: string | undefined, flags: TriggerFlags) => {
      const { listStories, triggerStory } = await import('./story.js');
      if (flags.list) listStories(flags);
      else await triggerStory(story, mac, flags, untilInterrupted());
    });
}
