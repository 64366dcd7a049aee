/**
 * Every command has help, a table for people, JSON for programs, and failures that say what is wrong and what to do,
 * each with its exit code (interfaces.md §4). The outputs are compared with the files in test/snapshots/cli, one for
 * each command. `TAP_SNAPSHOT=1 node dist/test/cli/contract.test.js` regenerates these files. COMMAND_CASES says with
 * which words each command is called.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Command } from 'commander';
import t, { type Test } from 'tap';
import { makeProgram } from '../../cli/program.js';
import type { CommandCase } from '../helpers/cli/cases/case.js';
import { COMMAND_CASES } from '../helpers/cli/command-cases.js';
import { type CommandEnvironment, type CommandResult, runCommand } from '../helpers/cli/command-line.js';
import { type CommandSite, commandSite } from '../helpers/cli/command-site.js';
import {
  callText,
  isWriting,
  snapshotName,
  storedSnapshot,
  storedSnapshotNames,
} from '../helpers/cli/command-snapshot.js';

const COLUMNS = 80;
/** The exit codes of a command that `during` may end: it ended by itself, or by Ctrl-C. */
const ENDED_CODES = [0, 130];
/** An address where nothing listens. */
const NOWHERE = { LOCKGATE_GATEWAY: 'http://127.0.0.1:9', LOCKGATE_TOKEN: 'none', LOCKGATE_DATA: 'nowhere' };

/** The whole program; the tests below run after it is made. */
let program: Command;
t.before(async () => {
  program = await makeProgram('all');
});

function pathOf(command: Command): string {
  return command.parent === null ? '' : `${pathOf(command.parent)} ${command.name()}`.trim();
}

function everyCommand(command = program): Command[] {
  return [command, ...command.commands.flatMap(everyCommand)];
}

/** Whether the command has an action; other commands are groups. `notices` has both an action and further commands. */
function isLeaf(command: Command): boolean {
  return command.commands.length === 0 || command.name() === 'notices';
}

function leaves(): Command[] {
  return everyCommand().filter(isLeaf);
}

const flagsOf = (name: string): readonly (string | undefined)[] =>
  (leaves().find((each) => pathOf(each) === name)?.options ?? []).map(({ long }) => long);

/** Splits a command line as a shell does: at blanks outside quotes. */
function wordsOf(typed: string): string[] {
  const words = typed.matchAll(/"(?<double>[^"]*)"|'(?<single>[^']*)'|(?<bare>\S+)/g);
  return [...words].map(({ groups }) => groups?.double ?? groups?.single ?? groups?.bare ?? '');
}

/** Lines of tables that are wider than the terminal. Lines outside tables may be wider. */
function tooWideLines(text: string): string[] {
  const isTable = (block: string): boolean => /^ *[A-Z][A-Z ]+( {2,}[A-Z ]+)+$/m.test(block);
  const tables = text.split('\n\n').filter(isTable);
  return tables.flatMap((table) => table.split('\n').filter((line) => [...line].length > COLUMNS));
}

/**
 * Values from the output of earlier calls, such as an id that the gateway gave; `{name}` in a command line is replaced
 * by the value of this name.
 */
const learnedValues = new Map<string, string>();

/** Replaces each `{name}` by its value. */
function fillIn(typed: string): string {
  return typed.replace(/\{(\w+)\}/g, (_all, name: string) => learnedValues.get(name) ?? `{${name}}`);
}

/** How to run a call: width of the terminal (undefined for a pipe), standard input, environment variables. */
type CallSetting = {
  [Name in Exclude<keyof CommandEnvironment, 'whileRunning'>]?: CommandEnvironment[Name] | undefined;
} & {
  readonly during?: CommandCase['during'];
};

/** Runs the calls of one command, checks them, and collects their texts for the snapshot. */
class Calls {
  readonly #test: Test;
  readonly #site: CommandSite;
  readonly #case: CommandCase;
  readonly texts: string[] = [];

  constructor(test: Test, site: CommandSite, each: CommandCase) {
    this.#test = test;
    this.#site = site;
    this.#case = each;
  }

  /** Checks --help. */
  async checkHelp(): Promise<void> {
    const { command } = this.#case;
    const { stdout, stderr } = await this.#call(`${command} --help`, 0, '');
    this.#test.match(stdout, new RegExp(`\nExample:\n[^]* {2}\\$ .*lockgate ${command}`), `${command}: an example`);
    this.#test.equal(stderr, '', `${command}: help goes to stdout only`);
  }

  /** Checks the output on a terminal. */
  async checkTerminalOutput(): Promise<void> {
    const { command, shows, stdin, during } = this.#case;
    if (typeof shows !== 'string') {
      this.texts.push(`[${shows.reason}]`);
      return;
    }
    await this.#case.before?.(this.#site);
    const code = during === undefined ? 0 : ENDED_CODES;
    const { stdout } = await this.#call(`${command} ${shows}`, code, `on ${COLUMNS} columns`, { stdin, during });
    this.#test.same(tooWideLines(stdout), [], `${command}: tables fit`);
  }

  /** Checks the JSON in a pipe, and remembers values of it that later command lines need. */
  async checkJson(): Promise<void> {
    // `json` is null for a command without --json; undefined if the words of `shows` serve.
    const { command, shows, json, stdin, during } = this.#case;
    this.#test.equal(json !== null, flagsOf(command).includes('--json'), `${command}: --json`);
    const typed = json ?? (typeof shows === 'string' ? shows : null);
    if (json === null || typed === null) return;
    await this.#case.before?.(this.#site);
    const code = during === undefined ? 0 : ENDED_CODES;
    const result = await this.#call(`${command} ${typed} --json`, code, 'in a pipe', {
      stdin,
      during,
      columns: undefined,
    });
    const { remembers } = this.#case;
    if (remembers === undefined) return;
    const [, value = ''] = remembers.from.exec(result.stdout) ?? [];
    this.#test.not(value, '', `${command}: ${remembers.name}`);
    learnedValues.set(remembers.name, value);
  }

  /** Checks a wrong input (exit code 2), a refusal (3), a negative result (1), and a gateway that is not there (3). */
  async checkFailures(): Promise<void> {
    const { command, wrong, negative, duringNegative, refused, shows } = this.#case;
    const [typed, message] = wrong;
    const { stderr, stdout } = await this.#call(`${command} ${typed}`, 2, '', { columns: undefined });
    this.#test.match(stderr, message, `${command}: the error names the wrong input`);
    this.#test.match(stderr, /^lockgate: [^\n]+\n$/m, `${command}: the error is a sentence`);
    this.#test.equal(stdout, '', `${command}: the error goes to stderr only`);
    if (refused !== undefined) await this.#call(`${command} ${refused}`, 3, '');
    if (negative !== undefined) await this.#call(`${command} ${negative}`, 1, '', { during: duringNegative });
    if (!flagsOf(command).includes('--gateway')) return;
    const typedWithoutGateway = this.#case.withoutGateway ?? (typeof shows === 'string' ? shows : '');
    const result = await this.#call(`${command} ${typedWithoutGateway}`, 3, 'without a gateway', {
      environment: NOWHERE,
    });
    this.#test.match(result.stderr, /^lockgate: no gateway at http:\/\/127\.0\.0\.1:9 \(nothing listens there\)/m);
    this.#test.match(result.stderr, /Start one with "lockgate serve", or name another with --gateway/, 'what to do');
  }

  /** Runs a command line, checks its exit code, and adds its output to `texts`; `how` is part of the text's title. */
  async #call(
    typed: string,
    code: number | readonly number[],
    how: string,
    setting: CallSetting = {},
  ): Promise<CommandResult> {
    const { folder, environment } = this.#site;
    const { during, ...ownEnvironment } = setting;
    const words = wordsOf(fillIn(typed));
    const result = await runCommand(words, {
      columns: COLUMNS,
      folder,
      environment,
      ...(during !== undefined && { whileRunning: async (running) => await during(running, this.#site) }),
      ...ownEnvironment,
      // A member that is undefined counts as left out, which the type does not allow.
    } as CommandEnvironment);
    // A listener of this call that is still connected would be taken for that of the next call.
    if (during !== undefined) await this.#site.waitForNoListener();
    const codes = [code].flat();
    this.#test.ok(codes.includes(result.code), `lockgate ${typed} => ${codes.join(' or ')}: ${result.stderr}`);
    // Parts of the output that vary from run to run, and what the snapshot has in their place.
    const { varies = [] } = this.#case;
    const normalise = (text: string): string =>
      varies.reduce(
        (output, [pattern, replacement]) => output.replace(pattern, replacement),
        this.#site.normalise(text),
      );
    const title = `${normalise(`lockgate ${fillIn(typed)}`.trim())}${how === '' ? '' : `  [${how}]`}`;
    this.texts.push(callText(title, result, normalise, words.includes('--json')));
    return result;
  }
}

t.test('every command has a test case, and every test case has a command', async (t) => {
  t.same(COMMAND_CASES.map(({ command }) => command).sort(), leaves().map(pathOf).sort());
});

t.test('the help of each group equals its snapshot', async (t) => {
  for (const group of everyCommand().filter((each) => !isLeaf(each))) {
    const name = pathOf(group);
    const words = [...wordsOf(name), '--help'];
    const result = await runCommand(words, { columns: COLUMNS });
    t.equal(result.code, 0, name);
    const text = `${callText(`lockgate ${words.join(' ')}`, result, (output) => output)}\n`;
    t.equal(text, storedSnapshot(snapshotName(name), text), `${name}: equals the snapshot`);
  }
});

t.test('each command’s help, table, JSON and failures equal its snapshot', async (t) => {
  const site = await commandSite(t);
  for (const each of COMMAND_CASES) {
    const calls = new Calls(t, site, each);
    await calls.checkHelp();
    await calls.checkTerminalOutput();
    await calls.checkJson();
    await calls.checkFailures();
    const text = `${calls.texts.join('\n\n')}\n`;
    t.equal(text, storedSnapshot(snapshotName(each.command), text), `${each.command}: equals the snapshot`);
  }
});

t.test('a server that is no gateway is reported as such, and a bug in lockgate is exit code 4', async (t) => {
  let answer = '<html>';
  const server = createServer((_request, response) => response.end(answer)).listen(0, '127.0.0.1');
  t.teardown(() => void server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  const environment = { LOCKGATE_GATEWAY: `http://127.0.0.1:${port}`, LOCKGATE_TOKEN: 'none' };
  t.match(await runCommand(['merchant', 'list'], { environment }), { code: 3, stderr: /not JSON.*Name another/ });
  // No gateway answers like this, so the command fails with a bug.
  answer = '{}';
  t.match(await runCommand(['merchant', 'list'], { environment }), {
    code: 4,
    stderr: /^lockgate: internal error: TypeError/,
  });
});

t.test('every snapshot belongs to an existing command', async (t) => {
  t.same(
    storedSnapshotNames(),
    everyCommand()
      .map((each) => snapshotName(pathOf(each)))
      .sort(),
  );
  t.notOk(isWriting && process.env.CI, 'a build server must compare snapshots, not write them');
});
