/**
 * What a bench has put up, and takes down again: programs, folders, connections, the last first; also where it is
 * interrupted.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Teardown } from '../helpers/store/temp-folder.js';
import { Obedient } from './load/obedient.js';

const open = new Set<Stage>();
let isEnding = false;

/** Whether all is being taken down: what breaks then broke for that. */
export function isInterrupted(): boolean {
  return isEnding;
}

/** Ends what all benches have put up: for Ctrl-C. What fails on the way keeps nothing else from being taken down. */
export async function endAllStages(): Promise<void> {
  isEnding = true;
  for (const stage of [...open].reverse()) await stage.end().catch(() => undefined);
}

export class Stage implements Teardown {
  readonly #ends: (() => unknown)[] = [];

  constructor() {
    open.add(this);
  }

  teardown(end: () => unknown): void {
    this.#ends.push(end);
  }

  /** One of the bench's own scripts, in a process of its own. */
  script(script: string, argument: unknown): Obedient {
    return this.#keep(Obedient.script(script, argument));
  }

  program(command: string, args: readonly string[]): Obedient {
    return this.#keep(new Obedient(command, args));
  }

  #keep(program: Obedient): Obedient {
    this.teardown(() => program.end());
    return program;
  }

  /** A new empty folder that is gone at the end. */
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

/** Does the work on a stage of its own. */
export async function onStage<T>(work: (stage: Stage) => Promise<T>): Promise<T> {
  const stage = new Stage();
  try {
    return await work(stage);
  } finally {
    await stage.end();
  }
}
