/**
 * The load generator: locks with one ping in flight each, in a separate process. The program is written in C++
 * (ping-generator.cc), so that it uses less CPU than the system it measures; without a compiler, node-generator.ts
 * replaces it and the row says so.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { root } from '../../helpers/house/our-files.js';
import { type CpuTime, readCpuTime } from '../cpu-share.js';
import type { Resources } from '../resources.js';
import type { ChildProgram } from './child-program.js';
import type { LockLogin } from './crowd-accounts.js';
import type { LoadResult } from './node-generator.js';
import { FIRST_SEQUENCE, nextBoot, pingTemplate } from './ping-template.js';

const SOURCE = path.join(root, 'test/bench/load/ping-generator.cc');
const NODE_GENERATOR = fileURLToPath(new URL('./node-generator.js', import.meta.url));

/** The language of the generator: `Node` without a compiler. */
export type GeneratorKind = 'C++' | 'Node';

export interface GeneratorRequest {
  readonly port: number;
  readonly locks: readonly LockLogin[];
  /** The topic of a lock's pings; by default `up`. */
  readonly topic?: (mac: string) => string;
  /** By default `C++` if there is a compiler. */
  readonly kind?: GeneratorKind;
}

export class Generator {
  readonly kind: GeneratorKind;
  readonly #program: ChildProgram;

  private constructor(kind: GeneratorKind, program: ChildProgram) {
    this.kind = kind;
    this.#program = program;
  }

  /** Starts a generator; resolves when all its locks are connected. @throws Error if a lock is refused */
  static async start(resources: Resources, request: GeneratorRequest): Promise<Generator> {
    const plan = path.join(resources.folder(), 'plan');
    writeFileSync(plan, planOf(request));
    const light = request.kind === 'Node' ? undefined : build();
    const program =
      light === undefined
        ? resources.program(process.execPath, [NODE_GENERATOR, plan])
        : resources.program(light, [plan]);
    await program.answer();
    return new Generator(light === undefined ? 'Node' : 'C++', program);
  }

  /** Sends `count` pings, as fast as they are acknowledged. */
  flood(count: number): Promise<LoadResult> {
    return this.#program.answer<LoadResult>(`flood ${count}`);
  }

  /** Sends pings for this time, as fast as they are acknowledged. */
  run(milliseconds: number): Promise<LoadResult> {
    return this.#program.answer<LoadResult>(`run ${milliseconds}`);
  }

  /** Sends `count` pings by a schedule, `rate` a second; each is timed from its scheduled time. */
  pace(count: number, rate: number): Promise<LoadResult> {
    return this.#program.answer<LoadResult>(`pace ${count} ${rate}`);
  }

  cpu(): CpuTime | null {
    return readCpuTime(this.#program.pid);
  }
}

function planOf({ port, locks, topic = () => 'up' }: GeneratorRequest): string {
  const { bytes, sequenceAt, timeAt } = pingTemplate(nextBoot());
  const lines = [
    `port ${port}`,
    `template ${bytes.toString('hex')}`,
    `sequence ${sequenceAt} ${FIRST_SEQUENCE}`,
    `time ${timeAt}`,
    ...locks.map(({ mac, secret }) => `lock ${mac} ${secret} ${topic(mac)}`),
  ];
  return `${lines.join('\n')}\n`;
}

let built: { readonly file: string | undefined } | undefined;

/** Compiles the C++ generator, once per run. Returns its file; undefined if that fails, which is printed. */
export function build(): string | undefined {
  built ??= { file: compile() };
  return built.file;
}

function compile(): string | undefined {
  const folder = mkdtempSync(path.join(tmpdir(), 'lockgate-bench-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const file = path.join(folder, 'ping-generator');
  const { status, stderr, error } = spawnSync('g++', ['-O2', '-std=c++17', '-o', file, SOURCE], { encoding: 'utf8' });
  if (status === 0) return file;
  const why = error === undefined ? stderr.trim().split('\n')[0] : 'g++ is not installed (Debian: apt-get install g++)';
  console.error(`  The load generator runs in Node and uses more CPU: ${why}`);
  return undefined;
}
