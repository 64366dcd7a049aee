/** Counts findings by rule, lock and firmware, for the summary of a report. Pure. */
import { RULES, type RuleName, type Severity } from '../../../../../proto/power/rules.js';
import type { FileReport } from '../checked-file.js';

/** A broken rule, with the numbers of its findings and locks, and its findings by firmware. */
export interface SummaryRow {
  readonly rule: RuleName;
  readonly severity: Severity;
  readonly findings: number;
  /** How many locks broke the rule. */
  readonly locks: number;
  /** Findings by the firmware version that the lock had reported, most first. */
  readonly firmware: ReadonlyMap<string, number>;
}

/** The rules that were broken, in the order of the table of rules. */
export function summarize(files: readonly FileReport[]): SummaryRow[] {
  const locks = new Map<string, Set<string>>();
  const firmware = new Map<string, Map<string, number>>();
  for (const { findings } of files) {
    for (const { rule, mac, firmware: version } of findings.countedFindings()) {
      getOrAdd(locks, rule, () => new Set<string>()).add(mac);
      const byVersion = getOrAdd(firmware, rule, () => new Map<string, number>());
      byVersion.set(version, (byVersion.get(version) ?? 0) + 1);
    }
  }
  return RULES.filter(({ rule }) => firmware.has(rule)).map(({ rule, severity }) => {
    const byVersion = [...(firmware.get(rule) ?? [])].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
    const findings = byVersion.reduce((sum, [, count]) => sum + count, 0);
    return { rule, severity, findings, locks: locks.get(rule)?.size ?? 0, firmware: new Map(byVersion) };
  });
}

function getOrAdd<V>(map: Map<string, V>, key: string, makeValue: () => V): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const added = makeValue();
  map.set(key, added);
  return added;
}
