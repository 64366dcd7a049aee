/**
 * A guest machine with systemd as its init system, for tests of a systemd unit. `systemd-nspawn` boots the guest from
 * the host's files, with a layer in memory over them: what the guest installs and writes is gone afterwards. Its
 * network is a loopback interface of its own, so its ports can't clash with the host's.
 *
 * It needs root, the right to mount, and Debian's `systemd-container`. The guest is not registered with a container
 * manager; commands enter its namespaces with `nsenter`.
 */
import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { Program } from '../cli/program.js';
import { root } from '../house/our-files.js';
import type { Teardown } from '../store/temp-folder.js';

/** The layer must be on a file system that is not a layer itself; a container's root may be one. */
const MEMORY = '/dev/shm';
/** Where this clone of lockgate is in the guest, with a layer of its own over it. */
export const INSTALLED = '/opt/lockgate';

/** Why no such machine can run here; false if one can. */
export const NO_SYSTEMD_MACHINE: string | false = whyNot();

function whyNot(): string | false {
  if (process.getuid?.() !== 0) return 'only root may start a machine';
  for (const program of ['systemd-nspawn', 'nsenter', '/lib/systemd/systemd'])
    if (spawnSync(program, ['--version']).error !== undefined) return `${program} is missing`;
  // A container may forbid root to mount.
  const mounted = spawnSync('unshare', ['--mount', 'mount', '-t', 'tmpfs', 'none', '/mnt']);
  return mounted.status === 0 ? false : 'this machine may not mount';
}

/** The longest that a command may take, in milliseconds: a unit that never says that it is ready hangs `systemctl`. */
const COMMAND_LIMIT = 120_000;

/** What a command wrote to both outputs, and its exit code: null if it took too long. */
export interface Ran {
  readonly status: number | null;
  readonly output: string;
}

/** A guest that has booted. */
export class SystemdMachine {
  /** The process id of the guest's systemd, on the host. */
  readonly #init: number;
  /** The guest's root folder, on the host. */
  readonly #files: string;

  private constructor(init: number, files: string) {
    this.#init = init;
    this.#files = files;
  }

  /** Boots a guest, which is shut down at the end of the test. @throws Error if it doesn't boot within a minute */
  static async boot(test: Teardown): Promise<SystemdMachine> {
    const folder = mkdtempSync(path.join(MEMORY, 'lockgate-machine-'));
    const [files = '', ...layers] = ['root', 'upper', 'work', 'clone'].map((name) => path.join(folder, name));
    for (const each of [files, ...layers]) mkdirSync(each);
    const [upper, work, clone] = layers;
    mustRun('mount', '-t', 'overlay', '-o', `lowerdir=/,upperdir=${upper},workdir=${work}`, 'overlay', files);
    test.teardown(() => {
      mustRun('umount', files);
      rmSync(folder, { recursive: true });
    });
    const packages = realpathSync(path.join(root, 'node_modules'));
    const machine = new Program(test, 'systemd-nspawn', [
      `--directory=${files}`,
      ...['--boot', '--quiet', '--register=no', '--keep-unit', '--link-journal=no', '--console=pipe'],
      '--private-network',
      `--overlay=${root}:${clone}:${INSTALLED}`,
      // The installed packages: if node_modules of this clone is a link, its target must exist in the guest too.
      `--bind-ro=${packages}`,
      `--bind-ro=${process.execPath}:/usr/bin/node`,
      // An option of systemd: none of the services that are installed on the host is started.
      'systemd.unit=basic.target',
    ]);
    test.teardown(async () => {
      // nspawn asks its systemd to shut down.
      machine.kill('SIGTERM');
      await machine.waitForExit();
    });
    return new SystemdMachine(await initOf(test, machine), files);
  }

  /** Runs a line of shell as root of the guest. */
  run(line: string): Ran {
    const { status, stdout, stderr } = spawnSync('nsenter', this.#entering(['sh', '-c', line]), {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: COMMAND_LIMIT,
      killSignal: 'SIGKILL',
    });
    return { status, output: `${stdout}${stderr}`.trim() };
  }

  /** Writes a file of the guest. */
  write(file: string, content: Buffer | string): void {
    mkdirSync(path.dirname(path.join(this.#files, file)), { recursive: true });
    writeFileSync(path.join(this.#files, file), content);
  }

  /** Does something, and waits until the journal of a unit has a line about it. @throws Error after a minute */
  untilJournalSays(unit: string, pattern: RegExp, act: () => void): string {
    const lines = `journalctl --unit=${unit} --output=cat | grep -E '${pattern.source}'`;
    const before = Number(this.run(`${lines} | wc -l`).output);
    act();
    const giveUp = 'tries=$((tries+1)); [ $tries -lt 600 ] || exit 1';
    const wait = `until [ "$(${lines} | wc -l)" -gt ${before} ]; do ${giveUp}; sleep 0.1; done`;
    const { status, output } = this.run(`tries=0; ${wait}; ${lines} | tail -1`);
    if (status !== 0) throw new Error(`the journal doesn't say ${pattern.source}`);
    return output;
  }

  /** The arguments with which nsenter runs this command in the guest. */
  #entering(command: readonly string[]): string[] {
    const namespaces = ['--mount', '--pid', '--uts', '--ipc', '--net', '--cgroup', '--root', '--wd'];
    const variables = ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', 'HOME=/root', 'NO_COLOR=1'];
    return [`--target=${this.#init}`, ...namespaces, '--', 'env', '-i', ...variables, ...command];
  }
}

function mustRun(command: string, ...args: string[]): SpawnSyncReturns<string> {
  const ran = spawnSync(command, args, { encoding: 'utf8' });
  if (ran.status !== 0) throw new Error(`${command} ${args.join(' ')}: ${ran.stderr}`);
  return ran;
}

/** Waits until the guest has booted. Returns the process id of its systemd, which is nspawn's child. */
async function initOf(test: Teardown, machine: Program): Promise<number> {
  const children = `/proc/${machine.pid}/task/${machine.pid}/children`;
  const isBooted = 'nsenter --target=$init --mount --pid --ipc --root systemctl --quiet is-active basic.target';
  const wait = `until init=$(cat ${children}) && [ -n "$init" ] && ${isBooted}; do sleep 0.1; done; echo booted $init`;
  const line = await new Program(test, 'sh', ['-c', wait]).waitForLine(/^booted \d+/);
  return Number(line.split(' ')[1]);
}
