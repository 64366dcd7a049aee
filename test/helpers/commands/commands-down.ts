/**
 * The test of commands down among other traffic, which has a quick form and a long one: how many commands, to how many
 * locks, across how many kills, is theirs to say.
 */
import { existsSync } from 'node:fs';
import type { Test } from 'tap';
import { CommandRun, type CommandRunOptions } from '../cli/command-run.js';

/** Folders in memory, where there is such a place: kill -9 can't tell what was fsynced, and a disk is only slower. */
const MEMORY = '/dev/shm';
if (existsSync(MEMORY)) process.env.TMPDIR = MEMORY;

/** Commands to locks that come and go: each is carried out once. `file` is the test to repeat, as tap is given it. */
export function testCommandsDown(t: Test, options: CommandRunOptions, file: string): void {
  const repeat = `LOCKGATE_SEED=${options.seed} npm test -- ${file}`;
  t.setTimeout(600_000);
  const commands = options.locks * options.commandsPerLock;
  t.comment(`seed ${options.seed}, options ${JSON.stringify(options)}; repeat: ${repeat}`);
  t.test(`${commands} commands to locks that come and go: each is carried out once, across kills`, async (t) => {
    t.setTimeout(600_000);
    const { findings, asked, received, lost, complaints } = await CommandRun.run(t, options);
    t.comment(`${asked} asked for, ${received} received, ${lost} connections lost on purpose`);
    t.equal(asked, commands);
    t.ok(lost > commands / 10, 'connections were lost');
    t.ok(received > asked, 'and some commands came twice');
    t.same(findings.slice(0, 10), [], `${findings.length} findings; repeat: ${repeat}`);
    t.same(complaints, [], 'the gateway has nothing to complain about');
  });
}
