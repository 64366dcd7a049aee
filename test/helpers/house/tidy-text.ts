// Tidiness that can be seen in names and lines. Each check takes what it judges and returns its findings as sentences,
// so that the test can prove on a sample that it finds something.

/** A file of ours: its path from the root, with forward slashes, and its text. */
export type SourceFile = { path: string; text: string };

/** What may stand at the top. Something new there needs a line here, which is the moment to ask whether it must. */
const topLevel = [
  ...['gateway', 'firmware-sim', 'proto', 'cli', 'test', 'docs', '.ci'],
  ...['README.md', 'CHANGELOG.md', 'LICENSE', 'package.json', 'package-lock.json', 'tsconfig.json'],
  ...['.gitignore', '.gitattributes', '.editorconfig', '.nvmrc', '.npmrc'],
  ...['biome.json', 'knip.json', '.dependency-cruiser.cjs', '.github', '.gitlab-ci.yml'],
];

/** Names that the world expects in capitals. */
const capitals = ['README.md', 'CHANGELOG.md', 'LICENSE', 'Dockerfile'];
const vagueNames = ['utils', 'util', 'common', 'lib', 'helper', 'misc', 'index'];
const maxColumns = 120;
const maxFiles = 20;

/** The top level is a closed list. */
export function findTopLevel(paths: readonly string[]): string[] {
  const entries = [...new Set(paths.map((path) => path.split('/')[0] ?? ''))];
  return entries
    .filter((entry) => !topLevel.includes(entry))
    .map((entry) => `${entry}: nothing new at the top level; it has a place in one of the folders.`);
}

/** kebab-case, and named for what they hold. */
export function findNames(paths: readonly string[]): string[] {
  const findings = new Set<string>();
  for (const path of paths) {
    for (const [depth, name] of path.split('/').entries()) {
      const stem = name.replace(/(?<=.)\..*$/, '');
      const isKebab = /^\.?[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+(-[a-z0-9]+)*)*$/.test(name);
      const here = path.split('/', depth + 1).join('/');
      if (!isKebab && !capitals.includes(name)) findings.add(`${here}: names are kebab-case.`);
      const isPage = name === 'index.html';
      if (vagueNames.includes(stem) && !isPage) findings.add(`${here}: name it for the noun it holds, not "${stem}".`);
    }
  }
  return [...findings];
}

/** Lines fit in 120 columns, where they are written by people and can be wrapped. */
export function findLongLines({ path, text }: SourceFile): string[] {
  if (/\.(jsonl?|svg|tap|hex)$|(^|\/)(gen|vectors|traces)\//.test(path)) return [];
  const findings: string[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    // A row of a Markdown table and a lone address can't be wrapped.
    const isUnbreakable = (path.endsWith('.md') && /^\s*\|/.test(line)) || /^[\s>*\-/#]*\S+$/.test(line);
    if ([...line].length > maxColumns && !isUnbreakable) {
      findings.push(`${path}:${index + 1}: ${[...line].length} columns; at most ${maxColumns}.`);
    }
  }
  return findings;
}

/** Nothing left for later: what is still to be done belongs where the work is planned. */
export function findMarkers({ path, text }: SourceFile): string[] {
  const findings: string[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    // The words are spelled in halves, since this file is checked too.
    const marker = line.match(/\b(TO(?=DO)DO|FIX(?=ME)ME|X{3}|HA(?=CK)CK)\b/)?.[1];
    if (marker) findings.push(`${path}:${index + 1}: do it or drop it, instead of "${marker}".`);
  }
  return findings;
}

/** Folders with too many source files: there is a room inside that wants a name. */
export function findFullFolders(paths: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const path of paths) {
    if (!/\.(ts|mjs|js|cc)$/.test(path)) continue;
    const folder = path.slice(0, path.lastIndexOf('/') + 1);
    counts.set(folder, (counts.get(folder) ?? 0) + 1);
  }
  return [...counts]
    .filter(([, count]) => count > maxFiles)
    .map(([folder, count]) => `${folder}: ${count} source files; at most ${maxFiles}.`);
}

/** Rooms of the product, folders of the second level with code of ours, that have no README. */
export function findRoomsWithoutReadme(paths: readonly string[]): string[] {
  const code = paths.filter((path) => /^(proto|gateway|firmware-sim|cli)\/[^/]+\/.*\.(ts|mjs)$/.test(path));
  const rooms = new Set(code.map((path) => path.split('/').slice(0, 2).join('/')));
  return [...rooms]
    .filter((room) => !room.endsWith('/gen') && !paths.includes(`${room}/README.md`))
    .map((room) => `${room}: say in a README what lives there, what it may import and who may import it.`);
}
