/** `lockgate webhook deliveries`: prints deliveries as a table, with `--body` also their attempts, or as JSON. */
import { type ConnectionFlags, GatewayClient } from '../../client.js';
import { type GatewayClocks, readSince } from '../../gateway-clocks.js';
import { printEmptyList } from '../../terminal/output.js';
import { type PageFlags, printPages, queryOf } from '../../terminal/paged-list.js';
import type { Column, Mark } from '../../terminal/table.js';
import { agoText, whenText } from '../../terminal/time-text.js';

/** The flags of `lockgate webhook deliveries`. */
export type DeliveryFlags = ConnectionFlags &
  PageFlags & {
    readonly json?: boolean;
    readonly mac?: string;
    readonly url?: string;
    readonly state?: string;
    readonly since?: string;
    readonly until?: string;
    readonly body?: boolean;
  };

/** An attempt to deliver an event. `status` is null without an answer, `error` after a success. */
interface AttemptJson {
  /** From 1. */
  readonly number: number;
  readonly at: string;
  readonly status: number | null;
  readonly duration_ms: number;
  readonly error: string | null;
  /** The beginning of the body that the receiver answered; null if there was none. */
  readonly answer: string | null;
  /** The header that it was sent with (W3C Trace Context). */
  readonly traceparent: string;
}

interface DeliveryJson {
  readonly event_id: string;
  readonly url_id: number;
  readonly mac: string;
  /** `ping`, or the type of another event of the lock. */
  readonly type: string;
  /** The ping's reason, such as `REASON_THEFT`; null for another event, and for a ping that can't be read. */
  readonly reason: string | null;
  readonly received_at: string;
  readonly state: string;
  readonly damaged: boolean;
  /** Null if no further attempt is planned. */
  readonly next_attempt_at: string | null;
  readonly attempts: readonly AttemptJson[];
}

/** The gateway answers with at most this many deliveries. */
const PAGE_DELIVERIES = 500;

/** The mark of each state of a delivery. `kept`: the URL was disabled; `damaged`: the stored ping is corrupt. */
const MARKS: Readonly<Record<string, Mark>> = {
  delivered: 'good',
  pending: 'warn',
  kept: 'warn',
  dead: 'bad',
  damaged: 'bad',
};

/** Prints the matching deliveries. */
export async function listDeliveries(flags: DeliveryFlags): Promise<void> {
  const { mac, url, state, json, body = false } = flags;
  const client = new GatewayClient(flags);
  const since = await readSince(client, ['--since', flags.since], 'runMs');
  const until = await readSince(client, ['--until', flags.until], 'runMs');
  const query = queryOf({ mac, url, state, since, until });
  const list = { path: '/deliveries', query, member: 'deliveries', pageSize: PAGE_DELIVERIES };
  const columns = (_deliveries: readonly DeliveryJson[], clocks: GatewayClocks) => columnsAt(clocks, body);
  const count = await printPages<DeliveryJson>(client, list, flags, json ? undefined : columns);
  if (count > 0 || json) return;
  printEmptyList([mac, url, state, since, until], 'No deliveries match.', 'There is no delivery yet.');
}

/** Pings are received by the run's clock; attempts are made by the machine's. */
function columnsAt({ runMs, machineMs }: GatewayClocks, body: boolean): readonly Column<DeliveryJson>[] {
  return [
    { title: 'STATE', show: ({ state }) => state, mark: ({ state }) => MARKS[state] },
    { title: 'RECEIVED', show: (row) => agoText(row.received_at, runMs) },
    { title: 'MAC', show: ({ mac }) => mac, neverCut: true },
    { title: 'REASON', show: ({ type, reason }) => (type === 'ping' ? (reason ?? 'damaged') : type), optional: true },
    { title: 'URL', show: ({ url_id: id }) => String(id) },
    { title: 'TRIES', show: ({ attempts }) => String(attempts.length) },
    { title: 'LAST ANSWER', show: (row) => outcomeText(row, machineMs), prose: true },
    { title: 'EVENT', show: (row) => row.event_id, below: 'if-narrow' },
    ...(body
      ? [{ title: 'ATTEMPTS', show: (row: DeliveryJson) => attemptLines(row, machineMs), below: 'always' as const }]
      : []),
  ];
}

/** The last attempt, and when the next one is. */
function outcomeText({ attempts, next_attempt_at: next }: DeliveryJson, nowMs: number): string {
  const last = attempts.at(-1);
  const parts = [
    ...(last === undefined ? [] : [answerText(last)]),
    ...(next === null ? [] : [`next ${whenText(next, nowMs)}`]),
  ];
  return parts.join('; ') || '–';
}

function answerText({ status, error, duration_ms: ms }: AttemptJson): string {
  return error ?? `${status ?? 'no answer'} in ${Math.round(ms)} ms`;
}

/** Each attempt of a delivery on a separate line, with the beginning of the answer; last the trace id of them all. */
function attemptLines({ attempts }: DeliveryJson, nowMs: number): string {
  const lines = attempts.map((attempt) => {
    const { number, at, answer } = attempt;
    return `${number}. ${agoText(at, nowMs)}: ${answerText(attempt)}${answer ? `  ${JSON.stringify(answer)}` : ''}`;
  });
  const [, traceId] = attempts[0]?.traceparent.split('-') ?? [];
  return [...lines, ...(traceId === undefined ? [] : [`trace ${traceId}`])].join('\n');
}
