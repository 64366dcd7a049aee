// Checks of coding rules that need only names and lines of files. Each check takes its input as an argument and returns
// its findings as sentences, so that the test can prove on a sample what the check finds.

/** A file of the project: its path from the root, with forward slashes, and its text. */
export type SourceFile = { path: string; text: string };

/** The allowed entries of the top-level folder. Before you add one, consider whether it belongs into a subfolder. */
const TOP_LEVEL = [
  ...['gateway', 'firmware-sim', 'proto', 'cli', 'test', 'docs', 'deploy', '.ci'],
  ...['README.md', 'CHANGELOG.md', 'LICENSE', 'package.json', 'package-lock.json', 'tsconfig.json'],
  ...['.gitignore', '.gitattributes', '.editorconfig', '.nvmrc', '.npmrc', '.dockerignore'],
  ...['biome.json', 'knip.json', '.dependency-cruiser.cjs', '.github', '.gitlab-ci.yml'],
];

/** Names that are conventionally written with capitals. */
const capitals = ['README.md', 'CHANGELOG.md', 'LICENSE', 'Dockerfile'];
const vagueNames = ['utils', 'util', 'common', 'lib', 'helper', 'misc', 'index'];
const MAX_COLUMNS = 120;
const MAX_FILES = 20;

/** Finds entries of the top-level folder that are not allowed. */
export function findTopLevel(paths: readonly string[]): string[] {
  const entries = [...new Set(paths.map((path) => path.split('/')[0] ?? ''))];
  return entries
    .filter((entry) => !TOP_LEVEL.includes(entry))
    .map((entry) => `${entry}: nothing new at the top level; it has a place in one of the folders.`);
}

/** Finds files and folders with names that are not kebab-case or too vague. */
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

/** Finds lines of over 120 columns, except in generated files and lines that can't be wrapped. */
export function findLongLines({ path, text }: SourceFile): string[] {
  if (/\.(jsonl?|svg|tap|hex)$|(^|\/)(gen|vectors|traces)\/|^docs\/reference\//.test(path)) return [];
  const findings: string[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    // A row of a Markdown table and a line with a single word, such as an address, can't be wrapped.
    const isUnbreakable = (path.endsWith('.md') && /^\s*\|/.test(line)) || /^[\s>*\-/#]*\S+$/.test(line);
    if ([...line].length > MAX_COLUMNS && !isUnbreakable) {
      findings.push(`${path}:${index + 1}: ${[...line].length} columns; at most ${MAX_COLUMNS}.`);
    }
  }
  return findings;
}

/** Finds comments that mark unfinished work. */
export function findMarkers({ path, text }: SourceFile): string[] {
  const findings: string[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    // The words are split into halves, because this file is checked too.
    const marker = line.match(/\b(TO(?=DO)DO|FIX(?=ME)ME|X{3}|HA(?=CK)CK)\b/)?.[1];
    if (marker) findings.push(`${path}:${index + 1}: do it or drop it, instead of "${marker}".`);
  }
  return findings;
}

/** Finds folders with too many source files, which should be split. */
export function findFullFolders(paths: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const path of paths) {
    if (!/\.(ts|mjs|js|cc)$/.test(path)) continue;
    const folder = path.slice(0, path.lastIndexOf('/') + 1);
    counts.set(folder, (counts.get(folder) ?? 0) + 1);
  }
  return [...counts]
    .filter(([, count]) => count > MAX_FILES)
    .map(([folder, count]) => `${folder}: ${count} source files; at most ${MAX_FILES}.`);
}

/** Finds folders of the product's second level with code but without a README. */
export function findFoldersWithoutReadme(paths: readonly string[]): string[] {
  const code = paths.filter((path) => /^(proto|gateway|firmware-sim|cli)\/[^/]+\/.*\.(ts|mjs)$/.test(path));
  const folders = new Set(code.map((path) => path.split('/').slice(0, 2).join('/')));
  return [...folders]
    .filter((folder) => !folder.endsWith('/gen') && !paths.includes(`${folder}/README.md`))
    .map((folder) => `${folder}: say in a README what lives there, what it may import and who may import it.`);
}
