/**
 * `trace check` takes bounded memory for a trace with half a million findings: in each format of its output it needs
 * less than a process that has all findings in memory.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import t from 'tap';
import { LineSink } from '../../../cli/terminal/line-sink.js';
import { root } from '../../helpers/house/our-files.js';

const FINDINGS = 500_000;
const LOCKS = 100;
/** As JSON, the findings have at least this many bytes: 315 MiB. */
const MIN_JSON_BYTES = 330_000_000;
/** Less than those and Node.js itself take together. */
const MAX_RESIDENT_MIB = 330;

const folder = mkdtempSync(path.join(tmpdir(), 'lockgate-findings-'));
t.teardown(() => rmSync(folder, { recursive: true, force: true }));

/**
 * Writes a trace in which each ping breaks the rule `state-unchanged`: it reports a change to `locked`, but the lock
 * was locked already. A later line may withdraw such a finding, so the check must not forget it before the trace ends.
 */
function writeTrace(file: string): void {
  const lines = new LineSink(file);
  const macs = Array.from({ length: LOCKS }, (_, index) => `A4:C1:38:00:00:${hex(index)}`);
  const locks = Object.fromEntries(macs.map((mac) => [mac, { connected: true, lock_state: 'locked' }]));
  lines.write(JSON.stringify({ trace: 'lockgate', version: 1, locks }));
  for (let index = 0; index < FINDINGS; index += 1) {
    const at = new Date(Date.UTC(2026, 10, 20) + index * 100).toISOString();
    const ping = {
      ...{ ping_type: 'cellular', reason: 'REASON_STATE_PING', lock_state: 'locked', battery_percent: 80 },
      ...{ firmware_version: '2.4.1', ebike_voltage: null, tether_state: 'detached' },
      ...{ boot: 1, sequence: 1 + Math.floor(index / LOCKS), date: at },
      power: { mode: 'MID', ride_tracking: false, airplane: false, recovery: false },
    };
    lines.write(JSON.stringify({ at, mac: macs[index % LOCKS], event: 'ping', source: 'lock', ping }));
  }
  lines.end();
}

/** Two hex digits of a MAC. */
function hex(byte: number): string {
  return byte.toString(16).toUpperCase().padStart(2, '0');
}

/** A run of the command: the bytes of its output, its exit code, and its memory. */
interface Measured {
  readonly bytes: number;
  readonly code: number | null;
  /** The largest resident set that was seen, in MiB. */
  readonly residentMib: number;
}

/** Runs the command, and reads its resident set while it writes. */
async function run(...args: string[]): Promise<Measured> {
  const child = spawn(process.execPath, [path.join(root, 'dist/cli/main.js'), 'trace', 'check', ...args]);
  let [bytes, residentMib] = [0, 0];
  const readResident = async (): Promise<void> => {
    const status = await readFile(`/proc/${child.pid}/status`, 'utf8').catch(() => '');
    residentMib = Math.max(residentMib, Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) / 1024);
  };
  child.stderr.resume();
  for await (const chunk of child.stdout) {
    bytes += (chunk as Buffer).length;
    await readResident();
  }
  const code = child.exitCode ?? (await new Promise<number | null>((resolve) => child.once('exit', resolve)));
  return { bytes, code, residentMib };
}

t.test('half a million findings take bounded memory in every format', async (t) => {
  const file = path.join(folder, 'findings.jsonl');
  writeTrace(file);
  for (const format of ['text', 'json', 'junit', 'github', 'html']) {
    const { bytes, code, residentMib } = await run(file, '--format', format);
    t.equal(code, 1);
    if (format === 'json') t.ok(bytes > MIN_JSON_BYTES, 'all findings were printed');
    t.ok(residentMib < MAX_RESIDENT_MIB, `${format}: ${residentMib.toFixed(0)} MiB, ${(bytes / 1e6).toFixed(0)} MB`);
  }
});
