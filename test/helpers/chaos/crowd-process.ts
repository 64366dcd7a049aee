/**
 * A crowd (many simulated locks) in a process of its own, so that neither the crowd nor the test delays the other. This
 * file is both the program of that process and the class that starts it. The program takes one argument, the file with
 * its options as JSON, and answers each line of its input with one line of JSON.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { ChildProgram } from '../../bench/load/child-program.js';
import { type Teardown, tempFolder } from '../store/temp-folder.js';
import type { ChaosDiary } from './chaos-lock.js';
import { type AnyCrowd, Crowd, type CrowdCounts, type CrowdOptions } from './crowd.js';

const PROGRAM = fileURLToPath(import.meta.url);

/** Starts a crowd in another process. */
export class CrowdProcess implements AnyCrowd {
  readonly #program: ChildProgram;

  constructor(test: Teardown, options: CrowdOptions) {
    const file = path.join(tempFolder(test), 'crowd.json');
    writeFileSync(file, JSON.stringify(options));
    this.#program = new ChildProgram(process.execPath, [PROGRAM, file]);
    test.teardown(() => this.#program.stop());
  }

  counts(): Promise<CrowdCounts> {
    return this.#program.ask('counts');
  }

  async stopPings(): Promise<void> {
    await this.#program.ask('stop-pings');
  }

  async setLosing(isLosing: boolean): Promise<void> {
    await this.#program.ask(isLosing ? 'lose' : 'keep');
  }

  end(): Promise<readonly ChaosDiary[]> {
    return this.#program.ask('end');
  }
}

/** Does what a line of the program's input asks for. */
async function answer(crowd: Crowd, line: string): Promise<unknown> {
  if (line === 'counts') return await crowd.counts();
  if (line === 'end') return await crowd.end();
  if (line === 'stop-pings') await crowd.stopPings();
  else await crowd.setLosing(line === 'lose');
  return {};
}

async function main(file: string): Promise<void> {
  const crowd = new Crowd(JSON.parse(readFileSync(file, 'utf8')) as CrowdOptions);
  for await (const line of createInterface({ input: process.stdin }))
    process.stdout.write(`${JSON.stringify(await answer(crowd, line))}\n`);
  process.exit(0);
}

if (process.argv[1] === PROGRAM) void main(process.argv[2] ?? '');
