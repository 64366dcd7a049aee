/**
 * Known findings (`--baseline`): reads a JSON file such as `trace check --json` prints, and decides whether a finding
 * is in the file. Findings are compared by rule, lock and the numbers of the uplink (message of the lock): its boot and
 * sequence, and which of the lock's credentials sent it. So they are also recognised in a longer trace. A finding that
 * is not about an uplink, or is listed without these numbers, is compared by its line.
 */
import { readFileSync, statSync } from 'node:fs';
import { LockgateError } from '../../../../../proto/errors.js';
import { isObject } from '../../../../../proto/json-reader.js';
import { findRule } from '../../../../../proto/power/rules.js';
import type { TraceFinding } from '../../../../../proto/trace/findings.js';
import { FIRST_CREDENTIAL } from '../../../../../proto/trace/trace.js';
import { formatMac, parseMac } from '../../../../../proto/wire/mac.js';

/** A baseline is read into memory at once. It has some 500 bytes per finding. */
const MAX_BASELINE_BYTES = 512 * 1024 * 1024;

const EXPECTED = 'expected the output of "lockgate trace check --json"';

/** The known findings of a file. */
export class Baseline {
  readonly #keys = new Set<string>();

  /** The number of known findings. */
  get size(): number {
    return this.#keys.size;
  }

  /** Adds a finding from the file's JSON. Returns what is wrong with it, or undefined. */
  add(json: unknown): string | undefined {
    if (!isObject(json)) return 'is not an object';
    const { rule, mac, line, boot, sequence, credential } = json;
    if (typeof rule !== 'string' || findRule(rule) === undefined) return `has an unknown rule ${JSON.stringify(rule)}`;
    const parsed = parseMac(typeof mac === 'string' ? mac : '');
    if (!parsed.ok) return `has no MAC`;
    const lock = formatMac(parsed.value);
    if (typeof boot === 'number' && typeof sequence === 'number')
      this.#keys.add(uplinkKey(rule, lock, Number(credential ?? FIRST_CREDENTIAL), boot, sequence));
    else if (typeof line === 'number') this.#keys.add(lineKey(rule, lock, line));
    else return 'has neither boot and sequence nor a line';
    return undefined;
  }

  /** Whether the finding is known. */
  has({ rule, mac, line, about }: TraceFinding): boolean {
    if (about === null) return this.#keys.has(lineKey(rule, mac, line));
    if (this.#keys.has(uplinkKey(rule, mac, about.credential, about.boot, about.sequence))) return true;
    return this.#keys.has(lineKey(rule, mac, line));
  }
}

function uplinkKey(rule: string, mac: string, credential: number, boot: number, sequence: number): string {
  return `${rule} ${mac} ${credential}/${boot}/${sequence}`;
}

function lineKey(rule: string, mac: string, line: number): string {
  return `${rule} ${mac} line ${line}`;
}

/**
 * Reads a baseline: what `--json` prints, a list of such findings, or an object with `findings`.
 *
 * @throws LockgateError `input-baseline` if the file can't be read or is something else
 */
export function readBaseline(file: string): Baseline {
  const baseline = new Baseline();
  let index = 0;
  for (const finding of findingsOf(parse(file), file)) {
    const fault = baseline.add(finding);
    if (fault !== undefined)
      throw new LockgateError('input-baseline', `${file}: finding ${index} ${fault}: ${EXPECTED}`);
    index += 1;
  }
  return baseline;
}

function parse(file: string): unknown {
  let text: string;
  try {
    if (statSync(file).size > MAX_BASELINE_BYTES)
      throw new Error(`it is larger than ${MAX_BASELINE_BYTES.toLocaleString('en-US')} bytes`);
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new LockgateError('input-baseline', `the baseline ${file} can't be read: ${(error as Error).message}`);
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new LockgateError('input-baseline', `${file} is not JSON (${(error as Error).message}): ${EXPECTED}`);
  }
}

function findingsOf(json: unknown, file: string): readonly unknown[] {
  if (Array.isArray(json)) return json;
  if (isObject(json) && Array.isArray(json.findings)) return json.findings;
  if (isObject(json) && Array.isArray(json.files))
    return json.files.flatMap((report) => (isObject(report) && Array.isArray(report.findings) ? report.findings : []));
  throw new LockgateError('input-baseline', `${file} has no findings: ${EXPECTED}`);
}
