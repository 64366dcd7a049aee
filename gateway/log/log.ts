/**
 * The log: JSON, one object per line (pino), for operators. It listens to the gateway's events, so no part calls it.
 *
 * No line contains a payload, a header's value, a URL or a secret; as a last line of defence each line is scrubbed too.
 */
import { type Logger, pino } from 'pino';
import { type Clock, Seconds } from '../../proto/clock.js';
import { formatMac } from '../../proto/wire/mac.js';
import type { LogLevel } from '../config.js';
import type { GatewayEventMap, GatewayEvents } from '../events.js';
import { LogLimit } from './log-limit.js';
import { scrubSecrets } from './log-scrub.js';

/** A slower commit is logged: locks wait for it. */
const SLOW_COMMIT = Seconds(1);

/** Members that are never logged, should an object with them be passed by mistake. */
const SECRET_MEMBERS = ['authorization', 'password', 'secret', 'secrets', 'token', 'headers', 'access_token'];

/** A log that passes each line, with its line break, to `write`. Times are wall-clock time. */
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

type Name = keyof GatewayEventMap;
type Event<N extends Name> = GatewayEventMap[N][0];

interface Listening {
  /** Calls `write` with each event of this name. */
  each<N extends Name>(name: N, write: (event: Event<N>) => void): void;
  /** The same, rate-limited, for events that strangers can cause; only those for which `fits` is true. */
  some<N extends Name>(name: N, write: (event: Event<N>) => void, fits?: (event: Event<N>) => boolean): void;
}

/** Logs the gateway's events until the returned function is called. `clock` is the wall clock. */
export function logEvents(log: Logger, events: GatewayEvents, clock: Clock): () => void {
  const ends: (() => void)[] = [];
  const each: Listening['each'] = (name, write) => {
    events.on(name, write as never);
    ends.push(() => void events.off(name, write as never));
  };
  const some: Listening['some'] = (name, write, fits = () => true) => {
    const limit = new LogLimit(clock, (count) =>
      log.warn({ event: name, left_out: count }, `${count} more, not written down`),
    );
    each(name, (event) => {
      if (fits(event) && limit.take()) write(event);
    });
    ends.push(() => limit.end());
  };
  logConnections(log, { each, some });
  logDeliveries(log, { each, some });
  logHindrances(log, { each, some });
  logStore(log, { each, some });
  logRequests(log, { each, some });
  logAudit(log, { each, some });
  return () => {
    for (const end of ends) end();
  };
}

function logConnections(log: Logger, { each, some }: Listening): void {
  each('connected', ({ mac, source }) => log.debug({ event: 'connect', mac: formatMac(mac), source }, 'connected'));
  each('disconnected', ({ mac, source, cause }) =>
    log.debug({ event: 'disconnect', mac: formatMac(mac), source, cause }, 'disconnected'),
  );
  some('refused', ({ mac, what, clientId, address, why }) => {
    const lock = mac === null ? {} : { mac: formatMac(mac) };
    log.warn({ event: 'refused', ...lock, what, client_id: clientId, address, why }, `${what} refused`);
  });
  some('budget', ({ mac, source, state, why }) => {
    const what = { event: 'budget', mac: formatMac(mac), source, state, why };
    if (state === 'over') log.warn(what, 'over its budget of uplinks');
    else log.info(what, 'within its budget of uplinks again');
  });
  some('quarantined', ({ mac, code, message, bytes }) =>
    log.warn(
      { event: 'quarantined', mac: formatMac(mac), code, why: message, bytes: bytes.length },
      'uplink quarantined',
    ),
  );
}

/** A request is logged by route, status and id, never with its URL, which may contain a password. */
function logRequests(log: Logger, { each, some }: Listening): void {
  const members = ({ requestId, method, route, status, durationMs }: Event<'request'>) => {
    return { event: 'request', request_id: requestId, method, route, status, duration_ms: Math.round(durationMs) };
  };
  each('request', (event) => log.debug(members(event), 'request answered'));
  some(
    'request',
    (event) => log.error({ ...members(event), why: event.why }, 'a request failed by our fault'),
    ({ status, why }) => status === 500 || why !== undefined,
  );
}

/** For those who need the audit log for longer than the store retains it. */
function logAudit(log: Logger, { each }: Listening): void {
  each('audited', ({ actor, address, osUser, action, object, outcome, code }) =>
    log.info(
      { event: 'audited', actor, address, os_user: osUser, action, object, outcome, code },
      `${action} ${outcome}`,
    ),
  );
}

function logDeliveries(log: Logger, { each, some }: Listening): void {
  some(
    'delivery',
    ({ urlId, eventId, number, status, error }) =>
      log.warn({ event: 'delivery', url_id: urlId, event_id: eventId, attempts: number, status, error }, 'given up'),
    ({ outcome }) => outcome === 'dead',
  );
  some('event-damaged', ({ mac, eventId, urlId }) =>
    log.error(
      { event: 'event-damaged', mac: formatMac(mac), event_id: eventId, url_id: urlId },
      'an event is not sent: its stored ping is damaged',
    ),
  );
  each('url-disabled', ({ urlId, why }) =>
    log.warn({ event: 'url-disabled', url_id: urlId, why }, 'webhook URL disabled'),
  );
  each('circuit', ({ urlId, state, why }) => {
    const what = { event: 'circuit', url_id: urlId, state, why };
    if (state === 'opened') log.warn(what, 'a webhook URL fails: probes alone are sent there');
    else log.info(what, 'a webhook URL takes events again');
  });
  each('backlog', ({ urlId, state, why }) => {
    const what = { event: 'backlog', url_id: urlId, state, why };
    if (state === 'behind') log.warn(what, 'a webhook URL is far behind');
    else log.info(what, 'a webhook URL has caught up');
  });
}

/** What keeps us from sending webhooks or recording their outcomes. */
function logHindrances(log: Logger, { some }: Listening): void {
  some('cannot-send', ({ what, state, why }) => {
    const members = { event: 'cannot-send', what, state, why };
    if (state === 'began') log.error(members, 'webhooks can’t be sent, for a reason of our own');
    else log.info(members, 'webhooks are sent again');
  });
  some('cannot-record', ({ urlId, state, why }) => {
    const members = { event: 'cannot-record', url_id: urlId, state, why };
    if (state === 'began') log.error(members, 'what came of a delivery can’t be written down: it is set aside');
    else log.info(members, 'what came of each delivery is written down');
  });
}

function logStore(log: Logger, { each, some }: Listening): void {
  some('store-failed', ({ why }) => log.error({ event: 'store-failed', why }, 'the store failed'));
  each('state-rebuilt', ({ mac, why, from }) =>
    log.error({ event: 'state-rebuilt', mac: formatMac(mac), why, from }, 'a lock’s stored state was damaged'),
  );
  each('clock', ({ state, why }) => {
    if (state === 'agrees') log.info({ event: 'clock', state, why }, 'the machine’s clock is believed');
    else log.error({ event: 'clock', state, why }, 'the machine’s clock is not believed');
  });
  each('judging', ({ mac, state, why }) => {
    const what = { event: 'judging', mac: formatMac(mac), state, why };
    if (state === 'stopped') log.error(what, 'a lock is not judged any more: the judge failed');
    else log.info(what, 'a lock is judged again');
  });
  each('catching-up', ({ done, of }) =>
    log.info({ event: 'catching-up', done, of }, `an older store is made ready: ${Math.floor((done / of) * 100)} %`),
  );
  each('files-mended', ({ what }) => log.warn({ event: 'files-mended' }, what));
  each('store-broken', ({ why }) => log.fatal({ event: 'store-broken', why }, 'the store is broken'));
  each('descriptors', ({ state, limit, why }) => {
    if (state === 'enough') log.info({ event: 'descriptors', state, limit }, why);
    else log.warn({ event: 'descriptors', state, limit }, why);
  });
  each('degraded', ({ reason, why }) => log.error({ event: 'degraded', reason, why }, 'not ready'));
  each('recovered', ({ reason, lastedMs }) =>
    log.info({ event: 'recovered', reason, lasted_ms: Math.round(lastedMs) }, 'well again'),
  );
  some(
    'commit',
    ({ what, durationMs, rows }) =>
      log.warn({ event: 'slow-commit', what, duration_ms: Math.round(durationMs), rows }, 'a commit was slow'),
    ({ durationMs }) => durationMs >= SLOW_COMMIT,
  );
}
