/** The JSON form of a finding of `trace check`, which all reports and `--baseline` use. Pure. */
import { ruleLink } from '../../../../../proto/citations.js';
import { findRule, type RuleName, type Severity } from '../../../../../proto/power/rules.js';
import type { TraceFinding } from '../../../../../proto/trace/findings.js';
import type { OwedCause } from '../../../../../proto/trace/owed/duty.js';
import { FIRST_CREDENTIAL } from '../../../../../proto/trace/trace.js';
import type { Uplink } from '../../../../../proto/wire/ping.js';
import { ackUplinkToJson, formatDate, isDatable, pingUplinkToJson } from '../../../../../proto/wire/ping-json.js';

/** A finding as JSON. Members about an uplink (a message of a lock) are null if the finding is not about one. */
export interface FindingJson {
  readonly line: number;
  readonly mac: string;
  readonly rule: RuleName;
  readonly severity: Severity;
  readonly message: string;
  /** When it was found, by the trace's clock, RFC 3339. */
  readonly at: string | null;
  readonly boot: number | null;
  readonly sequence: number | null;
  /** Left out for the first credential of the trace. */
  readonly credential?: number;
  /** The version that the lock last reported; null if it has not reported any. */
  readonly firmware_version: string | null;
  /** The section that defines the rule. */
  readonly section: string;
  /** Where the rule is described: a path from lockgate's folder, with an anchor. */
  readonly link: string;
  /** The members of the uplink at fault, as in a trace; null if it is no longer in memory, or there is none. */
  readonly values: Readonly<Record<string, unknown>> | null;
  /** For the rule `owed` (an uplink that the lock should have sent): the world event that required the uplink. */
  readonly world?: OwedCause;
}

/** Converts a finding. */
export function findingToJson(finding: TraceFinding): FindingJson {
  const { line, mac, rule, severity, message, atMs, about, sent, firmwareVersion, world } = finding;
  const credential = about?.credential ?? FIRST_CREDENTIAL;
  return {
    ...{ line, mac, rule, severity, message },
    at: isDatable(atMs) ? formatDate(atMs) : null,
    boot: about?.boot ?? null,
    sequence: about?.sequence ?? null,
    ...(credential !== FIRST_CREDENTIAL && { credential }),
    firmware_version: firmwareVersion,
    section: findRule(rule)?.section ?? '',
    link: ruleLink(rule),
    values: sent === null ? null : { source: sent.source, ...uplinkToJson(sent.uplink) },
    ...(world !== undefined && { world }),
  };
}

function uplinkToJson(uplink: Uplink): object {
  const { body } = uplink;
  return body.kind === 'ack' ? ackUplinkToJson({ ...uplink, body }) : pingUplinkToJson({ ...uplink, body });
}
