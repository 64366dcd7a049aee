/**
 * The load: locks with one ping in flight each, in a process of their own. It is a small program in C++, so that it is
 * lighter than what it measures; where there is no compiler, Node does the same and the row says so.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { root } from '../../helpers/house/our-files.js';
import { type CpuTime, cpuTime } from '../cpu-share.js';
import type { Stage } from '../stage.js';
import type { PlayedLock } from './crowd-accounts.js';
import type { Played } from './node-generator.js';
import type { Obedient } from './obedient.js';
import { FIRST_SEQUENCE, nextBoot, pingTemplate } from './ping-template.js';

const SOURCE = path.join(root, 'test/bench/load/ping-generator.cc');
const NODE_GENERATOR = fileURLToPath(new URL('./node-generator.js', import.meta.url));

/** Which generator there is: `C++`, or `Node` where there is no compiler. */
export type GeneratorKind = 'C++' | 'Node';

export interface GeneratorRequest {
  readonly port: number;
  readonly locks: readonly PlayedLock[];
  /** The topic of a lock's pings; `up` where it is left out. */
  readonly topic?: (mac: string) => string;
  /** The light one where there is a compiler, unless another is asked for. */
  readonly kind?: GeneratorKind;
}

export class Generator {
  readonly kind: GeneratorKind;
  readonly #program: Obedient;

  private constructor(kind: GeneratorKind, program: Obedient) {
    this.kind = kind;
    this.#program = program;
  }

  /** One whose locks are all connected. @throws Error where one of them is refused */
  static async start(stage: Stage, request: GeneratorRequest): Promise<Generator> {
    const plan = path.join(stage.folder(), 'plan');
    writeFileSync(plan, planOf(request));
    const light = request.kind === 'Node' ? undefined : build();
    const program =
      light === undefined ? stage.program(process.execPath, [NODE_GENERATOR, plan]) : stage.program(light, [plan]);
    await program.answer();
    return new Generator(light === undefined ? 'Node' : 'C++', program);
  }

  /** So many pings, as fast as they are acknowledged. */
  flood(count: number): Promise<Played> {
    return this.#program.answer<Played>(`flood ${count}`);
  }

  /** As many pings as are acknowledged in so long. */
  run(milliseconds: number): Promise<Played> {
    return this.#program.answer<Played>(`run ${milliseconds}`);
  }

  /** So many pings, `rate` a second by schedule; their times are from when each should have left. */
  pace(count: number, rate: number): Promise<Played> {
    return this.#program.answer<Played>(`pace ${count} ${rate}`);
  }

  cpu(): CpuTime | null {
    return cpuTime(this.#program.pid);
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

/** The compiled program, made once a run and gone with the process; undefined where it can't be had, which is said. */
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
  console.error(`  The load generator runs in Node, and is not light: ${why}`);
  return undefined;
}
