/** Which of a lock's commands is sent next. */
import t from 'tap';
import { type CommandQueue, newQueue, nextChangeMs, nextCommand } from '../../../gateway/commands/command-queue.js';
import type { CommandRecord } from '../../../gateway/store/contract/command-record.js';
import { NEVER } from '../../../proto/power/judge/state.js';
import { testMac } from '../../helpers/gateway/test-gateway.js';

/** A queue of commands that were never sent, in the order of their ids: when they were created and may be sent. */
function queueOf(...commands: readonly Pick<CommandRecord, 'createdAtMs' | 'notBeforeMs'>[]): CommandQueue {
  const queue = newQueue(1, testMac());
  queue.open = commands.map((times, index) => {
    const record = { id: index + 1, state: 'queued', expiresAtMs: NEVER, lastSentAtMs: null, ...times };
    return { record: record as CommandRecord, session: undefined, sendsOnSession: 0 };
  });
  return queue;
}

function nextId(queue: CommandQueue, nowMs: number): number | undefined {
  return nextCommand(queue, nowMs, () => false)?.record.id;
}

t.test('a command without a scheduled time is sent at once, whatever clock it was created by', (t) => {
  // Another gateway, whose clock is ahead, created it; or the clock was set back since.
  const queue = queueOf({ createdAtMs: 5000, notBeforeMs: null });
  t.equal(nextId(queue, 1000), 1);
  t.equal(nextChangeMs(queue, 1000), NEVER, 'nothing more is to come');
  t.end();
});

t.test('a scheduled command waits for its time, and later ones overtake it', (t) => {
  const queue = queueOf({ createdAtMs: 1000, notBeforeMs: 3000 }, { createdAtMs: 2000, notBeforeMs: null });
  t.equal(nextId(queue, 2000), 2);
  t.equal(nextChangeMs(queue, 2000), 3000);
  queue.open.pop();
  t.equal(nextId(queue, 2999), undefined);
  t.equal(nextId(queue, 3000), 1);
  t.end();
});

t.test('commands are sent in the order of the times for which they were planned', (t) => {
  const queue = queueOf(
    { createdAtMs: 3000, notBeforeMs: null },
    { createdAtMs: 1000, notBeforeMs: 2000 },
    { createdAtMs: 2500, notBeforeMs: 1000 },
  );
  t.equal(nextId(queue, 4000), 2);
  queue.open.splice(1, 1);
  t.equal(nextId(queue, 4000), 3, 'a time before its creation is that of its creation');
  t.end();
});
