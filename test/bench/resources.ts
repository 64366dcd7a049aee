/**
 * Programs, folders and connections of a bench, which are released at its end, last first, even after Ctrl-C.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Teardown } from '../helpers/store/temp-folder.js';
import { ChildProgram } from './load/child-program.js';

const open = new Set<Resources>();
let isEnding = false;

/** Whether all resources are being released: a failure is then a consequence of the interruption. */
export function isInterrupted(): boolean {
  return isEnding;
}

/** Releases the resources of all benches, for Ctrl-C. If releasing one fails, all others are still released. */
export async function releaseAllResources(): Promise<void> {
  isEnding = true;
  for (const resources of [...open].reverse()) await resources.end().catch(() => undefined);
}

export class Resources implements Teardown {
  readonly #ends: (() => unknown)[] = [];

  constructor() {
    open.add(this);
  }

  teardown(end: () => unknown): void {
    this.#ends.push(end);
  }

  /** Starts one of the bench's scripts in a separate process; see {@link ChildProgram.script}. */
  script(script: string, argument: unknown): ChildProgram {
    return this.#endWithProgram(ChildProgram.script(script, argument));
  }

  program(command: string, args: readonly string[]): ChildProgram {
    return this.#endWithProgram(new ChildProgram(command, args));
  }

  #endWithProgram(program: ChildProgram): ChildProgram {
    this.teardown(() => program.end());
    return program;
  }

  /** Creates an empty folder, which is deleted at the end. */
  folder(): string {
    const folder = mkdtempSync(path.join(tmpdir(), 'lockgate-bench-'));
    this.teardown(() => rmSync(folder, { recursive: true, force: true }));
    return folder;
  }

  async end(): Promise<void> {
    open.delete(this);
    for (const end of this.#ends.splice(0).reverse()) await end();
  }
}

/** Runs `work` with its own resources, and releases them afterwards. */
export async function withResources<T>(work: (resources: Resources) => Promise<T>): Promise<T> {
  const resources = new Resources();
  try {
    return await work(resources);
  } finally {
    await resources.end();
  }
}
