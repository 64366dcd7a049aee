// The files of this clone that are ours: what git tracks or would track, and without git what is not generated.
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const maxListBytes = 16 * 1024 * 1024;
const notOurs = ['node_modules', 'dist', 'data', '.git', '.tap', '.prepare'];

/** The clone's top folder: the first above this file that has the sources and not just what they compile to. */
export const root = findRoot(dirname(fileURLToPath(import.meta.url)));

function findRoot(folder: string): string {
  return existsSync(join(folder, 'tsconfig.json')) ? folder : findRoot(dirname(folder));
}

/** Paths from the root, sorted, with forward slashes. */
export function ourFiles(): string[] {
  // git also lists what was deleted and not yet committed.
  const isThere = (path: string) => statSync(join(root, path), { throwIfNoEntry: false })?.isFile();
  return (gitFiles() ?? walk('')).filter(isThere).sort();
}

/** Null where git is missing, refuses the folder, or this is no clone. */
function gitFiles(): string[] | null {
  try {
    const args = ['ls-files', '-z', '--cached', '--others', '--exclude-standard'];
    const list = execFileSync('git', args, { cwd: root, stdio: ['ignore', 'pipe', 'ignore'], maxBuffer: maxListBytes });
    const paths = list.toString('utf8').split('\0').filter(Boolean);
    return paths.length > 0 ? paths : null;
  } catch {
    return null;
  }
}

function walk(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    if (notOurs.includes(entry.name) || entry.name.endsWith('.log')) return [];
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
    return entry.isDirectory() ? walk(path) : [path];
  });
}
