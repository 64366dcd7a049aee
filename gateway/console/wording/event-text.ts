/**
 * What a line says about an event of the gateway: the command line's `tail` and the page's live screen show the same
 * words. The texts may contain what locks and merchants sent; whoever shows them makes them harmless. Pure.
 */
import { commandText } from './command-text.js';

/** An event as the gateway streams it (gateway/http/operator/json/event.ts). */
export type EventJson = Readonly<Record<string, unknown>>;

/** Whether an event is good or bad news; `lock` for a lock's pings, `command` for commands and their answers. */
export type EventTone = 'good' | 'bad' | 'warn' | 'quiet' | 'lock' | 'command';

/** What a line shows of an event. */
export interface EventText {
  /**
   * Up to five letters: `no` a refusal, `slow` a limit exceeded, `quar` a quarantined uplink (it can't be decoded),
   * `pres` the presence of a lock, `hook` webhooks, `keep` the deletion of expired history.
   */
  readonly label: string;
  readonly tone: EventTone;
  readonly text: string;
}

/**
 * The text of each kind of event, by its name. gateway/events.ts says when each kind happens. Members are cast without
 * a check, since the gateway itself wrote the JSON.
 */
const TEXTS: Readonly<Record<string, (event: EventJson) => EventText>> = {
  connect: ({ source }) => ({ label: 'conn', tone: 'good', text: `${phonePrefix(source)}connected` }),
  disconnect: ({ source, cause }) => {
    return { label: 'conn', tone: 'quiet', text: `${phonePrefix(source)}disconnected (${cause})` };
  },
  ping: (event) => ({ label: 'ping', tone: 'lock', text: pingText(event.ping as EventJson, event) }),
  ack: (event) => {
    const { id, result, detail } = event.ack as EventJson;
    return {
      label: 'ack',
      tone: 'command',
      text: `command ${id}: ${result}${detail === '' || detail === undefined ? '' : ` (${detail})`}`,
    };
  },
  command: (event) => ({ label: 'cmd', tone: 'command', text: commandEventText(event) }),
  'stray-ack': ({ command_id: id, why }) => {
    return { label: 'ack', tone: 'warn', text: `command ${id} acknowledged: ${why}` };
  },
  finding: (event) => {
    const finding = event.finding as EventJson;
    return {
      label: 'judge',
      tone: toneOf(finding),
      text: `${finding.rule}${uplinkText(finding)}: ${finding.message}`,
    };
  },
  presence: (event) => ({
    label: 'pres',
    tone: event.presence === 'late' ? 'bad' : 'quiet',
    text: presenceText(event),
  }),
  quarantined: ({ message }) => ({ label: 'quar', tone: 'warn', text: String(message) }),
  refused: ({ what, why, client_id: id, address }) => {
    return { label: 'no', tone: 'warn', text: `${what} refused: ${why} (${id === '' ? '' : `${id}, `}${address})` };
  },
  budget: ({ state, why }) => ({ label: 'slow', tone: state === 'over' ? 'warn' : 'good', text: String(why) }),
  judging: ({ state, why }) => {
    if (state === 'resumed') return { label: 'judge', tone: 'good', text: 'judged again' };
    return { label: 'judge', tone: 'bad', text: `no longer judged: ${why}` };
  },
  delivery: (event) => ({
    label: 'hook',
    tone: event.outcome === 'delivered' ? 'good' : 'bad',
    text: deliveryText(event),
  }),
  'event-damaged': ({ event_id: id, url_id: url }) => {
    return { label: 'hook', tone: 'bad', text: `URL ${url}: ${id} is not sent, its stored ping is damaged` };
  },
  'url-disabled': ({ url_id: id, why }) => ({ label: 'hook', tone: 'bad', text: `URL ${id} disabled: ${why}` }),
  'url-changed': ({ url_id: id, state }) => ({ label: 'hook', tone: 'quiet', text: `URL ${id} was changed: ${state}` }),
  circuit: ({ url_id: id, state, why }) => {
    const tone = state === 'closed' ? 'good' : 'bad';
    return { label: 'hook', tone, text: `URL ${id}: circuit ${state} (${why})` };
  },
  backlog: ({ url_id: id, state, why }) => {
    const text = state === 'behind' ? 'is far behind' : 'has caught up';
    return { label: 'hook', tone: state === 'behind' ? 'bad' : 'good', text: `URL ${id} ${text}: ${why}` };
  },
  'cannot-send': ({ state, why }) => {
    const text = state === 'began' ? `webhooks can't be sent: ${why}` : `webhooks: ${why}`;
    return { label: 'hook', tone: state === 'began' ? 'bad' : 'good', text };
  },
  'cannot-record': ({ url_id: id, state, why }) => {
    const text =
      state === 'began' ? `the outcome of a delivery can't be recorded (${why})` : 'outcomes are recorded again';
    return { label: 'hook', tone: state === 'began' ? 'bad' : 'good', text: `URL ${id}: ${text}` };
  },
  swept: ({ before, uplinks, others, held }) => {
    const waiting = held === 0 ? '' : `; ${held} older events wait for their webhook`;
    return {
      label: 'keep',
      tone: 'quiet',
      text: `${uplinks} uplinks and ${others} other rows before ${before} deleted${waiting}`,
    };
  },
  'store-failed': ({ why }) => ({ label: 'store', tone: 'bad', text: String(why) }),
  'store-broken': ({ why }) => ({ label: 'store', tone: 'bad', text: String(why) }),
  degraded: ({ why }) => ({ label: 'ready', tone: 'bad', text: `not ready: ${why}` }),
  recovered: ({ reason, lasted_ms: ms }) => {
    return { label: 'ready', tone: 'good', text: `${reason}: recovered after ${Number(ms) / 1000} s` };
  },
  clock: ({ state, why }) => ({ label: 'clock', tone: state === 'agrees' ? 'good' : 'bad', text: String(why) }),
  'statement-closed': ({ merchant, month }) => {
    return { label: 'usage', tone: 'good', text: `${month} closed for ${merchant}` };
  },
  descriptors: ({ state, why }) => {
    return { label: 'files', tone: state === 'enough' ? 'good' : 'bad', text: String(why) };
  },
  notices: ({ noted, unread }) => {
    return { label: 'note', tone: 'warn', text: `new: ${noted}; ${unread} unread: lockgate notices` };
  },
  'notify-url': ({ merchant, state, why }) => {
    const whose = merchant === null ? 'the operators’ notify URL' : `the notify URL of ${merchant}`;
    const text = state === 'failing' ? `${whose} fails: ${why}` : `${whose} works again`;
    return { label: 'note', tone: state === 'failing' ? 'bad' : 'good', text };
  },
  audited: ({ actor, os_user: osUser, merchant, user, key, action, object, outcome, code }) => {
    const name = user ?? key ?? osUser ?? null;
    const who = `${actor}${name === null ? '' : ` ${name}`}${merchant ? ` of ${merchant}` : ''}`;
    const why = code === null ? '' : ` (${code})`;
    const text = `${action} ${object === '' ? '' : `${object} `}${outcome}${why}, by ${who}`;
    return { label: 'audit', tone: outcome === 'done' ? 'quiet' : 'warn', text };
  },
  'state-rebuilt': (event) => ({ label: 'store', tone: 'bad', text: rebuiltText(event) }),
};

/** `phone ` before an event of a merchant's phone, which sends pings in place of the lock; empty for a lock's own. */
function phonePrefix(source: unknown): string {
  return source === 'phone' ? 'phone ' : '';
}

function commandEventText({ command, state, sent_count: count }: EventJson): string {
  const { id, type, ...parameters } = command as EventJson;
  // A command is sent again until the lock acknowledges it.
  const again = state === 'sent' && Number(count) > 1 ? `, attempt ${count}` : '';
  const how = state === undefined ? '' : `: ${state}`;
  return `command ${id} ${commandText({ type: String(type), parameters })}${how}${again}`;
}

function toneOf(finding: EventJson): EventTone {
  return finding.severity === 'violation' ? 'bad' : 'warn';
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
export function timeOf(date: string): string {
  return date.slice(11, 19);
}

/** The kinds of events, by name. */
export const EVENT_KINDS: readonly string[] = Object.keys(TEXTS);

/** The text of an event; its JSON for a kind that this build does not know. */
export function eventText(event: EventJson): EventText {
  return TEXTS[String(event.event)]?.(event) ?? { label: '?', tone: 'quiet', text: JSON.stringify(event) };
}

/** An event, and its findings as events of their own. */
export function withFindings(event: EventJson): readonly EventJson[] {
  const findings = Array.isArray(event.findings) ? (event.findings as EventJson[]) : [];
  const { at, mac } = event;
  return [event, ...findings.map((finding) => ({ at, mac, event: 'finding', finding }))];
}
