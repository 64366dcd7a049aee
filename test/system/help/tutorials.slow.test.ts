/**
 * The tutorials of docs/tutorials do what they say: each is followed in real shells, with a real gateway on other
 * ports, and what is printed is compared with the page.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { root } from '../../helpers/house/our-files.js';
import { patternOf, TutorialRun, tutorialBlocks, withPorts } from '../../helpers/house/tutorial-run.js';
import { freePort } from '../../helpers/http/free-port.js';

t.setTimeout(300_000);

/** Programs that the tutorials call and that this machine lacks. The type of `error` has no `code`. */
const MISSING = ['bash', 'curl', 'xxd', 'mosquitto_pub'].filter((name) => {
  return (spawnSync(name, ['--help']).error as NodeJS.ErrnoException | undefined)?.code === 'ENOENT';
});
const skip = MISSING.length > 0 ? `${MISSING.join(', ')} not installed` : false;

/** The ports that the tutorials name, and the settings that change them. */
const PORT_SETTINGS = new Map([
  [1883, 'LOCKGATE_MQTT_PORT'],
  [8080, 'LOCKGATE_HTTP_PORT'],
  [8081, 'LOCKGATE_OPERATOR_PORT'],
  [9000, ''],
]);

for (const name of ['hardware-engineers', 'qa', 'merchants', 'operators'])
  t.test(`docs/tutorials/${name}.md`, { skip }, async (t) => {
    const ports = new Map<number, number>();
    const environment: Record<string, string> = { LOCKGATE_LOG_LEVEL: 'fatal', COLUMNS: '' };
    for (const [port, setting] of PORT_SETTINGS) {
      const used = await freePort();
      ports.set(port, used);
      if (setting !== '') environment[setting] = String(used);
    }
    const blocks = tutorialBlocks(readFileSync(path.join(root, 'docs/tutorials', `${name}.md`), 'utf8'));
    t.ok(blocks.filter(({ kind }) => kind === 'text').length >= 5, `${blocks.length} blocks`);
    t.same(await new TutorialRun(t, ports, environment).follow(blocks), []);
  });

t.test('a tutorial that promises too much is noticed', { skip: skip && 'no bash' }, async (t) => {
  const follow = async (document: string) => await new TutorialRun(t, new Map(), {}).follow(tutorialBlocks(document));
  t.same(await follow('```sh\necho one\necho two\n```\n\n```text\none\n…\n```\n'), []);
  t.match(await follow('```sh\necho one\n```\n\n```text\ntwo\n```\n'), [/^line 1: printed\none\ninstead of\ntwo/]);
  t.match(await follow('```sh\necho one\n```\n\n```text\none\ntwo\n```\n'), [/^line 1: printed/]);
  t.match(await follow('a\n\n```sh\nfalse\n```\n'), [/^line 3: exit code 1/]);
  t.equal(
    withPorts(
      '-p 1883, :9000/19000',
      new Map([
        [1883, 49000],
        [9000, 1883],
      ]),
    ),
    '-p 49000, :1883/19000',
  );
  t.match(new RegExp(`^${patternOf('a … c\n…\nz')}$`).test('a b c\n1\n2\nz\n'), true);
});
