/**
 * The pages of docs/reference are up to date, and have every command, flag, setting, metric, rule, operation and member
 * of a webhook, and nothing else. test/check/error-codes.test.ts does the same for error codes.
 */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { Command } from 'commander';
import t, { type Test } from 'tap';
import { referencePages } from '../../cli/manual/reference/reference-pages.js';
import { makeProgram } from '../../cli/program.js';
import { HTTP_ROUTES } from '../../gateway/http/merchant/routes.js';
import { DOCUMENTED_ROUTES } from '../../gateway/http/operator/server.js';
import { METRICS } from '../../gateway/metrics/table.js';
import { SETTINGS } from '../../gateway/settings.js';
import { RULES } from '../../proto/power/rules.js';
import { root } from '../helpers/house/our-files.js';

const folder = path.join(root, 'docs/reference');
const read = (name: string): string => readFileSync(path.join(folder, `${name}.md`), 'utf8');

/** The whole program; the tests below run after it is made. */
let program: Command;
t.before(async () => {
  program = await makeProgram('all');
});

/** The headings of a level, in the order of the page. */
function headings(page: string, level: '##' | '###'): string[] {
  const text = read(page).replace(/^```[\s\S]*?^```$/gm, '');
  return [...text.matchAll(new RegExp(`^${level} (.*)$`, 'gm'))].map(([, heading = '']) => heading);
}

/** Compares two lists in any order. */
function sameNames(t: Test, found: readonly string[], expected: readonly string[]): void {
  t.ok(expected.length > 5, `${expected.length} names`);
  t.same([...found].sort(), [...expected].sort());
}

t.test('up to date', async (t) => {
  const pages = referencePages(program);
  t.same(readdirSync(folder).sort(), [...pages.keys()].sort());
  for (const [name, text] of pages)
    t.equal(readFileSync(path.join(folder, name), 'utf8'), text, `${name}: npm run gen`);
});

t.test('every command, with every flag', async (t) => {
  const groups = program.commands.map((group) => `lockgate ${group.name()}`);
  sameNames(t, headings('commands', '##'), groups);
  const below = (command: Command, typed: string): [string, Command][] =>
    command.commands.flatMap((each) => {
      const own = `${typed} ${each.name()}`;
      const isGroup = each.commands.length > 0 && each.options.length === 0;
      return [...(isGroup ? [] : [[own, each] as [string, Command]]), ...below(each, own)];
    });
  const commands = program.commands.flatMap((group) => below(group, `lockgate ${group.name()}`));
  sameNames(
    t,
    headings('commands', '###'),
    commands.map(([typed]) => typed),
  );
  const text = read('commands');
  for (const [typed, command] of commands) {
    const own = text.slice(text.indexOf(`\n### ${typed}\n`)).split(/\n##/, 2)[1] ?? '';
    const shown = [...own.matchAll(/^\| `(?:-\w, )?(-[^\s`]+)/gm)].map(([, flag = '']) => flag);
    t.same(
      shown,
      command.options.filter(({ hidden }) => !hidden).map(({ long, short }) => long ?? short),
      typed,
    );
  }
});

t.test('every setting, metric and rule', async (t) => {
  sameNames(
    t,
    headings('settings', '##'),
    SETTINGS.map(({ flag }) => flag.slice(2)),
  );
  for (const { flag, environment, meaning } of SETTINGS)
    t.ok(read('settings').includes(`\`${flag}\` | \`${environment}\``) && read('settings').includes(meaning), flag);
  sameNames(
    t,
    headings('metrics', '##'),
    METRICS.map(({ name }) => name),
  );
  sameNames(
    t,
    headings('rules', '##'),
    RULES.map(({ rule }) => rule),
  );
});

t.test('every HTTP operation', async (t) => {
  sameNames(
    t,
    headings('operators-http', '###'),
    DOCUMENTED_ROUTES.map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, '{$1}')}`),
  );
  const shown = HTTP_ROUTES.filter((route) => !('isHidden' in route && route.isHidden));
  sameNames(
    t,
    headings('merchants-http', '###'),
    shown.map(({ method, path }) => `${method} ${path}`),
  );
});

t.test('every kind of webhook with every member', async (t) => {
  const types = readFileSync(path.join(root, 'docs/webhook-payload.d.ts'), 'utf8');
  const bodies = [...types.matchAll(/^export interface (\w+) \{\n([\s\S]*?)^\}$/gm)];
  sameNames(
    t,
    headings('webhook-payload', '##'),
    bodies.map(([, name = '']) => name),
  );
  for (const [, name = '', body = ''] of bodies) {
    const own = read('webhook-payload').split(`\n## ${name}\n`)[1]?.split('\n## ', 1)[0] ?? '';
    const members = [...body.matchAll(/^ {2}(\w+)\??:/gm)].map(([, member = '']) => member);
    t.same(
      [...own.matchAll(/^\| `(\w+)`/gm)].map(([, member = '']) => member),
      members,
      name,
    );
  }
});
