/**
 * Programs, folders and connections that a measurement of the bench uses. They are released at its end, in reverse
 * order, even after Ctrl-C.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Teardown } from '../helpers/store/temp-folder.js';
import { ChildProgram } from './load/child-program.js';

const openResources = new Set<Resources>();
let isReleasingAll = false;

/** Whether all resources are being released: a failure is then a consequence of the interruption. */
export function isInterrupted(): boolean {
  return isReleasingAll;
}

/** Releases the resources of all benches, for Ctrl-C. If releasing one fails, all others are still released. */
export async function releaseAllResources(): Promise<void> {
  isReleasingAll = true;
  for (const resources of [...openResources].reverse()) await resources.release().catch(() => undefined);
}

/** What one measurement must release at its end. */
export class Resources implements Teardown {
  readonly #teardowns: (() => unknown)[] = [];

  constructor() {
    openResources.add(this);
  }

  /** Registers a function that {@link release} calls. */
  teardown(undo: () => unknown): void {
    this.#teardowns.push(undo);
  }

  /** Starts one of the bench's scripts in a separate process; see {@link ChildProgram.startScript}. */
  startScript(file: string, argument: unknown): ChildProgram {
    return this.#stopAtRelease(ChildProgram.startScript(file, argument));
  }

  /** Starts a program in a separate process. */
  startProgram(command: string, args: readonly string[]): ChildProgram {
    return this.#stopAtRelease(new ChildProgram(command, args));
  }

  #stopAtRelease(program: ChildProgram): ChildProgram {
    this.teardown(() => program.stop());
    return program;
  }

  /** Creates an empty folder, which is deleted at the end. */
  makeFolder(): string {
    const folder = mkdtempSync(path.join(tmpdir(), 'lockgate-bench-'));
    this.teardown(() => rmSync(folder, { recursive: true, force: true }));
    return folder;
  }

  /** Calls the registered functions, last first; all of them, even if some fail. @throws the first failure */
  async release(): Promise<void> {
    openResources.delete(this);
    const failures: unknown[] = [];
    for (const undo of this.#teardowns.splice(0).reverse())
      try {
        await undo();
      } catch (error) {
        failures.push(error);
      }
    if (failures.length > 0) throw failures[0];
  }
}

/** Runs `work` with its own resources, and releases them afterwards. */
export async function withResources<T>(work: (resources: Resources) => Promise<T>): Promise<T> {
  const resources = new Resources();
  try {
    return await work(resources);
  } finally {
    await resources.release();
  }
}
