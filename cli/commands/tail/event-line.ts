/**
 * Formats each event of a gateway as one line, for `tail`, the demo and the simulator's shell. Pure.
 */

import { paint, type Style, sanitizeLine } from '../../terminal/output.js';
import { cutToWidth } from '../../terminal/text-width.js';
import { commandText } from '../command/listing.js';

/** An event, as the operator interface streams it. */
export type EventJson = Readonly<Record<string, unknown>>;

/**
 * Labels have up to five letters: `no` a refusal, `slow` a limit exceeded, `quar` a quarantined uplink (it can't be
 * decoded), `pres` the presence of a lock, `hook` webhooks, `keep` the deletion of expired history.
 */
const LABEL_WIDTH = 5;

/** The parts of a line: a label of up to {@link LABEL_WIDTH} letters, its style, and the text. */
interface LineParts {
  readonly label: string;
  readonly style: Style;
  readonly text: string;
}

/** The label, style and text of each kind of event, by its name. */
const LINE_PARTS: Readonly<Record<string, (event: EventJson) => LineParts>> = {
  connect: ({ source }) => ({ label: 'conn', style: 'green', text: `${phonePrefix(source)}connected` }),
  disconnect: ({ source, cause }) => {
    return { label: 'conn', style: 'dim', text: `${phonePrefix(source)}disconnected (${cause})` };
  },
  ping: (event) => ({ label: 'ping', style: 'cyan', text: pingText(event.ping as EventJson, event) }),
  ack: (event) => {
    const { id, result, detail } = event.ack as EventJson;
    return {
      label: 'ack',
      style: 'blue',
      text: `command ${id}: ${result}${detail === '' || detail === undefined ? '' : ` (${detail})`}`,
    };
  },
  command: (event) => ({ label: 'cmd', style: 'blue', text: commandEventText(event) }),
  'stray-ack': ({ command_id: id, why }) => {
    return { label: 'ack', style: 'yellow', text: `command ${id} acknowledged: ${why}` };
  },
  finding: (event) => {
    const finding = event.finding as EventJson;
    return {
      label: 'judge',
      style: styleOf(finding),
      text: `${finding.rule}${uplinkText(finding)}: ${finding.message}`,
    };
  },
  presence: (event) => ({ label: 'pres', style: event.presence === 'late' ? 'red' : 'dim', text: presenceText(event) }),
  quarantined: ({ message }) => ({ label: 'quar', style: 'yellow', text: String(message) }),
  refused: ({ what, why, client_id: id, address }) => {
    return { label: 'no', style: 'yellow', text: `${what} refused: ${why} (${id === '' ? '' : `${id}, `}${address})` };
  },
  budget: ({ state, why }) => ({ label: 'slow', style: state === 'over' ? 'yellow' : 'green', text: String(why) }),
  judging: ({ state, why }) => {
    if (state === 'resumed') return { label: 'judge', style: 'green', text: 'judged again' };
    return { label: 'judge', style: 'red', text: `no longer judged: ${why}` };
  },
  delivery: (event) => ({
    label: 'hook',
    style: event.outcome === 'delivered' ? 'green' : 'red',
    text: deliveryText(event),
  }),
  'event-damaged': ({ event_id: id, url_id: url }) => {
    return { label: 'hook', style: 'red', text: `URL ${url}: ${id} is not sent, its stored ping is damaged` };
  },
  'url-disabled': ({ url_id: id, why }) => ({ label: 'hook', style: 'red', text: `URL ${id} disabled: ${why}` }),
  'url-changed': ({ url_id: id, state }) => ({ label: 'hook', style: 'dim', text: `URL ${id} was changed: ${state}` }),
  circuit: ({ url_id: id, state, why }) => {
    const style = state === 'closed' ? 'green' : 'red';
    return { label: 'hook', style, text: `URL ${id}: circuit ${state} (${why})` };
  },
  backlog: ({ url_id: id, state, why }) => {
    const text = state === 'behind' ? 'is far behind' : 'has caught up';
    return { label: 'hook', style: state === 'behind' ? 'red' : 'green', text: `URL ${id} ${text}: ${why}` };
  },
  'cannot-send': ({ state, why }) => {
    const text = state === 'began' ? `webhooks can't be sent: ${why}` : `webhooks: ${why}`;
    return { label: 'hook', style: state === 'began' ? 'red' : 'green', text };
  },
  'cannot-record': ({ url_id: id, state, why }) => {
    const text =
      state === 'began' ? `the outcome of a delivery can't be recorded (${why})` : 'outcomes are recorded again';
    return { label: 'hook', style: state === 'began' ? 'red' : 'green', text: `URL ${id}: ${text}` };
  },
  swept: ({ before, uplinks, others, held }) => {
    const waiting = held === 0 ? '' : `; ${held} older events wait for their webhook`;
    return {
      label: 'keep',
      style: 'dim',
      text: `${uplinks} uplinks and ${others} other rows before ${before} deleted${waiting}`,
    };
  },
  'store-failed': ({ why }) => ({ label: 'store', style: 'red', text: String(why) }),
  'store-broken': ({ why }) => ({ label: 'store', style: 'red', text: String(why) }),
  degraded: ({ why }) => ({ label: 'ready', style: 'red', text: `not ready: ${why}` }),
  recovered: ({ reason, lasted_ms: ms }) => {
    return { label: 'ready', style: 'green', text: `${reason}: recovered after ${Number(ms) / 1000} s` };
  },
  clock: ({ state, why }) => ({ label: 'clock', style: state === 'agrees' ? 'green' : 'red', text: String(why) }),
  'statement-closed': ({ merchant, month }) => {
    return { label: 'usage', style: 'green', text: `${month} closed for ${merchant}` };
  },
  descriptors: ({ state, why }) => {
    return { label: 'files', style: state === 'enough' ? 'green' : 'red', text: String(why) };
  },
  notices: ({ noted, unread }) => {
    return { label: 'note', style: 'yellow', text: `new: ${noted}; ${unread} unread: lockgate notices` };
  },
  'notify-url': ({ merchant, state, why }) => {
    const whose = merchant === null ? 'the operators’ notify URL' : `the notify URL of ${merchant}`;
    const text = state === 'failing' ? `${whose} fails: ${why}` : `${whose} works again`;
    return { label: 'note', style: state === 'failing' ? 'red' : 'green', text };
  },
  audited: ({ actor, os_user: osUser, merchant, user, key, action, object, outcome, code }) => {
    const name = user ?? key ?? osUser ?? null;
    const who = `${actor}${name === null ? '' : ` ${name}`}${merchant ? ` of ${merchant}` : ''}`;
    const why = code === null ? '' : ` (${code})`;
    const text = `${action} ${object === '' ? '' : `${object} `}${outcome}${why}, by ${who}`;
    return { label: 'audit', style: outcome === 'done' ? 'dim' : 'yellow', text };
  },
  'state-rebuilt': (event) => ({ label: 'store', style: 'red', text: rebuiltText(event) }),
};

/** A prefix for events of phones. */
function phonePrefix(source: unknown): string {
  return source === 'phone' ? 'phone ' : '';
}

function commandEventText({ command, state, sent_count: count }: EventJson): string {
  const { id, type, ...parameters } = command as EventJson;
  // A command is sent again until the lock acknowledges it.
  const again = state === 'sent' && Number(count) > 1 ? `, for the ${count}. time` : '';
  const how = state === undefined ? '' : `: ${state}`;
  return `command ${id} ${commandText({ type: String(type), parameters })}${how}${again}`;
}

function styleOf(finding: EventJson): Style {
  return finding.severity === 'violation' ? 'red' : 'yellow';
}

/** The uplink of a finding, for `lockgate why MAC 41/12`; the event does not have the finding's id. */
function uplinkText({ uplink }: EventJson): string {
  if (typeof uplink !== 'object' || uplink === null) return '';
  const { boot, sequence } = uplink as EventJson;
  return ` ${boot}/${sequence}`;
}

/** Month, day and time of an RFC 3339 date, UTC. */
function dayAndTimeOf(date: string): string {
  return `${date.slice(5, 10)} ${date.slice(11, 16)}`;
}

/** A lock's presence, such as `asleep, due 11-21 06:30`. */
export function presenceText({ presence, since, due, rule }: EventJson): string {
  if (presence === 'late') return `late since ${dayAndTimeOf(String(since))} (${rule})`;
  if (presence === 'asleep') return due === null ? 'asleep' : `asleep, due ${dayAndTimeOf(String(due))}`;
  return String(presence);
}

/** Why a lock's stored state was unusable, and what happened to it. */
export function rebuiltText({ why, from }: { readonly why?: unknown; readonly from?: unknown }): string {
  const result = from === 'log' ? 'it was rebuilt from the log' : 'the lock’s state is unknown now';
  return `${why}; ${result}`;
}

/** Short names of the ping types. */
const PING_NAMES: Readonly<Record<string, string>> = { cellular: 'cell', gps: 'gps', close_connection: 'close' };

function pingText(ping: EventJson, event: EventJson): string {
  const parts = [PING_NAMES[String(ping.ping_type)] ?? ping.ping_type, ping.reason, ping.lock_state];
  parts.push(`${ping.battery_percent}%`);
  if (ping.latitude !== undefined)
    parts.push(`${degreesText(ping.latitude)},${degreesText(ping.longitude)} ±${ping.uncertainty}m`);
  if (ping.speed !== undefined && ping.speed !== 0) parts.push(`${ping.speed} m/s`);
  if (event.source === 'phone' && ping.reason !== 'PHONE') parts.push('(from a phone)');
  if (event.repeated === true) parts.push('(again)');
  else if (event.buffered === true) parts.push('(late)');
  return parts.join(' ');
}

function degreesText(degrees: unknown): string {
  return typeof degrees === 'number' ? degrees.toFixed(5) : String(degrees);
}

function deliveryText({
  outcome,
  status,
  attempt,
  url_id: url,
  duration_ms: ms,
  error,
  next_attempt_at,
}: EventJson): string {
  if (outcome === 'delivered')
    return `delivered to URL ${url}: ${status} in ${ms} ms${attempt === 1 ? '' : `, attempt ${attempt}`}`;
  const next = outcome === 'dead' ? 'given up' : `next at ${timeOf(String(next_attempt_at))}`;
  return `URL ${url}, attempt ${attempt}: ${error}; ${next}`;
}

/** The time of day of an RFC 3339 date, UTC. */
function timeOf(date: string): string {
  return date.slice(11, 19);
}

/** The lines of an event: one for the event, and one for each of its findings; cut to `width`, if given. */
export function eventLines(event: EventJson, width?: number, hasMac = true): string[] {
  const findings = Array.isArray(event.findings) ? (event.findings as EventJson[]) : [];
  const { at, mac } = event;
  return [event, ...findings.map((finding) => ({ at, mac, event: 'finding', finding }))].map((each) =>
    eventLine(each, width, hasMac),
  );
}

/**
 * The line with the bytes of an uplink in hex, for `ping decode`; undefined if the event has none. It is never cut,
 * because a part of the bytes can't be decoded.
 */
export function hexLine(event: EventJson): string | undefined {
  if (typeof event.raw !== 'string') return undefined;
  const hex = Buffer.from(event.raw, 'base64').toString('hex');
  return `${timeAndMac(event, true)}${paint('dim', 'hex'.padEnd(LABEL_WIDTH))} ${hex}`;
}

/** The time and, with `hasMac`, the lock. */
function timeAndMac({ at, mac }: EventJson, hasMac: boolean): string {
  return `${timeOf(String(at))} ${hasMac ? `${(typeof mac === 'string' ? mac : '').padEnd(17)} ` : ''}`;
}

/** The line of an event, cut to `width`, if given. `hasMac` says whether the line has the MAC. */
export function eventLine(event: EventJson, width?: number, hasMac = true): string {
  const { label, style, text } = LINE_PARTS[String(event.event)]?.(event) ?? {
    label: '?',
    style: 'dim' as const,
    text: JSON.stringify(event),
  };
  const head = timeAndMac(event, hasMac);
  const room = width === undefined ? Number.POSITIVE_INFINITY : width - head.length - LABEL_WIDTH - 1;
  return `${head}${paint(style, label.padEnd(LABEL_WIDTH))} ${cutToWidth(sanitizeLine(text), room)}`;
}
