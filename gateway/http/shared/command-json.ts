/** The JSON form of a command, which the operators' and the merchants' interface share. Pure. */
import { commandToJson } from '../../../proto/trace/writer.js';
import { formatMac } from '../../../proto/wire/mac.js';
import { formatDate } from '../../../proto/wire/ping-json.js';
import type { Wait } from '../../commands/command-wait.js';
import type { CommandRecord } from '../../store/contract/command-record.js';

/**
 * Returns a command with its state, and what the command waits for. Times are by the run's clock, the time of locks,
 * which a simulation may let run faster than the wall clock.
 */
export function commandRecordJson(record: CommandRecord, wait: Wait | null): Readonly<Record<string, unknown>> {
  const { type, ...parameters } = commandToJson(record.command);
  return {
    id: record.id,
    mac: formatMac(record.mac),
    type,
    parameters,
    state: record.state,
    detail: record.detail,
    waits: wait === null ? null : waitJson(wait),
    asked_by: record.askedBy,
    created_at: formatDate(record.createdAtMs),
    not_before: dateOrNull(record.notBeforeMs),
    expires_at: formatDate(record.expiresAtMs),
    first_sent_at: dateOrNull(record.firstSentAtMs),
    last_sent_at: dateOrNull(record.lastSentAtMs),
    sent_count: record.sentCount,
    finished_at: dateOrNull(record.finishedAtMs),
  };
}

function waitJson({ for: reason, text, dueMs }: Wait): object {
  return { for: reason, text, due_at: dueMs === undefined ? null : formatDate(dueMs) };
}

function dateOrNull(timeMs: number | null): string | null {
  return timeMs === null ? null : formatDate(timeMs);
}
