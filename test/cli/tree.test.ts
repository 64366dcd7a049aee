/** The command tree: every command's help and flags, the loaded modules, completion, suggestions and tables. */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Command } from 'commander';
import fc from 'fast-check';
import t from 'tap';
import { COMMAND_GROUPS } from '../../cli/command-groups.js';
import { printCompletions } from '../../cli/commands/completion/completion.js';
import { VALUE_SOURCES } from '../../cli/commands/completion/values.js';
import { STATES } from '../../cli/commands/device/list.js';
import { calledGroups, makeProgram } from '../../cli/program.js';
import { captureOutput, sanitizeLine } from '../../cli/terminal/output.js';
import { tableLines } from '../../cli/terminal/table.js';
import { cutToWidth, widthOf } from '../../cli/terminal/text-width.js';
import { wrapWords } from '../../cli/terminal/word-wrap.js';
import { LISTED_STATES } from '../../gateway/locks/list/lock-filter.js';
import { NOTICE_KINDS } from '../../gateway/store/contract/operators/notice-store.js';
import { DELIVERY_STATES } from '../../gateway/store/contract/webhook-store.js';
import { didYouMean, nearestNames } from '../../proto/did-you-mean.js';
import { type CommandOutput, runLockgate, runProgram } from '../helpers/cli/program.js';
import { testGateway, testMac } from '../helpers/gateway/test-gateway.js';
import { root } from '../helpers/house/our-files.js';
import { type Teardown, tempFolder } from '../helpers/store/temp-folder.js';

/** Commands without --json: they run until stopped, or their output is a trace. */
const WITHOUT_JSON = ['serve', 'demo', 'trace anonymise', 'trace export', 'trace record'];

let program: Command;

t.before(async () => {
  program = await makeProgram('all');
});

function pathOf(command: Command): string {
  return command.parent === null ? '' : `${pathOf(command.parent)} ${command.name()}`.trim();
}

function everyCommand(command: Command = program): Command[] {
  return [command, ...command.commands.flatMap(everyCommand)];
}

/** The commands with an action; other commands are groups. `notices` has both an action and further commands. */
function runnableCommands(): Command[] {
  return everyCommand().filter((each) => each.commands.length === 0 || each.name() === 'notices');
}

/** A command's help, including texts that commander adds only when it prints. */
function helpOf(command: Command): string {
  let help = '';
  command.configureOutput({ writeOut: (text) => (help += text) }).outputHelp();
  return help;
}

t.test('every command has a description, an example that starts with it, and --json', async (t) => {
  t.ok(runnableCommands().length > 50, 'the tree was walked');
  for (const command of runnableCommands()) {
    const name = pathOf(command);
    const help = helpOf(command);
    t.match(command.description(), /^[A-Z].*\.$/, `${name}: description`);
    t.ok(help.includes('\nExample:\n') && help.includes(`  $ lockgate ${name}`), `${name}: example`);
    const hasJson = command.options.some(({ long }) => long === '--json');
    t.equal(hasJson, !WITHOUT_JSON.includes(name), `${name}: --json`);
    // It ends with a full stop, or with its choices or default in brackets.
    for (const option of command.options) t.match(option.description, /\S{2}.*[.:\])]$/, `${name} ${option.flags}`);
  }
});

t.test('the flags in examples exist', async (t) => {
  let count = 0;
  for (const command of runnableCommands()) {
    for (const [, line = ''] of helpOf(command).matchAll(/^ {2}\$ (.*)$/gm)) {
      for (const part of line.split(/&&|\||>/).map((each) => each.trim())) {
        const called = everyCommand().filter((each) => part.startsWith(`lockgate ${pathOf(each)} `));
        const [longest] = called.sort((a, b) => pathOf(b).length - pathOf(a).length);
        for (const [flag] of part.matchAll(/(?<= )--[a-z-]+/g)) {
          count += 1;
          const known = longest?.options.some(({ long }) => long === flag) || flag === '--help';
          t.ok(known, `${part}: ${flag}`);
        }
      }
    }
  }
  t.ok(count > 50, 'there were flags');
});

t.test('root help lists exit codes, and groups have the same description there and in their own help', async (t) => {
  // With no group loaded.
  const help = helpOf(await makeProgram(new Set()));
  t.match(help, /Exit codes: 0 .* 1 .* 2 .* 3 .*4 .*130/s);
  for (const { name, description } of COMMAND_GROUPS) {
    const loaded = program.commands.find((each) => each.name() === name);
    t.equal(loaded?.description(), description, name);
    t.match(help, new RegExp(`\\n  ${name} +${description.slice(0, 20)}`));
  }
  t.same(
    program.commands.map((each) => each.name()),
    COMMAND_GROUPS.map(({ name }) => name),
  );
  // The groups to load for a command line: a word after `help device` names no group.
  t.same([...calledGroups(['--x', 'help', 'device', 'sim'])], ['device']);
});

t.test('every MAC argument and flag accepts all spellings', async (t) => {
  const macInputs = everyCommand().flatMap((command) => [
    ...command.registeredArguments.filter((each) => each.name() === 'mac'),
    ...command.options.filter(({ flags }) => flags.endsWith(' <mac>')),
  ]);
  t.ok(macInputs.length > 12);
  for (const macInput of macInputs) {
    for (const text of ['a4c138f0e1d2', ' A4-C1-38-F0-E1-D2\t', 'a4c1.38f0.E1D2', 'A4:C1:38:f0:e1:d2']) {
      // The second argument is the list of the flag's earlier values.
      const read: unknown = macInput.parseArg?.(text, []);
      // Flags that can be repeated collect text, which the command parses.
      if (!Array.isArray(read)) t.equal(read, 'A4:C1:38:F0:E1:D2', `${macInput.name()} ${text}`);
    }
    if (!('variadic' in macInput && Array.isArray(macInput.defaultValue)))
      t.throws(() => macInput.parseArg?.('A4:C1:38', undefined), { code: 'input-mac' });
  }
});

t.test('the command line’s copies of choices equal the gateway’s', async (t) => {
  const choices = (name: string, flag: string): readonly string[] | undefined => {
    const command = everyCommand().find((each) => pathOf(each) === name);
    return command?.options.find(({ long }) => long === flag)?.argChoices;
  };
  t.same(choices('notices', '--kind'), NOTICE_KINDS);
  t.same([...STATES].sort(), [...LISTED_STATES].sort(), 'device list --state');
  t.same(choices('webhook deliveries', '--state'), DELIVERY_STATES);
});

t.test('a typing error gets a suggestion', async (t) => {
  t.same(nearestNames('lst', ['list', 'last', 'add']), ['list', 'last'], 'a letter is missing');
  t.same(nearestNames('lsit', ['list', 'show']), ['list'], 'two letters are swapped');
  t.same(nearestNames('--jsn', ['--json', '--mac']), ['--json']);
  t.same(nearestNames('hihg', ['HIGH', 'MID']), ['HIGH'], 'in capitals');
  t.same(nearestNames('del', ['deliveries', 'device']), ['deliveries'], 'its start was typed');
  t.same(nearestNames('xyz', ['list', 'show']), [], 'no name is similar');
  t.same(nearestNames('a', ['b']), [], 'a name of one letter is not suggested');
  t.equal(didYouMean('clock-ahed', ['clock-ahead']), ' Did you mean clock-ahead?');
  t.equal(didYouMean('x', ['clock-ahead']), '');
});

t.test('a wrong word is reported in one sentence with a suggestion, and exit code 2', async (t) => {
  const wrong: [string[], RegExp][] = [
    [['devise'], /unknown command 'devise'\. Did you mean device\? \(see lockgate --help/],
    [['device', 'lst'], /unknown command 'lst'\. Did you mean list\? \(see lockgate device --help/],
    [['device', 'list', '--jsn'], /unknown option '--jsn'\. Did you mean --json\? \(see lockgate device list --help/],
    [['command', 'list', '--state', 'qeued'], /--state is "qeued": expected queued, .*\. Did you mean queued\?/],
    [['completion', 'bsh'], /shell is "bsh": expected bash, zsh, fish\. Did you mean bash or zsh\?/],
    [['trace', 'check', 'x', '--ignore', 'clock-ahed'], /no rule clock-ahed: .* Did you mean clock-ahead\?/],
    [['sim', 'scenarios', 'comute'], /no scenario "comute": .* Did you mean commute\?/],
    [['sim', 'run', '--virtual', '--bug', 'clock-ahed'], /there is no bug/],
    [['serve', '--log-format', 'jso'], /--log-format is "jso": expected auto, pretty or json\. Did you mean json\?/],
    [['merchant', 'list', '--watch'], /--watch redraws a terminal: in a pipe add --json/],
    [['device', 'erase', 'A4C138F0E1D2', '--token', 'x'], /erasing can’t be undone: confirm with --yes/],
  ];
  const results = await Promise.all(wrong.map(async ([words]) => await run(words)));
  for (const [index, { exit, stdout, stderr }] of results.entries()) {
    const [words = [], sentence = /./] = wrong[index] ?? [];
    t.equal(exit?.code, 2, words.join(' '));
    t.same(stdout, []);
    t.match(
      stderr.filter((line) => line !== '').join('\n'),
      new RegExp(`^lockgate: [^\\n]*${sentence.source}[^\\n]*$`),
    );
  }
});

async function run(words: readonly string[]): Promise<CommandOutput> {
  return await runLockgate(words, { LOCKGATE_DATA: '/nonexistent' });
}

/** The modules that a command line loads: files of the clone by path, other modules by package. */
async function loadedBy(test: Teardown, words: readonly string[]): Promise<string[]> {
  const folder = tempFolder(test);
  const hooks = path.join(folder, 'hooks.mjs');
  const log = path.join(folder, 'loaded');
  const load = `export async function load(url, context, next) {
    appendFileSync(${JSON.stringify(log)}, url + '\\n');
    return await next(url, context);
  }`;
  const loader = path.join(folder, 'load.mjs');
  writeFileSync(loader, `import { appendFileSync } from 'node:fs';\n${load}`);
  writeFileSync(hooks, `import { register } from 'node:module';\nregister('${pathToFileURL(loader).href}');`);
  // Not the program's bundle, which has all modules in one file.
  const main = path.join(root, 'dist/cli/main.js');
  const args = ['--import', pathToFileURL(hooks).href, main, ...words];
  await runProgram(test, process.execPath, args, { LOCKGATE_DATA: '/nonexistent' });
  const urls = readFileSync(log, 'utf8').trim().split('\n');
  return urls.filter((url) => !url.startsWith('node:')).map((url) => url.replace(/^.*\/(dist|node_modules)\//, ''));
}

t.test('help and a command load few modules, and none of the gateway', async (t) => {
  const [help, list] = await Promise.all([loadedBy(t, ['--help']), loadedBy(t, ['device', 'list'])]);
  t.match(help[0], 'cli/main.js');
  // Each module takes time at every start, so a limit is raised only for a module that the command needs.
  t.ok(help.length <= 18, `--help: ${help.length} modules\n${help.join('\n')}`);
  const ownModules = list.filter((file) => /^(cli|proto|gateway)\//.test(file));
  t.ok(ownModules.length <= 38, `device list: ${ownModules.length} modules\n${ownModules.join('\n')}`);
  // Modules of the gateway, of the simulator and of packages, which load slowly. Two parts of the gateway are allowed,
  // since they import nothing: its version and the wording of its console.
  const isHeavy = (file: string): boolean =>
    /^(gateway|firmware-sim)\//.test(file) && !/^gateway\/(version\.js|console\/wording\/)/.test(file)
      ? true
      : /^(?!cli|proto|gateway|commander)/.test(file);
  t.same(help.filter(isHeavy), [], 'help loads no package but commander');
  const heavyModules = list.filter((file) => isHeavy(file) && !file.startsWith('get-east-asian-width/'));
  t.same(heavyModules, [], 'a list loads no package but commander and the widths of letters');
  t.same(
    help.filter((file) => file.startsWith('cli/commands/')),
    [],
    'the root’s help loads no command group',
  );
});

/** The completions that a shell gets. */
async function completionsOf(...words: string[]): Promise<string[]> {
  const { lines } = await captureOutput(
    async () => await printCompletions(words, async (first) => await makeProgram(calledGroups(first))),
  );
  return lines;
}

t.test('completion offers commands, flags, choices and names of the command tree', async (t) => {
  t.same(await completionsOf('bash', 'lockgate dev'), ['device']);
  t.same(
    (await completionsOf('bash', 'lockgate ')).sort(),
    [...COMMAND_GROUPS.map(({ name }) => name), 'help'].sort(),
    'all groups',
  );
  t.same(
    await completionsOf('bash', 'lockgate webhook '),
    program.commands.find((each) => each.name() === 'webhook')?.commands.map((each) => each.name()),
  );
  t.same(await completionsOf('bash', 'lockgate device list --w'), ['--watch']);
  t.match(await completionsOf('zsh', 'device', 'list', '--w'), [/^--watch\tRefresh every 2 s/]);
  t.same(await completionsOf('bash', 'lockgate command send x set-power --mode '), ['MID', 'HIGH']);
  t.same(await completionsOf('fish', 'command', 'send', 'x', 'set-power', '--mode=M'), ['--mode=MID']);
  t.same(await completionsOf('bash', 'lockgate command send x set-power --mode=M'), ['MID'], 'bash breaks words at =');
  t.match(await completionsOf('fish', 'trace', 'check', '--ignore', 'clock'), [/^clock-ahead\t/]);
  t.same(await completionsOf('bash', 'lockgate sim scenarios cov'), ['coverage-hole']);
  // Then the shell's own script offers the names of files or folders.
  t.same(await completionsOf('bash', 'lockgate trace check '), [':files']);
  t.same(await completionsOf('bash', 'lockgate serve --data '), [':folders']);
  t.same(await completionsOf('bash', 'lockgate completion '), ['bash', 'zsh', 'fish']);
  t.same(await completionsOf('bash', 'lockgate device list -- --j'), [], 'nothing is a flag after --');
  t.same(
    await completionsOf('bash', 'lockgate device show --data /nonexistent '),
    [],
    'without a gateway nothing is printed',
  );
});

t.test('each argument or flag for which completion has a source of values is in the command tree', async (t) => {
  for (const key of Object.keys(VALUE_SOURCES)) {
    const [, name = '', argumentOrFlag = ''] = /^(.*) (\S+)$/.exec(key) ?? [];
    const command = everyCommand().find((each) => pathOf(each) === name);
    const isArgument = command?.registeredArguments.some((each) => `<${each.name()}>` === argumentOrFlag);
    t.ok(isArgument || command?.options.some(({ long }) => long === argumentOrFlag), key);
  }
});

t.test('completion offers values of a running gateway, quoted for bash', async (t) => {
  const gateway = await testGateway(t);
  await gateway.accounts.addMerchant('Köln "Süd"');
  await gateway.accounts.addDevice({ mac: testMac(1), merchant: 'Amber' });
  await gateway.accounts.addDevice({ mac: testMac(2), merchant: 'Köln "Süd"' });
  const gatewayFlags = `--gateway http://127.0.0.1:${gateway.operatorPort} --token ${gateway.operatorToken}`;
  const bash = async (words: string): Promise<string[]> => await completionsOf('bash', `lockgate ${words}`);
  t.same(await bash(`device show ${gatewayFlags} `), ['A4:C1:38:00:00:01', 'A4:C1:38:00:00:02']);
  t.same(await bash(`device show ${gatewayFlags} A4:C1:38:00:00:0`), ['01', '02'], 'bash replaces from the last colon');
  t.same(
    await bash(`device show ${gatewayFlags} a4c13800000`),
    ['A4:C1:38:00:00:01', 'A4:C1:38:00:00:02'],
    'any spelling',
  );
  t.same(await bash(`device show ${gatewayFlags} --merchant K`), [], 'no flag of this command');
  t.same(await bash(`user list ${gatewayFlags} --merchant K`), ['Köln\\ \\"Süd\\"']);
  t.same(await bash(`user list ${gatewayFlags} --merchant "K`), ['Köln \\"Süd\\"']);
  t.same(await bash(`user list ${gatewayFlags} --merchant 'K`), ['Köln "Süd"']);
  t.same(await bash(`user list ${gatewayFlags} --merchant Köln\\ `), ['Köln\\ \\"Süd\\"']);
  t.match(await completionsOf('fish', 'device', 'show', ...gatewayFlags.split(' '), ''), [
    /^A4:C1:38:00:00:01\tAmber$/,
    /\tKöln/,
  ]);
});

t.test('text is measured, cut and wrapped by its displayed width', async (t) => {
  // East Asian Width (UAX 11): wide letters take two columns, marks none, emoji two.
  t.same(['abc', '東京', 'e\u0301', '🚲', 'ｶﾅ', '한글', '👨‍👩‍👧', '🇩🇪', ''].map(widthOf), [3, 4, 1, 2, 2, 4, 2, 2, 0]);
  t.same(['ﾊﾞ', '\u1112\u1161\u11ab', 'दि', '☰', 'a\u200b'].map(widthOf), [2, 2, 2, 2, 1], 'as Unicode has them');
  t.equal(cutToWidth('東京自転車', 6), '東京…', 'no half letter');
  t.equal(cutToWidth('e\u0301e\u0301e\u0301', 2), 'e\u0301…');
  t.same(wrapWords('  one two three', 9), ['  one two', '  three']);
  t.same(wrapWords('unbroken', 3), ['unbroken'], 'a word is not broken');
  t.equal(sanitizeLine('a\u202eb\u2028c'), 'a\ufffdb\ufffdc', 'marks that reverse the direction of text are replaced');
});

t.test('tables of any texts fit the terminal, and their first column is not cut', async (t) => {
  const columns = [
    { title: 'MAC', show: (row: Row) => row.mac },
    { title: 'STATE', show: (row: Row) => row.state },
    { title: 'WHY', show: (row: Row) => row.why, prose: true },
    { title: 'URL', show: (row: Row) => row.url },
    { title: 'LAST SEEN', show: (row: Row) => row.state, optional: true },
  ];
  type Row = { mac: string; state: string; why: string; url: string };
  const word = fc.string({ unit: fc.constantFrom('a', 'ß', '東', '🚲', 'e\u0301', ' '), maxLength: 40 });
  const row = fc.record({
    mac: fc.constant('A4:C1:38:F0:E1:D2'),
    state: fc.constantFrom('locked', 'unlocked', 'LOW_BATTERY'),
    why: word,
    url: word,
  });
  fc.assert(
    fc.property(fc.array(row, { minLength: 1, maxLength: 4 }), fc.integer({ min: 40, max: 200 }), (rows, room) => {
      const lines = tableLines(rows, columns, room);
      const text = lines.join('\n');
      const words = rows.flatMap(({ why, url }) => [...why.split(' '), url]).map(widthOf);
      // A narrow table becomes blocks: the widest title and a gap (9 + 2 columns), then the cell. A word too long for
      // that is not cut.
      const bound = Math.max(room, 11 + Math.max(0, ...words));
      return (
        lines.every((line) => widthOf(line) <= bound) &&
        rows.every(({ state }) => text.includes(state)) &&
        text.split('A4:C1:38:F0:E1:D2').length === rows.length + 1
      );
    }),
    { seed: 7, numRuns: 300 },
  );
  const pipe = tableLines([{ mac: 'm', state: 's', why: 'w '.repeat(300), url: 'u'.repeat(300) }], columns, Infinity);
  t.equal(pipe.length, 2, 'in a pipe each row is one line, after the titles');
  t.ok(pipe[1]?.includes('u'.repeat(300)), 'in a pipe nothing is cut');
});
