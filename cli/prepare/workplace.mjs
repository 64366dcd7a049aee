// Functions that all steps of the preparation share: paths of the clone, messages, failures, running a program.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The clone's top folder, without a slash at its end. */
export const root = fileURLToPath(new URL('../..', import.meta.url)).replace(/[\\/]$/, '');

/** The folders with TypeScript, by scope. tsconfig.json includes the same five. */
const productFolders = ['proto', 'gateway', 'firmware-sim', 'cli'];
const sourceFolders = { product: productFolders, all: [...productFolders, 'test'] };

/** A path inside the clone. */
export function pathInClone(...parts) {
  return join(root, ...parts);
}

/** Prints a line on stderr, so that a command's stdout can be piped. */
export function printProgress(line) {
  process.stderr.write(`${line}\n`);
}

/** A failure that the user can fix. Its message is a sentence and is printed without a stack trace. */
export class UserError extends Error {}

/** Runs `job`. Prints the message of a UserError and sets exit code 1; any other error is a bug and is thrown. */
export async function reportFailure(job) {
  try {
    await job();
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    printProgress(error.message);
    process.exitCode = 1;
  }
}

/** The text of a file, or null when there is none. */
export function readOrNull(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null;
    throw error;
  }
}

/** A short hash of some texts, which depends on their order; null stands for a missing file. */
export function fingerprint(texts) {
  const hash = createHash('sha256');
  for (const text of texts) hash.update(`${text?.length ?? 'none'}:${text ?? ''}`);
  return hash.digest('hex').slice(0, 24);
}

/** The .ts files of a scope (`product`, or `all` with the tests): sorted paths from the root with forward slashes. */
export function sourceFiles(scope) {
  const files = sourceFolders[scope].flatMap((folder) => filesBelow(folder, '.ts'));
  return files.filter((path) => !path.endsWith('.d.ts')).sort();
}

/**
 * The files of the console's pages that are only bundled: sorted paths from the root with forward slashes. The .ts
 * files there are compiled one by one like all others too, for the tests.
 */
export function bundledFiles() {
  return ['.tsx', '.css', '.d.ts'].flatMap((ending) => filesBelow('gateway/console/page', ending)).sort();
}

/** The files below a folder (a path from the root) whose names have this ending; none if the folder is missing. */
export function filesBelow(folder, ending) {
  let entries;
  try {
    entries = readdirSync(pathInClone(folder), { withFileTypes: true });
  } catch {
    return [];
  }
  return entries.flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) return entry.name === 'node_modules' ? [] : filesBelow(path, ending);
    return entry.name.endsWith(ending) ? [path] : [];
  });
}

/**
 * Runs a program to its end. `stdio` is Node's; piped output is returned and also passed to `onOutput` as it arrives.
 * Resolves to `{ ok, how, stdout, stderr }`, where `how` says how the program ended, such as `ended with status 1`.
 */
export function run(command, args, { stdio = 'inherit', onOutput = () => {} } = {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: root, stdio });
    const output = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr']) {
      child[name]?.setEncoding('utf8').on('data', (chunk) => {
        output[name] += chunk;
        onOutput(chunk);
      });
    }
    child.on('error', (error) => resolve({ ...output, ok: false, how: error.message }));
    child.on('close', (code, signal) => {
      resolve({ ...output, ok: code === 0, how: signal ? `was ended by ${signal}` : `ended with status ${code}` });
    });
  });
}

/** Runs a tool that npm installed, by the name of its command. */
export function runTool(name, args, options) {
  return run(process.execPath, [pathInClone('node_modules', '.bin', name), ...args], options);
}
