/** Reads systemd's unit files, and what a unit's filter of system calls forbids. */
import { spawnSync } from 'node:child_process';

/** The values of a directive, in the file's order. */
export function directiveValues(unit: string, name: string): string[] {
  return unit
    .split('\n')
    .filter((line) => line.startsWith(`${name}=`))
    .map((line) => line.slice(name.length + 1));
}

/** Runs `systemd-analyze`, and returns its output; undefined if there is no such program. */
export function systemdAnalyze(...args: string[]): { status: number | null; output: string } | undefined {
  const { error, status, stdout, stderr } = spawnSync('systemd-analyze', [...args, '--no-pager'], { encoding: 'utf8' });
  return error === undefined ? { status, output: `${stdout}${stderr}` } : undefined;
}

/**
 * The system calls that the values of `SystemCallFilter=` forbid. A value has names of calls and of systemd's sets of
 * calls (`@system-service`); it allows them, or forbids them if it starts with `~`.
 */
export function forbiddenCalls(filters: readonly string[]): string[] {
  const sets = readSets(systemdAnalyze('syscall-filter')?.output ?? '');
  const callsOf = (name: string): string[] =>
    name.startsWith('@') ? (sets.get(name) ?? []).flatMap((member) => callsOf(member)) : [name];
  const allowed = new Set<string>();
  for (const filter of filters) {
    const isDenial = filter.startsWith('~');
    for (const name of filter.replace('~', '').split(/\s+/)) {
      for (const call of callsOf(name)) isDenial ? allowed.delete(call) : allowed.add(call);
    }
  }
  // systemd allows these in every list.
  for (const call of callsOf('@default')) allowed.add(call);
  // The set of all calls.
  return callsOf('@known').filter((call) => !allowed.has(call));
}

/** The sets of `systemd-analyze syscall-filter`: a name in its own line, and its members indented. */
function readSets(output: string): Map<string, string[]> {
  const sets = new Map<string, string[]>();
  let members: string[] = [];
  for (const line of output.split('\n')) {
    if (/^@[a-z-]+$/.test(line)) {
      members = [];
      sets.set(line, members);
    } else if (/^ +[@a-z0-9_-]+$/.test(line)) members.push(line.trim());
  }
  return sets;
}
