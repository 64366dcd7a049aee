/**
 * The streams of the operators' interface, as JSON Lines: live events, for `tail`, and traces, recorded live or read
 * from the store. A stream closes when the gateway stops, or when the
 * token that opened it is replaced, revoked or expires.
 */

import { PassThrough, Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { GatewayEvents } from '../../events.js';
import { noSuchDevice } from '../../store/contract/errors.js';
import type { Store } from '../../store/contract/store.js';
import { listenToAll } from './json/event.js';
import { readDate, textOf } from './query.js';
import { type Query, type RouteTerms, readMac } from './routes.js';
import { DateText, Described, Exact, Macs } from './schemas.js';
import { type ExportRange, exportTrace } from './trace-export.js';
import { type RecordParts, recordTrace } from './trace-record.js';

/** Maximum number of bytes that wait for a slow reader. A stream with more is closed. */
const MAX_UNREAD_BYTES = 4 * 1024 * 1024;

export const JSON_LINES = 'application/jsonl';

export interface StreamParts extends RecordParts {
  readonly store: Store;
  readonly events: GatewayEvents;
}

/** A route that answers with a stream. */
export interface StreamRoute extends RouteTerms {
  readonly method: 'GET';
  readonly stream: (streams: Streams, query: Query, reply: FastifyReply) => Promise<FastifyReply> | FastifyReply;
}

/** Every route that answers with a stream. */
export const STREAM_ROUTES: readonly StreamRoute[] = [
  {
    method: 'GET',
    path: '/events',
    operation: 'event.stream',
    summary: 'Streams all events from now on, one per line.',
    answer: Described('An event.'),
    stream: (streams, _query, reply) => streams.events(reply),
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
  readonly #open = new Map<PassThrough, FastifyRequest>();

  constructor(parts: StreamParts) {
    this.#parts = parts;
  }

  /** Closes the open streams, or those of these requests. */
  end(isConcerned: (request: FastifyRequest) => boolean = () => true): void {
    for (const [stream, request] of this.#open) if (isConcerned(request)) stream.end();
  }

  events(reply: FastifyReply): FastifyReply {
    const { events } = this.#parts;
    return this.#live(reply, async (write) => listenToAll(events, (event) => write(JSON.stringify(event))));
  }

  record(query: Query, reply: FastifyReply): FastifyReply {
    const macs = macsOf(query)?.map(readMac);
    return this.#live(reply, (write) => recordTrace(this.#parts, macs && new Set(macs), write));
  }

  async export(query: Query, reply: FastifyReply): Promise<FastifyReply> {
    const { store, locks } = this.#parts;
    const lines = exportTrace(store, await readRange(store, query), locks.judging.judge);
    reply.header('content-type', JSON_LINES);
    return reply.send(Readable.from(withLineEnds(lines)));
  }

  /** Sends JSON Lines for as long as the client reads. `start` returns the function that stops the lines. */
  #live(reply: FastifyReply, start: (write: (line: string) => void) => Promise<() => void>): FastifyReply {
    const stream = new PassThrough();
    const started = start((line) => {
      if (stream.writableLength > MAX_UNREAD_BYTES) stream.destroy();
      else if (!stream.writableEnded) stream.write(`${line}\n`);
    });
    this.#open.set(stream, reply.request);
    stream.on('close', () => {
      void started.then((stop) => stop());
      this.#open.delete(stream);
    });
    // Headers are sent at once, so that the client knows before the first event that it is connected.
    reply.header('content-type', JSON_LINES).send(stream);
    reply.raw.flushHeaders();
    return reply;
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
