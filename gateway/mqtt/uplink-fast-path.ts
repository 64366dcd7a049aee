/**
 * The way of nearly everything that locks say: an uplink goes from the gate to ingest, and its PUBACK from ingest to
 * the socket, past the broker library, which spends more on a PUBLISH than the system does on reading and answering it.
 *
 * A lane is one connection's. It takes no part in what the library decides: who may connect, subscriptions, pings of
 * MQTT, the end of a connection, and each PUBLISH that is in any way unusual (connection-filter.ts says which those
 * are).
 *
 * PUBACKs go out in the order of the PUBLISHes (MQTT 3.1.1, 4.6), since ingest answers in that order. Those that one
 * commit answers are written at the end of the turn, all of a socket's in one write.
 */
import { monotonicMs } from '../../proto/clock.js';
import type { GatewayEvents } from '../events.js';
import type { Answer, Ingest } from '../ingest/ingest.js';
import type { ConnectionFilter, UplinkPath } from './connection-filter.js';
import type { Session } from './sessions.js';

/** Unanswered uplinks of a connection with which nothing more is read from it. What one read brought is all taken. */
const MAX_READ_AHEAD = 64;

/** The first two bytes of each PUBACK: its type and its length (MQTT 3.1.1, 3.4). */
const PUBACK = '\x40\x02';

export interface FastPathOptions {
  readonly ingest: Pick<Ingest, 'take'>;
  readonly events: Pick<GatewayEvents, 'emit'>;
  /** The first uplink of a session is here, of which the library may not have said yet that it is ready. */
  readonly onFirst: (gate: ConnectionFilter) => void;
  /** An uplink must not be acknowledged: the connection is to be ended. */
  readonly onFailed: (gate: ConnectionFilter, error: Error) => void;
}

/** All lanes of a broker, and the PUBACKs that wait for the end of the turn. */
export class UplinkFastPaths {
  readonly options: FastPathOptions;
  /** One entry for each PUBACK: whose, and since when its PUBLISH is here. */
  readonly #answered: UplinkFastPath[] = [];
  readonly #arrivedAt: number[] = [];
  readonly #flush = (): void => this.#writeAll();

  constructor(options: FastPathOptions) {
    this.options = options;
  }

  /** A lane for a connection that is authenticated; the gate is to be opened after it. */
  open(session: Session, gate: ConnectionFilter): UplinkFastPath {
    return new UplinkFastPath(this, session, gate);
  }

  /** Has a lane write its PUBACKs at the end of the turn. */
  answered(lane: UplinkFastPath, arrivedAt: number): void {
    if (this.#answered.push(lane) === 1) queueMicrotask(this.#flush);
    this.#arrivedAt.push(arrivedAt);
  }

  #writeAll(): void {
    const { events } = this.options;
    for (const lane of this.#answered) lane.write();
    const nowMs = monotonicMs();
    for (const arrivedAt of this.#arrivedAt) events.emit('acknowledged', { durationMs: nowMs - arrivedAt });
    this.#answered.length = 0;
    this.#arrivedAt.length = 0;
  }
}

export class UplinkFastPath implements UplinkPath {
  readonly #lanes: UplinkFastPaths;
  readonly #session: Session;
  readonly #gate: ConnectionFilter;
  #unanswered = 0;
  /** PUBACKs that aren't written yet, a character a byte: Node takes such a text to the socket without a copy first. */
  #pubacks = '';

  constructor(lanes: UplinkFastPaths, session: Session, gate: ConnectionFilter) {
    this.#lanes = lanes;
    this.#session = session;
    this.#gate = gate;
  }

  get isFull(): boolean {
    return this.#unanswered >= MAX_READ_AHEAD;
  }

  take(payload: Buffer, id: number): void {
    const session = this.#session;
    if (session.isEnded) return;
    const { ingest, onFirst } = this.#lanes.options;
    if (!session.isReady) onFirst(this.#gate);
    session.messages.messagesUp += 1;
    this.#unanswered += 1;
    ingest.take(session.sender, payload, this.#answer(id, monotonicMs()));
  }

  /** Writes what waits to be written: to be done before anything else is written that must not overtake it. */
  write(): void {
    const pubacks = this.#pubacks;
    if (pubacks === '') return;
    this.#pubacks = '';
    const { stream } = this.#gate;
    // What is being ended takes no more; neither does one that has said that it is done.
    if (stream.writable && !stream.readableEnded && !stream.write(pubacks, 'latin1')) this.#gate.readOn();
  }

  #answer(id: number, arrivedAt: number): Answer {
    return (error) => {
      this.#unanswered -= 1;
      if (error !== undefined) this.#fail(error);
      else {
        this.#pubacks += PUBACK + String.fromCharCode(id >> 8, id & 0xff);
        this.#lanes.answered(this, arrivedAt);
      }
      if (this.#unanswered === MAX_READ_AHEAD - 1) this.#gate.readOn();
    };
  }

  #fail(error: Error): void {
    const { stream } = this.#gate;
    if (!stream.writable) return;
    // What was stored before it is acknowledged.
    this.write();
    this.#lanes.options.onFailed(this.#gate, error);
  }
}
