/**
 * The test that commands are executed exactly once while connections break and the gateway is killed. A short and a
 * long test file call it with their numbers of commands, locks and kills.
 */
import { existsSync } from 'node:fs';
import type { Test } from 'tap';
import { CommandRun, type CommandRunOptions } from './command-run.js';

/**
 * The folder for temporary files, in memory if the system has it: kill -9 loses no data there, and a disk is slower.
 */
const MEMORY_FOLDER = '/dev/shm';
if (existsSync(MEMORY_FOLDER)) process.env.TMPDIR = MEMORY_FOLDER;

/** Adds the test. `file` is the test file, for the command that repeats the run. */
export function testCommandsDown(t: Test, options: CommandRunOptions, file: string): void {
  const repeat = `LOCKGATE_SEED=${options.seed} npm test -- ${file}`;
  t.setTimeout(600_000);
  const commands = options.locks * options.commandsPerLock;
  t.comment(`seed ${options.seed}, options ${JSON.stringify(options)}; repeat: ${repeat}`);
  t.test(
    `${commands} commands to locks that reconnect: each is executed once, although the gateway is killed`,
    async (t) => {
      t.setTimeout(600_000);
      const { findings, requested, received, lost, errorLines } = await CommandRun.run(t, options);
      t.comment(`${requested} requested, ${received} received, ${lost} connections lost on purpose`);
      t.equal(requested, commands);
      t.ok(lost > commands / 10, 'connections were lost');
      t.ok(received > requested, 'some commands were received twice');
      t.same(findings.slice(0, 10), [], `${findings.length} findings; repeat: ${repeat}`);
      t.same(errorLines, [], 'the gateway reports no error');
    },
  );
}
