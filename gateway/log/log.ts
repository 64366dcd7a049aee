/**
 * Writes the log for operators: JSON, one object per line (pino). It listens to the gateway's events, so no part calls
 * it.
 *
 * No line may contain a payload, a header's value, a URL or a secret; in addition each line is scrubbed.
 */
import { type Logger, pino } from 'pino';
import { type Clock, Seconds } from '../../proto/clock.js';
import { formatMac } from '../../proto/wire/mac.js';
import type { LogLevel } from '../config.js';
import type { GatewayEventMap, GatewayEvents } from '../events.js';
import { LogLimit } from './log-limit.js';
import { scrubSecrets } from './log-scrub.js';

/** A commit that takes this long is logged: locks wait for it. */
const MIN_SLOW_COMMIT = Seconds(1);

/** Members that are censored, in case an object with them is passed by mistake. */
const SECRET_MEMBERS = ['authorization', 'password', 'secret', 'secrets', 'token', 'headers', 'access_token'];

/** Makes a log that passes each line, with its line break, to `write`. Times are wall-clock time. */
export function makeLog(level: LogLevel, write: (line: string) => void): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: SECRET_MEMBERS.flatMap((member) => [member, `*.${member}`]), censor: '[secret]' },
    },
    { write: (line: string) => write(scrubSecrets(line)) },
  );
}

type EventName = keyof GatewayEventMap;
type Event<N extends EventName> = GatewayEventMap[N][0];

interface Listeners {
  /** Calls `write` with each event of this name. */
  onEach<N extends EventName>(name: N, write: (event: Event<N>) => void): void;
  /** The same, rate-limited, for events that strangers can cause; only for events for which `isLogged` returns true. */
  onLimited<N extends EventName>(
    name: N,
    write: (event: Event<N>) => void,
    isLogged?: (event: Event<N>) => boolean,
  ): void;
}

/** Logs the gateway's events until the returned function is called. `clock` is the wall clock. */
export function logEvents(log: Logger, events: GatewayEvents, clock: Clock): () => void {
  const removers: (() => void)[] = [];
  const onEach: Listeners['onEach'] = (name, write) => {
    // TypeScript does not see that `write` takes the event of this very name.
    events.on(name, write as never);
    removers.push(() => void events.off(name, write as never));
  };
  const onLimited: Listeners['onLimited'] = (name, write, isLogged = () => true) => {
    const limit = new LogLimit(clock, (count) => log.warn({ event: name, left_out: count }, `${count} more, left out`));
    onEach(name, (event) => {
      if (isLogged(event) && limit.take()) write(event);
    });
    removers.push(() => limit.end());
  };
  logConnections(log, { onEach, onLimited });
  logDeliveries(log, { onEach, onLimited });
  logOwnFailures(log, { onEach, onLimited });
  logStore(log, { onEach, onLimited });
  logRequests(log, { onEach, onLimited });
  logAudit(log, { onEach, onLimited });
  return () => {
    for (const remove of removers) remove();
  };
}

function logConnections(log: Logger, { onEach, onLimited }: Listeners): void {
  onEach('connected', ({ mac, source }) => log.debug({ event: 'connect', mac: formatMac(mac), source }, 'connected'));
  onEach('disconnected', ({ mac, source, cause }) =>
    log.debug({ event: 'disconnect', mac: formatMac(mac), source, cause }, 'disconnected'),
  );
  onLimited('refused', ({ mac, what, clientId, address, why }) => {
    const macMember = mac === null ? {} : { mac: formatMac(mac) };
    log.warn({ event: 'refused', ...macMember, what, client_id: clientId, address, why }, `${what} refused`);
  });
  onLimited('budget', ({ mac, source, state, why }) => {
    const members = { event: 'budget', mac: formatMac(mac), source, state, why };
    if (state === 'over') log.warn(members, 'over its budget of uplinks');
    else log.info(members, 'within its budget of uplinks again');
  });
  onLimited('quarantined', ({ mac, code, message, bytes }) =>
    log.warn(
      { event: 'quarantined', mac: formatMac(mac), code, why: message, bytes: bytes.length },
      'uplink quarantined',
    ),
  );
}

/** A request is logged by route, status and id, never with its URL, which may contain a password. */
function logRequests(log: Logger, { onEach, onLimited }: Listeners): void {
  const members = ({ requestId, method, route, status, durationMs }: Event<'request'>) => {
    return { event: 'request', request_id: requestId, method, route, status, duration_ms: Math.round(durationMs) };
  };
  onEach('request', (event) => log.debug(members(event), 'request answered'));
  onLimited(
    'request',
    (event) => log.error({ ...members(event), why: event.why }, 'a request failed because of an internal error'),
    ({ status, why }) => status === 500 || why !== undefined,
  );
  onLimited('tile-failed', ({ why }) => log.warn({ event: 'tile-failed', why }, 'the map lacks a tile'));
}

/** Logs audit entries too, for operators who need them for longer than the store retains them. */
function logAudit(log: Logger, { onEach }: Listeners): void {
  // Each line has its own time, so the entry's is left out.
  onEach('audited', ({ atMs: _at, osUser, merchant, user, key, action, outcome, ...members }) => {
    const names = { merchant: merchant ?? undefined, user: user ?? undefined, key: key ?? undefined };
    log.info({ event: 'audited', ...members, os_user: osUser, ...names, action, outcome }, `${action} ${outcome}`);
  });
}

function logDeliveries(log: Logger, { onEach, onLimited }: Listeners): void {
  onLimited(
    'delivery',
    ({ urlId, eventId, number, status, error }) =>
      log.warn({ event: 'delivery', url_id: urlId, event_id: eventId, attempts: number, status, error }, 'given up'),
    ({ outcome }) => outcome === 'dead',
  );
  onLimited('event-damaged', ({ mac, eventId, urlId }) =>
    log.error(
      { event: 'event-damaged', mac: formatMac(mac), event_id: eventId, url_id: urlId },
      'an event is not sent: its stored ping is damaged',
    ),
  );
  onEach('url-disabled', ({ urlId, why }) =>
    log.warn({ event: 'url-disabled', url_id: urlId, why }, 'webhook URL disabled'),
  );
  onEach('circuit', ({ urlId, state, why }) => {
    const members = { event: 'circuit', url_id: urlId, state, why };
    if (state === 'opened') log.warn(members, 'a webhook URL fails and gets only probes');
    else log.info(members, 'a webhook URL takes events again');
  });
  onEach('backlog', ({ urlId, state, why }) => {
    const members = { event: 'backlog', url_id: urlId, state, why };
    if (state === 'behind') log.warn(members, 'a webhook URL is far behind');
    else log.info(members, 'a webhook URL has caught up');
  });
}

/** Failures of the gateway itself to send webhooks or to record their outcomes. */
function logOwnFailures(log: Logger, { onLimited }: Listeners): void {
  onLimited('cannot-send', ({ what, state, why }) => {
    const members = { event: 'cannot-send', what, state, why };
    if (state === 'began') log.error(members, 'webhooks can’t be sent, because of a problem of this machine');
    else log.info(members, 'webhooks are sent again');
  });
  onLimited('notify-url', ({ merchant, state, why }) => {
    const members = { event: 'notify-url', merchant: merchant?.name ?? null, state, why };
    if (state === 'failing') log.warn(members, 'a notify URL fails: notifications wait for their retries');
    else log.info(members, 'a notify URL works again');
  });
  onLimited('cannot-record', ({ urlId, state, why }) => {
    const members = { event: 'cannot-record', url_id: urlId, state, why };
    if (state === 'began') log.error(members, 'the outcome of a delivery can’t be stored: it is set aside');
    else log.info(members, 'the outcomes of deliveries are stored again');
  });
}

function logStore(log: Logger, { onEach, onLimited }: Listeners): void {
  onLimited('store-failed', ({ why }) => log.error({ event: 'store-failed', why }, 'the store failed'));
  onEach('state-rebuilt', ({ mac, why, from }) =>
    log.error({ event: 'state-rebuilt', mac: formatMac(mac), why, from }, 'a lock’s stored state was damaged'),
  );
  onEach('clock', ({ state, why }) => {
    if (state === 'agrees') log.info({ event: 'clock', state, why }, 'the machine’s clock is trusted');
    else log.error({ event: 'clock', state, why }, 'the machine’s clock is not trusted');
  });
  onEach('judging', ({ mac, state, why }) => {
    const members = { event: 'judging', mac: formatMac(mac), state, why };
    if (state === 'stopped') log.error(members, 'a lock is not judged any more: the judge failed');
    else log.info(members, 'a lock is judged again');
  });
  onEach('catching-up', ({ done, of }) =>
    log.info(
      { event: 'catching-up', done, of },
      `an older store is being upgraded: ${Math.floor((done / of) * 100)} %`,
    ),
  );
  onEach('files-mended', ({ what }) => log.warn({ event: 'files-mended' }, what));
  onEach('store-warning', ({ what }) => log.warn({ event: 'store-warning' }, what));
  onEach('store-broken', ({ why }) => log.fatal({ event: 'store-broken', why }, 'the store is broken'));
  onEach('descriptors', ({ state, limit, why }) => {
    if (state === 'enough') log.info({ event: 'descriptors', state, limit }, why);
    else log.warn({ event: 'descriptors', state, limit }, why);
  });
  onEach('degraded', ({ reason, why }) => log.error({ event: 'degraded', reason, why }, 'not ready'));
  onEach('recovered', ({ reason, lastedMs }) =>
    log.info({ event: 'recovered', reason, lasted_ms: Math.round(lastedMs) }, 'this reason is gone'),
  );
  onLimited(
    'commit',
    ({ what, durationMs, rows }) =>
      log.warn({ event: 'slow-commit', what, duration_ms: Math.round(durationMs), rows }, 'a commit was slow'),
    ({ durationMs }) => durationMs >= MIN_SLOW_COMMIT,
  );
}
