/**
 * The documentation as web pages: the files that the build made from docs/ (cli/prepare/help). Unlike the console's,
 * they are read when somebody asks for them: they are many, and few are ever asked for.
 */
import { existsSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { LockgateError } from '../../proto/errors.js';

/** The path below which the help is served. */
export const HELP_PATH = '/help/';
/** What the path of the help alone shows. */
const FIRST_PAGE = 'index.html';
const MANIFEST = 'manifest.json';

/** What manifest.json says of a file. */
interface HelpEntry {
  readonly type: string;
  /** Whether there is a copy compressed by gzip, with `.gz` at the end of its name. */
  readonly isCompressed: boolean;
  /** Whether the name has a hash of the content, so that a browser may keep the file for ever. */
  readonly hasHash: boolean;
}

/** A file of the help, as it is sent. */
export interface HelpFile extends HelpEntry {
  /** Compressed by gzip or plain, as `encoding` says. */
  readonly bytes: Buffer;
  readonly encoding: 'gzip' | null;
}

let loadedHelp: HelpPages | undefined;

/** The help of this build; its list of files is read once per process. @throws LockgateError `internal-pages` */
export function loadHelp(): HelpPages {
  // The compiled module is in dist/gateway/console/, or part of the program's bundle in dist/program/.
  const folders = ['../help/', '../../help/'].map((path) => new URL(path, import.meta.url));
  loadedHelp ??= new HelpPages(
    folders.find((folder) => existsSync(new URL(MANIFEST, folder))) ?? new URL(folders[0] ?? ''),
  );
  return loadedHelp;
}

export class HelpPages {
  readonly #folder: URL;
  readonly #entries: ReadonlyMap<string, HelpEntry>;

  /**
   * @param folder the URL of `dist/help/`, which ends in a slash
   * @throws LockgateError `internal-pages` if the build lacks it
   */
  constructor(folder: URL) {
    this.#folder = folder;
    this.#entries = readManifest(folder);
  }

  /** The names of all files, such as `reference/errors.html`. */
  get names(): readonly string[] {
    return [...this.#entries.keys()];
  }

  /**
   * Reads a file by its name; the empty name is the first page. Undefined if there is none: only names of the list are
   * looked for on the disk.
   *
   * @throws Error if the file can't be read
   */
  async file(name: string, takesGzip: boolean): Promise<HelpFile | undefined> {
    const fullName = name === '' ? FIRST_PAGE : name;
    const entry = this.#entries.get(fullName);
    if (entry === undefined) return undefined;
    const isGzip = takesGzip && entry.isCompressed;
    const bytes = await readFile(new URL(isGzip ? `${fullName}.gz` : fullName, this.#folder));
    return { ...entry, bytes, encoding: isGzip ? 'gzip' : null };
  }
}

function readManifest(folder: URL): ReadonlyMap<string, HelpEntry> {
  try {
    const manifest = JSON.parse(readFileSync(new URL(MANIFEST, folder), 'utf8')) as Readonly<Record<string, HelpEntry>>;
    return new Map(Object.entries(manifest));
  } catch {
    throw new LockgateError('internal-pages', 'the help is missing from the build: run npm run build');
  }
}
