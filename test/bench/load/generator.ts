/**
 * Starts the load generator and sends it commands. The generator is a separate program that plays many locks, each with
 * at most one unacknowledged ping. It is written in C++ (ping-generator.cc), so that it uses less CPU than the system
 * it measures. Without a C++ compiler, node-generator.ts replaces it, and the bench says so.
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
import type { LockLogin } from './lock-logins.js';
import type { LoadResult } from './node-generator.js';
import { newBootNumber, pingTemplate, SEQUENCE_BEFORE_FIRST } from './ping-template.js';

const SOURCE = path.join(root, 'test/bench/load/ping-generator.cc');
const NODE_GENERATOR = fileURLToPath(new URL('./node-generator.js', import.meta.url));

/** The language that the generator is written in. */
export type GeneratorKind = 'C++' | 'Node';

export interface GeneratorRequest {
  readonly port: number;
  readonly locks: readonly LockLogin[];
  /** The topic of a lock's pings; by default `up`. */
  readonly topic?: (mac: string) => string;
  /** By default `C++` if there is a compiler. */
  readonly kind?: GeneratorKind;
}

/** A running load generator, whose locks are connected. */
export class LoadGenerator {
  readonly kind: GeneratorKind;
  readonly #program: ChildProgram;

  private constructor(kind: GeneratorKind, program: ChildProgram) {
    this.kind = kind;
    this.#program = program;
  }

  /** Starts a generator; resolves when all its locks are connected. @throws Error if a lock is refused */
  static async start(resources: Resources, request: GeneratorRequest): Promise<LoadGenerator> {
    const plan = path.join(resources.makeFolder(), 'plan');
    writeFileSync(plan, planText(request));
    const compiledFile = request.kind === 'Node' ? undefined : compileOnce();
    const program =
      compiledFile === undefined
        ? resources.startProgram(process.execPath, [NODE_GENERATOR, plan])
        : resources.startProgram(compiledFile, [plan]);
    await program.readAnswer();
    return new LoadGenerator(compiledFile === undefined ? 'Node' : 'C++', program);
  }

  /** Sends `count` pings, as fast as they are acknowledged. */
  flood(count: number): Promise<LoadResult> {
    return this.#program.ask<LoadResult>(`flood ${count}`);
  }

  /** Sends pings for this time, as fast as they are acknowledged. */
  floodFor(milliseconds: number): Promise<LoadResult> {
    return this.#program.ask<LoadResult>(`run ${milliseconds}`);
  }

  /** Sends `count` pings by a schedule, `rate` a second; each is timed from its scheduled time. */
  sendBySchedule(count: number, rate: number): Promise<LoadResult> {
    return this.#program.ask<LoadResult>(`pace ${count} ${rate}`);
  }

  /** The CPU time of the generator so far. */
  cpu(): CpuTime | null {
    return readCpuTime(this.#program.pid);
  }
}

/** The plan file that the generator reads; its lines are documented in ping-generator.cc. */
function planText({ port, locks, topic = () => 'up' }: GeneratorRequest): string {
  const { bytes, sequenceAt, timeAt } = pingTemplate(newBootNumber());
  const lines = [
    `port ${port}`,
    `template ${bytes.toString('hex')}`,
    `sequence ${sequenceAt} ${SEQUENCE_BEFORE_FIRST}`,
    `time ${timeAt}`,
    ...locks.map(({ mac, secret }) => `lock ${mac} ${secret} ${topic(mac)}`),
  ];
  return `${lines.join('\n')}\n`;
}

/** The result of the compilation, once it was tried. */
let compilation: { readonly file: string | undefined } | undefined;

/** Compiles the C++ generator, once per run. Returns its file; undefined if that fails, which is printed. */
export function compileOnce(): string | undefined {
  compilation ??= { file: compile() };
  return compilation.file;
}

function compile(): string | undefined {
  const folder = mkdtempSync(path.join(tmpdir(), 'lockgate-bench-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const file = path.join(folder, 'ping-generator');
  const { status, stderr, error } = spawnSync('g++', ['-O2', '-std=c++17', '-o', file, SOURCE], { encoding: 'utf8' });
  if (status === 0) return file;
  const reason =
    error === undefined ? stderr.trim().split('\n')[0] : 'g++ is not installed (Debian: apt-get install g++)';
  console.error(`  The load generator runs in Node and uses more CPU: ${reason}`);
  return undefined;
}
