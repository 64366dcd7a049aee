/**
 * The help that the build renders from docs/: every page of docs/ is there, each link and anchor leads somewhere, and
 * nothing is inline or from another origin. Both HTTP ports serve it without login, and nothing beside it.
 */
import { readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { pathToFileURL } from 'node:url';
import { gunzipSync } from 'node:zlib';
import t from 'tap';
import { HELP_PATH, HelpPages } from '../../../gateway/console/help-pages.js';
import { PAGE_CSP } from '../../../gateway/console/pages.js';
import { testGateway } from '../../helpers/gateway/test-gateway.js';
import { ourFiles, root } from '../../helpers/house/our-files.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

const folder = join(root, 'dist/help');
const help = new HelpPages(pathToFileURL(join(folder, '/')));
const read = (name: string): string => readFileSync(join(folder, name), 'utf8');
const pages = help.names.filter((name) => name.endsWith('.html'));

/** The addresses of links, pictures, scripts and style sheets in a page. */
function addressesIn(html: string): string[] {
  return [...html.matchAll(/ (?:src|href|data-search)="([^"]*)"/g)].map(([, address = '']) => address);
}

/** What is wrong with a link of a page; null if it leads to a file and, if it names one, to an anchor. */
function linkFault(page: string, address: string): string | null {
  if (/^(https?:|mailto:|data:)/.test(address)) return null;
  const [path = '', anchor] = address.split('#');
  const name = path === '' ? page : posix.join(posix.dirname(page), decodeURI(path));
  if (!help.names.includes(name)) return `${page}: ${address}: there is no ${name}`;
  if (anchor === undefined || read(name).includes(` id="${decodeURI(anchor)}"`)) return null;
  return `${page}: ${address}: ${name} has no anchor ${anchor}`;
}

t.test('every page of docs/ is in the menu of every page', async (t) => {
  const sources = ourFiles().filter((path) => /^docs\/.*\.md$/.test(path));
  const names = sources.map((path) => path.slice('docs/'.length).replace(/\.md$/, '.html').replace('README', 'index'));
  t.ok(names.length > 30, `${names.length} pages`);
  const [, menu = ''] = /<nav id="menu"[^>]*>([\s\S]*?)<\/nav>/.exec(read('index.html')) ?? [];
  t.same(
    names.filter((name) => !menu.includes(`href="${name}"`)),
    [],
  );
  for (const page of pages) t.equal(read(page).match(/aria-current="page"/g)?.length, 1, `${page} is marked`);
});

t.test('each link leads to a page, and to an anchor if it names one', async (t) => {
  t.match(linkFault('index.html', 'nowhere.html'), 'there is no nowhere.html');
  t.match(linkFault('index.html', 'protocol.html#nothing'), 'has no anchor nothing');
  t.equal(linkFault('reference/errors.html', '../protocol.html#1-the-wire'), null);
  const faults = pages.flatMap((page) => addressesIn(read(page)).flatMap((address) => linkFault(page, address) ?? []));
  t.same(faults, []);
});

t.test('nothing is inline, which the policy forbids, and no page loads anything from elsewhere', async (t) => {
  for (const page of pages) {
    const html = read(page).replace(/<pre[\s\S]*?<\/pre>|<code>[\s\S]*?<\/code>/g, '');
    t.notMatch(html, /<script(?![^>]* src=)|<style|<[^>]* (style|on\w+)=/, page);
    t.notMatch(html, /<(img|script|link)[^>]*="(https?:)?\/\//, page);
  }
  for (const name of help.names.filter((each) => /\.(js|css)$/.test(each))) t.notMatch(read(name), /https?:\/\//, name);
});

t.test('the search has the sections of every page', async (t) => {
  const name = help.names.find((each) => /^search-.*\.json$/.test(each)) ?? '';
  const search = JSON.parse(read(name)) as { address: string; parts: { id: string; text: string }[] }[];
  t.same(search.map(({ address }) => address).sort(), [...pages].sort());
  for (const { address, parts } of search)
    for (const { id } of parts) t.ok(id === '' || read(address).includes(` id="${id}"`), `${address}#${id}`);
});

t.test('the operators’ port serves the help to anybody, and no other file', async (t) => {
  const gateway = await testGateway(t);
  const origin = `http://127.0.0.1:${gateway.operatorPort}`;
  const bare = await fetch(`${origin}/help`, { redirect: 'manual' });
  t.match([bare.status, bare.headers.get('location')], [308, HELP_PATH]);
  const first = await fetch(`${origin}${HELP_PATH}`);
  t.equal(await first.text(), read('index.html'));
  t.equal(first.headers.get('content-security-policy'), PAGE_CSP);
  t.equal(first.headers.get('cache-control'), 'no-cache');
  const style = help.names.find((name) => name.endsWith('.css')) ?? '';
  const { headers } = await fetch(`${origin}${HELP_PATH}${style}`);
  t.match(headers.get('cache-control'), 'immutable');
  t.equal(headers.get('content-encoding'), 'gzip');
  for (const name of help.names) {
    const answer = await fetch(`${origin}${HELP_PATH}${name}`);
    t.equal(answer.status, 200, name);
    t.equal(Buffer.compare(Buffer.from(await answer.arrayBuffer()), readFileSync(join(folder, name))), 0, name);
    t.equal(answer.headers.get('x-content-type-options'), 'nosniff');
    t.equal(answer.headers.get('referrer-policy'), 'no-referrer');
  }
  for (const path of ['manifest.json', '..%2fprogram%2fmain.js', 'nothing.html', '.inputs'])
    t.equal((await fetch(`${origin}${HELP_PATH}${path}`)).status, 404, path);
});

t.test('the merchants’ port serves the help too', async (t) => {
  const gateway = await testGateway(t);
  const origin = `http://127.0.0.1:${gateway.httpPort}`;
  const bare = await fetch(`${origin}/help`, { redirect: 'manual' });
  t.match([bare.status, bare.headers.get('location')], [308, HELP_PATH]);
  const first = await fetch(`${origin}${HELP_PATH}`);
  t.match([first.status, first.headers.get('content-security-policy')], [200, PAGE_CSP]);
  t.equal(await first.text(), read('index.html'));
  t.match(await fetch(`${origin}${HELP_PATH}console.html`), { status: 200 });
  for (const path of ['manifest.json', '..%2fprogram%2fmain.js', 'nothing.html'])
    t.match(await fetch(`${origin}${HELP_PATH}${path}`), { status: 404 }, path);
  t.match(await fetch(`${origin}${HELP_PATH}`, { method: 'POST' }), { status: 404 });
});

t.test('a client that takes no gzip gets plain bytes, which are those that are compressed', async (t) => {
  const plain = await help.file('index.html', false);
  const packed = await help.file('', true);
  t.equal(plain?.encoding, null);
  t.equal(packed?.encoding, 'gzip');
  t.ok(packed !== undefined && plain !== undefined && gunzipSync(packed.bytes).equals(plain.bytes));
  t.equal(await help.file('toString', true), undefined);
});

t.test('without a build, the error says what to run', async (t) => {
  t.throws(() => new HelpPages(pathToFileURL(join(tempFolder(t), '/'))), {
    code: 'internal-pages',
    message: /npm run build/,
  });
});
