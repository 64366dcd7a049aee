// The pages of the help, in the order of its menu. A page is named by its Markdown file's path from the project's
// folder; pages of docs/ that no section names are added to the last one, so that none is left out.
import { existsSync } from 'node:fs';
import { posix } from 'node:path';
import { filesBelow, pathInClone } from '../workplace.mjs';

const docs = (...names) => names.map((name) => `docs/${name}.md`);

/** The sections of the menu: a title, and the files of its pages. */
const SECTIONS = [
  { title: 'Begin', files: [...docs('README'), 'README.md', 'deploy/README.md'] },
  {
    title: 'Tutorials',
    files: docs('tutorials/hardware-engineers', 'tutorials/qa', 'tutorials/merchants', 'tutorials/operators'),
  },
  {
    title: 'How to',
    files: [
      ...docs('how-to/hardware-engineers', 'how-to/qa', 'how-to/merchants', 'how-to/operators', 'guide/README'),
      ...docs('guide/connect-a-lock', 'guide/simulate', 'guide/judge-locks', 'guide/deliver-webhooks'),
      ...docs('guide/call-over-http', 'guide/manage-locks', 'guide/bill', 'guide/monitor', 'guide/back-up'),
      ...docs('guide/settings', 'guide/command-line'),
      ...docs('firmware', 'clients/README', 'scenarios', 'import', 'certificate', 'console'),
    ],
  },
  {
    title: 'Reference',
    files: [
      ...docs('reference/commands', 'reference/settings', 'reference/metrics', 'reference/rules', 'reference/errors'),
      ...docs('reference/merchants-http', 'reference/operators-http', 'reference/webhook-payload'),
      ...docs('protocol', 'traces', 'http', 'webhooks', 'operator', 'notifications', 'interfaces', 'specification'),
      'proto/README.md',
    ],
  },
  {
    title: 'Explanations',
    files: docs(
      'explanations/power-model',
      'explanations/late-data',
      'explanations/durability',
      'scaling',
      'explanations/security',
    ),
  },
];

/** The last section: what developers of lockgate read, and pages that no other section names. */
const LAST = { title: 'About lockgate', files: ['CHANGELOG.md', ...docs('contributing', 'performance', 'decisions')] };

/** What the menu calls pages whose own title is just the name of lockgate. */
export const MENU_TITLES = { 'docs/README.md': 'Where to begin', 'README.md': 'lockgate in one page' };

/** The sections with the files that exist, as `{ title, files }`. */
export function helpSections() {
  const named = new Set([...SECTIONS, LAST].flatMap(({ files }) => files));
  const others = filesBelow('docs', '.md').filter((file) => !named.has(file));
  return [...SECTIONS, { title: LAST.title, files: [...others.sort(), ...LAST.files] }].map(({ title, files }) => ({
    title,
    files: files.filter((file) => existsSync(pathInClone(file))),
  }));
}

/** The address of a file's page, relative to the first page: `docs/reference/errors.md` is reference/errors.html. */
export function pageAddress(file) {
  if (file.startsWith('docs/'))
    return file
      .slice('docs/'.length)
      .replace(/README\.md$/, 'index.md')
      .replace(/\.md$/, '.html');
  if (file === 'CHANGELOG.md') return 'changelog.html';
  // A README is named after its folder, and that of the project's folder is the overview.
  return `${file.replace(/\/?README\.md$/, '').replaceAll('/', '-') || 'overview'}.html`;
}

/** The address of `to` as a link on the page `from`; both are relative to the first page. */
export function relativeAddress(from, to) {
  return posix.relative(posix.dirname(from), to);
}
