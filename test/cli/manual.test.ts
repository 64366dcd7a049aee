/** The man pages in docs/man: up to date, complete, and well-formed where groff is installed. */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { Command } from 'commander';
import t from 'tap';
import { manPages } from '../../cli/manual/man-pages.js';
import { makeProgram } from '../../cli/program.js';
import { root } from '../helpers/house/our-files.js';

const folder = path.join(root, 'docs/man');
const program = await makeProgram('all');
const pages = manPages(program);

t.test('up to date', async (t) => {
  t.same(readdirSync(folder).sort(), [...pages.keys()].sort());
  for (const [name, text] of pages)
    t.equal(readFileSync(path.join(folder, name), 'utf8'), text, `${name}: npm run gen`);
});

/** All commands below a command, with their paths, such as `device phone add`. */
function commandsBelow(command: Command, names: readonly string[] = []): readonly (readonly [string, Command])[] {
  return command.commands.flatMap((each) => {
    const own = [...names, each.name()];
    return [[own.join(' '), each] as const, ...commandsBelow(each, own)];
  });
}

t.test('every command is on the page of its group, with every flag and example', async (t) => {
  // A command that only groups others can't be run and has no flags; every other one has some.
  const runnable = commandsBelow(program).filter(([, { options }]) => options.length > 0);
  t.ok(runnable.length > 50, 'the tree was walked');
  // In the source of a man page, `\-` is the minus sign that a reader can copy.
  const typed = (text: string) => text.replaceAll('-', '\\-');
  for (const [name, command] of runnable) {
    const page = pages.get(`lockgate-${name.split(' ')[0]}.1`) ?? '';
    const [, synopsis = '', body = ''] = /\n\.SH SYNOPSIS\n([\s\S]*?)\n\.SH ([\s\S]*)$/.exec(page) ?? [];
    t.ok(`${synopsis}\n`.includes(`.B lockgate ${typed(name)}\n`), name);
    const heading = `.SS lockgate ${typed(name)} `;
    const part = body.includes(heading) ? body.slice(body.indexOf(heading)) : body;
    // Up to the next section. Without one the index is −1, of which `>>> 0` makes a number greater than any length.
    const own = part.slice(0, part.indexOf('\n.SS ', 1) >>> 0);
    for (const { long } of command.options) t.ok(own.includes(typed(long ?? '')), `${name} ${long}`);
    t.ok(own.includes(`$ lockgate ${typed(name)}`), `${name}: example`);
  }
});

const isMissing = spawnSync('groff', ['--version']).error !== undefined;

t.test('groff finds no fault', { skip: isMissing && 'groff is not installed' }, async (t) => {
  // All warnings, and no output.
  for (const name of pages.keys()) {
    const { status, stderr } = spawnSync('groff', ['-man', '-Tutf8', '-ww', '-z', path.join(folder, name)]);
    t.match({ status, stderr: String(stderr) }, { status: 0, stderr: '' }, name);
  }
  // Each example is a line of its own, neither filled nor wrapped, so that it can be copied.
  const name = 'lockgate-db.1';
  const { stdout } = spawnSync('groff', ['-man', '-Tascii', path.join(folder, name)]);
  const shown = String(stdout)
    .split('\n')
    .map((line) => line.trim());
  const examples = [...(pages.get(name) ?? '').matchAll(/^ *(\$ .*)$/gm)].map(([, line = '']) => line);
  t.ok(examples.length > 5, 'the page has examples');
  for (const example of examples.map((line) => line.replaceAll('\\-', '-'))) t.ok(shown.includes(example), example);
});
