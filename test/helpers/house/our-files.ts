// Lists the project's own files: those that git tracks or does not ignore. Without git, all that are not generated.
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const MAX_LIST_BYTES = 16 * 1024 * 1024;
const SKIPPED_FOLDERS = ['node_modules', 'dist', 'data', '.git', '.tap', '.prepare'];

/** The top folder of the clone: the first folder above this file with a tsconfig.json, so not `dist`. */
export const root = findRoot(dirname(fileURLToPath(import.meta.url)));

function findRoot(folder: string): string {
  return existsSync(join(folder, 'tsconfig.json')) ? folder : findRoot(dirname(folder));
}

/** The paths of the project's files from the root, sorted, with forward slashes. */
export function ourFiles(): string[] {
  // git also lists files whose deletion is not committed.
  const exists = (path: string) => statSync(join(root, path), { throwIfNoEntry: false })?.isFile();
  return (gitFiles() ?? listFolder('')).filter(exists).sort();
}

/** The files that git lists; null if git is missing, refuses the folder, or there is no clone. */
function gitFiles(): string[] | null {
  try {
    const args = ['ls-files', '-z', '--cached', '--others', '--exclude-standard'];
    const list = execFileSync('git', args, {
      cwd: root,
      stdio: ['ignore', 'pipe', 'ignore'],
      maxBuffer: MAX_LIST_BYTES,
    });
    const paths = list.toString('utf8').split('\0').filter(Boolean);
    return paths.length > 0 ? paths : null;
  } catch {
    return null;
  }
}

function listFolder(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    if (SKIPPED_FOLDERS.includes(entry.name) || entry.name.endsWith('.log')) return [];
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
    return entry.isDirectory() ? listFolder(path) : [path];
  });
}
