/** Summarises CPU profiles: the functions with the largest share of a thread's busy time, without their callees. */
import { readFileSync } from 'node:fs';
import path from 'node:path';

/**
 * A profile as V8 writes it: at each sample, the running function (a node's id); `timeDeltas` are µs between samples.
 */
interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

const MAX_FUNCTIONS = 20;
/** V8's names for time without work. */
const IDLE_FUNCTIONS = new Set(['(idle)', '(root)']);

/** Each function's share of the busy time, without its callees, largest first. */
export function ownShares({ nodes, samples, timeDeltas }: CpuProfile): [name: string, share: number][] {
  const names = new Map(
    nodes.map(({ id, callFrame: { functionName, url, lineNumber } }) => {
      // V8 counts lines from 0.
      const position = url === '' ? '' : ` ${path.basename(url)}:${lineNumber + 1}`;
      return [id, `${functionName || '(anonymous)'}${position}`] as const;
    }),
  );
  const times = new Map<string, number>();
  let busy = 0;
  for (const [index, id] of samples.entries()) {
    const name = names.get(id) ?? '';
    if (IDLE_FUNCTIONS.has(name)) continue;
    const us = timeDeltas[index] ?? 0;
    busy += us;
    times.set(name, (times.get(name) ?? 0) + us);
  }
  return [...times].map(([name, us]): [string, number] => [name, us / busy]).sort((a, b) => b[1] - a[1]);
}

/** The lines to print about the profiles in this folder, one profile per thread. */
export function profileLines(folder: string, files: readonly string[]): string[] {
  return files.flatMap((file) => {
    const profile = JSON.parse(readFileSync(path.join(folder, file), 'utf8')) as CpuProfile;
    const shares = ownShares(profile).slice(0, MAX_FUNCTIONS);
    return [
      `Profile: ${path.join(folder, file)}`,
      ...shares.map(([name, share]) => `  ${(100 * share).toFixed(1).padStart(5)} %  ${name}`),
    ];
  });
}
