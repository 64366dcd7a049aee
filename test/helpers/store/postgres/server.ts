/**
 * A PostgreSQL server for a test file, in a temporary folder and on a free port, with fsync on. It ends with the test,
 * and also when the test's process is killed: a shell that holds the server waits for the end of the process's pipe.
 *
 * PostgreSQL refuses to run as root, so root runs it as the user `postgres`, whom Debian's package makes.
 */
import { type ChildProcessByStdio, execFileSync, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Readable, Writable } from 'node:stream';
import pg from 'pg';
import { within } from '../../clocks/change-signal.js';
import { root } from '../../house/our-files.js';
import type { Teardown } from '../temp-folder.js';

/** Where Debian's packages put PostgreSQL's programs, a folder for each version. */
const DEBIAN_FOLDER = '/usr/lib/postgresql';
const MIN_VERSION = 15;
const SUPERUSER = 'postgres';
/** The settings of an empty cluster: no passwords, and small segments of the write-ahead log, so that it is small. */
const CLUSTER_SHAPE = ['-A', 'trust', '-U', SUPERUSER, '-E', 'UTF8', '--locale=C.UTF-8', '--wal-segsize=1'];
/**
 * Empty clusters, which are copied: making one takes two seconds of CPU time. A cluster's name has all that it depends
 * on, PostgreSQL's version and the settings, so that it can outlive a build.
 */
const CLUSTERS = path.join(root, 'dist/postgres-clusters');
/** How long a start may take, with the recovery of a server that has crashed. */
const START_SECONDS = 60;
const IS_READY = /database system is ready to accept (read-only )?connections/;

/**
 * What the shell does: runs the server ($1 and on) in the background. At each line of its own input it waits for the
 * server's end and runs it again; when its input ends, it ends the server and deletes the server's folder ($0). SIGINT
 * makes PostgreSQL disconnect its clients and stop.
 */
const HOLD = 'trap "" INT TERM; "$@" & while read -r _; do wait $!; "$@" & done; kill -INT $!; wait $!; rm -rf "$0"';

/** How a server is run. */
export interface ServerOptions {
  /** Settings of PostgreSQL. */
  readonly settings?: Readonly<Record<string, string>>;
  /** The library of server-disk.ts, with which the server's disk can be filled. */
  readonly fullDisk?: string | undefined;
}

/** A running server. */
export interface PostgresServer {
  readonly port: number;
  /** The process id of the server. */
  readonly pid: number;
  /** The folder of {@link serverFolder}. */
  readonly folder: string;
  /** The URL of a database. */
  url(database: string): string;
  /** Makes an empty database, or a copy of one that nobody uses, and returns its URL. */
  createDatabase(template?: string): Promise<string>;
  /** Runs a statement as superuser in a database, and returns its rows. */
  query(database: string, statement: string, values?: readonly unknown[]): Promise<Record<string, unknown>[]>;
  /** Waits for the server's end, which is under way, and starts it again on the same port. */
  startAgain(): Promise<void>;
  /** Ends the server at once, replaces its data by the copy in a folder of {@link backUp}, and starts it again. */
  goBackTo(copy: string): Promise<void>;
}

/** Why there is no PostgreSQL for tests; undefined if there is one. */
export const postgresMissing: string | undefined =
  programFolder() === undefined
    ? `PostgreSQL ${MIN_VERSION} or later is not installed (Debian's package is postgresql)`
    : undefined;

/** The folder of the newest version's programs. */
function programFolder(): string | undefined {
  const versions = existsSync(DEBIAN_FOLDER) ? readdirSync(DEBIAN_FOLDER).map(Number) : [];
  const newest = Math.max(...versions.filter((version) => version >= MIN_VERSION));
  const folder = path.join(DEBIAN_FOLDER, String(newest), 'bin');
  return existsSync(path.join(folder, 'initdb')) ? folder : undefined;
}

/** Starts a new server, which ends after the test. {@link postgresMissing} must be undefined. */
export async function startPostgres(test: Teardown, options: ServerOptions = {}): Promise<PostgresServer> {
  const folder = serverFolder();
  execFileSync('cp', ['-a', makeCluster(), dataOf(folder)]);
  return await runServer(test, folder, options);
}

/** A new folder for a server, whose data are in its folder `cluster`; {@link runServer} deletes it at the end. */
export function serverFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'lockgate-postgres-'));
  chmodSync(folder, 0o777);
  return folder;
}

/**
 * Starts the server whose data are in the folder `cluster` of a folder. It ends after the test.
 *
 * @throws Error with the server's log if it does not start
 */
export async function runServer(
  test: Teardown,
  folder: string,
  { settings: further = {}, fullDisk }: ServerOptions = {},
): Promise<PostgresServer> {
  if (isRoot()) execFileSync('chown', ['-R', SUPERUSER, folder]);
  const port = await freePort();
  const settings = { shared_buffers: '32MB', max_connections: '80', unix_socket_directories: folder, fsync: 'on' };
  const server = [
    ...asPostgres('postgres'),
    // -D is the folder of the data, -h the address to listen on.
    ...['-D', dataOf(folder), '-h', '127.0.0.1', '-p', String(port)],
    ...Object.entries({ ...settings, ...further }).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ];
  // In a session of its own, so that a signal to the tests' process group leaves the shell to clean up.
  const shell = spawn('/bin/sh', ['-c', HOLD, folder, ...server], {
    stdio: ['pipe', 'ignore', 'pipe'],
    detached: true,
    env: { ...process.env, ...(fullDisk === undefined ? {} : { LD_PRELOAD: fullDisk, FULL_DISK: folder }) },
  });
  const ended = new Promise<void>((resolve) => shell.once('close', () => resolve()));
  test.teardown(() => {
    shell.stdin.end();
    return ended;
  });
  await untilReady(shell.stderr);
  return new LocalServer(port, folder, shell);
}

type ServerShell = ChildProcessByStdio<Writable, null, Readable>;

/** A server in a process of its own on this machine. */
class LocalServer implements PostgresServer {
  readonly port: number;
  readonly folder: string;
  readonly #shell: ServerShell;
  #pid: number;
  #databases = 0;

  /** @param shell the shell that holds the server, as {@link HOLD} says */
  constructor(port: number, folder: string, shell: ServerShell) {
    this.port = port;
    this.folder = folder;
    this.#shell = shell;
    this.#pid = readPid(folder);
  }

  get pid(): number {
    return this.#pid;
  }

  async startAgain(): Promise<void> {
    const ready = untilReady(this.#shell.stderr);
    this.#shell.stdin.write('\n');
    await ready;
    this.#pid = readPid(this.folder);
  }

  async goBackTo(copy: string): Promise<void> {
    const [program = '', ...args] = asPostgres('pg_ctl');
    execFileSync(program, [...args, 'stop', '-m', 'immediate', '-D', dataOf(this.folder)]);
    rmSync(dataOf(this.folder), { recursive: true });
    renameSync(dataOf(copy), dataOf(this.folder));
    rmSync(copy, { recursive: true });
    await this.startAgain();
  }

  url(database: string): string {
    return `postgres://${SUPERUSER}@127.0.0.1:${this.port}/${database}`;
  }

  async createDatabase(template = 'template1'): Promise<string> {
    this.#databases += 1;
    const name = `lockgate_${this.#databases}`;
    await this.query('postgres', `CREATE DATABASE ${name} TEMPLATE ${template}`);
    return this.url(name);
  }

  async query(database: string, statement: string, values: readonly unknown[] = []) {
    const client = new pg.Client({ connectionString: this.url(database) });
    client.on('error', () => undefined);
    await client.connect();
    try {
      return (await client.query(statement, [...values])).rows as Record<string, unknown>[];
    } finally {
      await client.end();
    }
  }
}

/** PostgreSQL's folder of data in a server's folder. */
function dataOf(folder: string): string {
  return path.join(folder, 'cluster');
}

/** The process id of the server that runs on a folder. */
function readPid(folder: string): number {
  // It is the file's first line.
  const file = path.join(dataOf(folder), 'postmaster.pid');
  return Number(readFileSync(file, 'utf8').split('\n', 1)[0]);
}

function isRoot(): boolean {
  return process.getuid?.() === 0;
}

/** The command that runs one of PostgreSQL's programs, as its user. */
function asPostgres(name: string): string[] {
  const programs = programFolder();
  if (programs === undefined) throw new Error(postgresMissing);
  const program = path.join(programs, name);
  const user = [`--reuid=${SUPERUSER}`, `--regid=${SUPERUSER}`, '--clear-groups'];
  return isRoot() ? ['setpriv', ...user, program] : [program];
}

/** Copies the data of a running server to a folder as those of a standby, which follows the server. */
export function copyForStandby(server: PostgresServer, folder: string): void {
  copyData(server, folder, ['-R']);
}

/** Copies the data of a running server to a new folder, for {@link PostgresServer.goBackTo}. Returns the folder. */
export function backUp(server: PostgresServer): string {
  const folder = serverFolder();
  copyData(server, folder, []);
  return folder;
}

/** @param flags of pg_basebackup; `-R` makes the copy a standby's */
function copyData({ port }: PostgresServer, folder: string, flags: readonly string[]): void {
  const [program = '', ...args] = asPostgres('pg_basebackup');
  const source = ['-h', '127.0.0.1', '-p', String(port), '-U', SUPERUSER];
  // Without -X the log since the copy's start would be missing.
  execFileSync(program, [...args, ...source, '-D', dataOf(folder), ...flags, '-X', 'stream', '-c', 'fast']);
}

/** Runs the statements of a dump in an empty database. */
export function restoreDump(url: string, dump: Buffer): void {
  const [program = '', ...args] = asPostgres('psql');
  execFileSync(program, [...args, '-q', '-X', '-v', 'ON_ERROR_STOP=1', '-d', url], {
    input: dump,
    stdio: ['pipe', 'ignore', 'inherit'],
  });
}

/** Makes the empty cluster, and returns its folder. */
function makeCluster(): string {
  const [program = '', ...user] = asPostgres('initdb');
  const version = path.basename(path.dirname(programFolder() ?? ''));
  const cached = path.join(CLUSTERS, [version, ...CLUSTER_SHAPE].join('-').replace(/\W+/g, '-'));
  if (existsSync(cached)) return cached;
  const folder = mkdtempSync(path.join(tmpdir(), 'lockgate-cluster-'));
  try {
    chmodSync(folder, 0o777);
    const cluster = path.join(folder, 'cluster');
    execFileSync(program, [...user, '-D', cluster, '--no-sync', ...CLUSTER_SHAPE], { stdio: 'ignore' });
    mkdirSync(CLUSTERS, { recursive: true });
    // Other test files run at the same time: the rename makes it appear complete.
    const unfinished = `${cached}.${process.pid}`;
    execFileSync('cp', ['-a', cluster, unfinished]);
    try {
      renameSync(unfinished, cached);
    } catch {
      // Another test file was faster.
      rmSync(unfinished, { recursive: true });
    }
    return cached;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** A port that the system chooses. Unlike http/free-port.ts: this server never restarts on the same port. */
function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as { port: number };
      probe.close(() => resolve(port));
    });
  });
}

/** Reads the server's log until it is ready; later output is dropped. @throws Error with the log if it never is */
async function untilReady(stream: Readable): Promise<void> {
  let log = '';
  let collect: (chunk: Buffer) => void = () => undefined;
  const ready = new Promise<void>((resolve) => {
    collect = (chunk: Buffer) => {
      log += chunk.toString();
      if (IS_READY.test(log)) resolve();
    };
    stream.on('data', collect);
  });
  await within(START_SECONDS, () => `PostgreSQL is ready; its log is ${log}`, ready);
  stream.off('data', collect).resume();
}
