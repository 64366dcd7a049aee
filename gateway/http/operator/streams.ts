/**
 * The streams of the operators' interface, as JSON Lines: live events, for `tail`, and traces, recorded live or read
 * from the store. A live stream closes when the gateway stops, when the token that opened it is replaced, revoked or
 * expires, or when the console's session that opened it ends, whatever ended it. A trace from the store ends by itself.
 */

import { PassThrough, Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { type Milliseconds, Seconds, type Timer } from '../../../proto/clock.js';
import { formatMac } from '../../../proto/wire/mac.js';
import type { GatewayEvents } from '../../events.js';
import { EVENT_STREAM_TYPE } from '../../live/server-sent-events.js';
import { noSuchDevice } from '../../store/contract/errors.js';
import type { Store } from '../../store/contract/store.js';
import { lastEventIdOf, STREAM_HEADERS } from '../merchant/own-data/stream-routes.js';
import { EventQuery, readEventFilter } from './event-filter.js';
import { FilteredEvents } from './filtered-events.js';
import { listedLockJson } from './json/device.js';
import { listenToAll } from './json/event.js';
import { readDate, textOf } from './query.js';
import { type OperatorParts, type Query, type RouteTerms, readMac } from './routes.js';
import { DateText, Described, Exact, Macs, OneOf } from './schemas.js';
import { type ExportRange, exportTrace } from './trace-export.js';
import { type RecordParts, recordTrace } from './trace-record.js';

/** Maximum number of bytes that wait for a slow reader. A stream with more is closed. */
const MAX_UNREAD_BYTES = 4 * 1024 * 1024;

/**
 * How often it is checked whether the reader of JSON Lines may still read them: a session may have ended in another
 * gateway that shares the store. The feed checks the readers of its own streams.
 */
const RIGHTS_CHECK_INTERVAL: Milliseconds = Seconds(2);

export const JSON_LINES = 'application/jsonl';

export interface StreamParts extends RecordParts, Pick<OperatorParts, 'merchants' | 'usage' | 'clock' | 'wallClock'> {
  readonly store: Store;
  readonly events: GatewayEvents;
}

const LiveQuery = Exact({
  only: Type.Optional(OneOf(['locks', 'events'], 'Only the locks, or only the events; by default both.')),
  seconds: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 86_400,
      description: 'How long the stream lasts; 0: the present state alone.',
    }),
  ),
});

/** A route that answers with a stream. */
export interface StreamRoute extends RouteTerms {
  readonly method: 'GET';
  readonly stream: (streams: Streams, query: Query, reply: FastifyReply) => Promise<FastifyReply> | FastifyReply;
  /** JSON Lines by default. */
  readonly answerType?: string;
}

/** Every route that answers with a stream. */
export const STREAM_ROUTES: readonly StreamRoute[] = [
  {
    method: 'GET',
    path: '/events',
    operation: 'event.stream',
    summary: 'Streams events from now on, one per line.',
    query: EventQuery,
    answer: Described('An event.'),
    stream: async (streams, query, reply) => await streams.events(query, reply),
  },
  {
    method: 'GET',
    path: '/stream',
    operation: 'lock.stream',
    summary: 'Streams all locks and all events as server-sent events: a snapshot of the locks, then what happens.',
    query: LiveQuery,
    answer: Described(
      'Events `snapshot` (parts of the list of locks; the last has `last: true`), `lock` (a changed lock, at most ' +
        'once a second), `removed` (a lock of a merchant that lost it), `event` (what `tail` shows) and `skipped` ' +
        '(how many of those came too fast). `Last-Event-ID` continues the locks after an interruption.',
    ),
    answerType: EVENT_STREAM_TYPE,
    stream: (streams, query, reply) => streams.live(query, reply),
  },
  {
    method: 'GET',
    path: '/trace/live',
    operation: 'trace.record',
    summary: 'Records a trace from now on.',
    query: Exact({ mac: Macs }),
    answer: Described('A line of a trace (proto/README.md).'),
    stream: (streams, query, reply) => streams.record(query, reply),
  },
  {
    method: 'GET',
    path: '/trace',
    operation: 'trace.export',
    summary: 'Exports a trace from the store, in order of receipt.',
    query: Exact({ mac: Macs, since: Type.Optional(DateText), until: Type.Optional(DateText) }),
    answer: Described('A line of a trace (proto/README.md).'),
    stream: async (streams, query, reply) => await streams.export(query, reply),
  },
];

/** The open streams of a server. */
export class Streams {
  readonly #parts: StreamParts;
  /** The live streams, each with the request that opened it. */
  readonly #open = new Map<{ end(): unknown }, FastifyRequest>();
  readonly #isStillAllowed: (request: FastifyRequest) => Promise<boolean>;

  /** @param isStillAllowed whether the caller of a request that opened a stream may still read it */
  constructor(parts: StreamParts, isStillAllowed: (request: FastifyRequest) => Promise<boolean>) {
    this.#parts = parts;
    this.#isStillAllowed = isStillAllowed;
  }

  /** Closes the open streams, or those of these requests. */
  end(isConcerned: (request: FastifyRequest) => boolean = () => true): void {
    for (const [stream, request] of this.#open) if (isConcerned(request)) stream.end();
  }

  /** The events, or those that the query selects. @throws LockgateError `no-such-merchant`, `input-mac`, `busy` */
  async events(query: Query, reply: FastifyReply): Promise<FastifyReply> {
    const { events, store, merchants } = this.#parts;
    const filter = await readEventFilter(store, merchants.ownData.lockList, query);
    if (filter === undefined)
      return this.#sendLines(reply, async (write) => listenToAll(events, (event) => write(JSON.stringify(event))));
    return this.#sendLines(reply, async (write, abort) => {
      const filtered = new FilteredEvents(filter, { write: (event) => write(JSON.stringify(event)), abort });
      return listenToAll(events, (event) => filtered.add(event));
    });
  }

  /** The stream of all locks, with the gateway's events. @throws LockgateError `busy` */
  live(query: Query, reply: FastifyReply): FastifyReply {
    const { usage, merchants } = this.#parts;
    const only = textOf(query, 'only');
    const seconds = textOf(query, 'seconds');
    const { request } = reply;
    const stream = merchants.ownData.live.open({
      audience: {
        name: 'operators',
        // The locks of all merchants.
        merchantId: undefined,
        lockJson: (lock) => listedLockJson(lock, usage),
        departureJson: (mac) => ({ mac: formatMac(mac) }),
      },
      lastEventId: lastEventIdOf(request.headers),
      duration: seconds === undefined ? undefined : Seconds(Number(seconds)),
      hasLocks: only !== 'events',
      hasEvents: only !== 'locks',
      isAllowed: () => this.#isStillAllowed(request),
    });
    this.#open.set(stream, request);
    reply.raw.once('close', () => {
      stream.end();
      this.#open.delete(stream);
    });
    return reply.headers(STREAM_HEADERS).type(EVENT_STREAM_TYPE).send(stream.out);
  }

  /** The trace of the locks that the query names, recorded from now on. */
  record(query: Query, reply: FastifyReply): FastifyReply {
    const macs = macsOf(query)?.map(readMac);
    return this.#sendLines(reply, (write) => recordTrace(this.#parts, macs && new Set(macs), write));
  }

  /** The trace of the locks and times that the query names, from the store. */
  async export(query: Query, reply: FastifyReply): Promise<FastifyReply> {
    const { store, locks } = this.#parts;
    const lines = exportTrace(store, await readRange(store, query), locks.judging.judge);
    reply.header('content-type', JSON_LINES);
    return reply.send(Readable.from(withLineEnds(lines)));
  }

  /**
   * Sends JSON Lines for as long as the client reads. `start` returns the function that stops the lines; if it fails,
   * the stream is cut off.
   */
  #sendLines(
    reply: FastifyReply,
    start: (write: (line: string) => void, abort: () => void) => Promise<() => void>,
  ): FastifyReply {
    const stream = new PassThrough();
    const started = start(
      (line) => {
        if (stream.writableLength > MAX_UNREAD_BYTES) stream.destroy();
        else if (!stream.writableEnded) stream.write(`${line}\n`);
      },
      () => stream.destroy(),
    );
    this.#open.set(stream, reply.request);
    stream.on('close', () => {
      this.#open.delete(stream);
    });
    started.then(
      (stop) => {
        if (stream.destroyed) stop();
        else stream.on('close', stop);
      },
      () => stream.destroy(),
    );
    this.#endWithRights(stream, reply.request);
    // Headers are sent at once, so that the client knows before the first event that it is connected.
    reply.header('content-type', JSON_LINES).send(stream);
    reply.raw.flushHeaders();
    return reply;
  }

  /** Ends a stream soon after its reader has lost the right to it. If the store can't be read, the stream goes on. */
  #endWithRights(stream: PassThrough, request: FastifyRequest): void {
    let timer: Timer | undefined;
    const check = async (): Promise<void> => {
      if (!(await this.#isStillAllowed(request).catch(() => true))) stream.end();
      if (!stream.writableEnded && !stream.destroyed) wait();
    };
    const wait = (): void => {
      timer = this.#parts.wallClock.after(RIGHTS_CHECK_INTERVAL, () => void check());
    };
    wait();
    stream.once('close', () => timer?.cancel());
  }
}

/** The locks and times that a query names; all by default. @throws LockgateError `no-such-device`, `input-…` */
async function readRange(store: Store, query: Query): Promise<ExportRange> {
  const requestedMacs = macsOf(query)?.map(readMac);
  const devices = (await store.listDevices()).map(({ device }) => device);
  for (const mac of requestedMacs ?? []) if (devices.every((device) => device.mac !== mac)) throw noSuchDevice(mac);
  return {
    devices: devices.filter((device) => requestedMacs?.includes(device.mac) ?? true),
    sinceMs: readDate('since', textOf(query, 'since')) ?? Number.NEGATIVE_INFINITY,
    untilMs: readDate('until', textOf(query, 'until')) ?? Number.POSITIVE_INFINITY,
  };
}

function macsOf({ mac }: Query): readonly string[] | undefined {
  return typeof mac === 'string' ? [mac] : mac;
}

async function* withLineEnds(lines: AsyncIterable<string>): AsyncGenerator<string> {
  for await (const line of lines) yield `${line}\n`;
}
