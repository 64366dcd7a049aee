/**
 * The fast path of nearly everything that locks send: an uplink goes from the connection filter straight to ingest, and
 * its PUBACK from ingest straight to the socket. It bypasses the broker library, which spends more on a PUBLISH than
 * the system spends on reading and answering it.
 *
 * Each connection has a path of its own. It takes no part in what the library decides: who may connect, subscriptions,
 * PINGREQs, the end of a connection, and every PUBLISH that is in any way unusual (connection-filter.ts recognises
 * those).
 *
 * PUBACKs go out in the order of the PUBLISHes (MQTT 3.1.1, 4.6), since ingest answers in that order. The PUBACKs of
 * one commit are written at the end of the turn, all of a socket's in one write.
 */
import { monotonicMs } from '../../proto/clock.js';
import type { GatewayEvents } from '../events.js';
import type { Answer, Ingest } from '../ingest/ingest.js';
import type { ConnectionFilter, UplinkPath } from './connection-filter.js';
import type { Session } from './sessions.js';

/** With so many unanswered uplinks a connection is not read any further. What one read brought is all taken. */
const MAX_READ_AHEAD = 64;

/** The first two bytes of each PUBACK: its type and its length (MQTT 3.1.1, 3.4). */
const PUBACK = '\x40\x02';

export interface FastPathOptions {
  readonly ingest: Pick<Ingest, 'take'>;
  readonly events: Pick<GatewayEvents, 'emit'>;
  /** The first uplink of a session has arrived, maybe before the library reported the client as ready. */
  readonly onFirst: (filter: ConnectionFilter) => void;
  /** An uplink must not be acknowledged: the connection is to be closed. */
  readonly onFailed: (filter: ConnectionFilter, error: Error) => void;
}

/** The fast paths of a broker, and the PUBACKs that wait for the end of the turn. */
export class UplinkFastPaths {
  readonly options: FastPathOptions;
  /* One entry for each waiting PUBACK: its path, and when its PUBLISH arrived (monotonic, ms). */
  readonly #answered: UplinkFastPath[] = [];
  readonly #arrivedAt: number[] = [];
  readonly #flush = (): void => this.#writeAll();

  constructor(options: FastPathOptions) {
    this.options = options;
  }

  /** Makes the path of an authenticated connection. To be called before its filter is opened. */
  open(session: Session, filter: ConnectionFilter): UplinkFastPath {
    return new UplinkFastPath(this, session, filter);
  }

  /** Has a path write its PUBACKs at the end of the turn. */
  answered(path: UplinkFastPath, arrivedAt: number): void {
    if (this.#answered.push(path) === 1) queueMicrotask(this.#flush);
    this.#arrivedAt.push(arrivedAt);
  }

  #writeAll(): void {
    const { events } = this.options;
    for (const path of this.#answered) path.write();
    const nowMs = monotonicMs();
    for (const arrivedAt of this.#arrivedAt) events.emit('acknowledged', { durationMs: nowMs - arrivedAt });
    this.#answered.length = 0;
    this.#arrivedAt.length = 0;
  }
}

/**
 * The fast path of one connection:
 *
 * - *reading*: fewer than {@link MAX_READ_AHEAD} uplinks are unanswered.
 * - *full*: at least so many are. The filter does not read until the first of them is answered.
 * - *failed*: an uplink must not be acknowledged. The PUBACKs of those before it are written, and the connection is
 *   closed. It takes nothing more; uplinks under way are still stored, but no PUBACK is written.
 */
export class UplinkFastPath implements UplinkPath {
  readonly #paths: UplinkFastPaths;
  readonly #session: Session;
  readonly #filter: ConnectionFilter;
  #unanswered = 0;
  /**
   * PUBACKs to be written, one character per byte: Node writes a latin1 string to the socket without copying it first.
   */
  #pubacks = '';

  constructor(paths: UplinkFastPaths, session: Session, filter: ConnectionFilter) {
    this.#paths = paths;
    this.#session = session;
    this.#filter = filter;
  }

  get isFull(): boolean {
    return this.#unanswered >= MAX_READ_AHEAD;
  }

  take(payload: Buffer, id: number): void {
    const session = this.#session;
    if (session.isEnded) return;
    const { ingest, onFirst } = this.#paths.options;
    if (session.phase === 'authenticated') onFirst(this.#filter);
    session.messages.messagesUp += 1;
    this.#unanswered += 1;
    ingest.take(session.sender, payload, this.#answer(id, monotonicMs()));
  }

  /** Writes the waiting PUBACKs. To be called before anything is written that must not overtake them. */
  write(): void {
    const pubacks = this.#pubacks;
    if (pubacks === '') return;
    this.#pubacks = '';
    const { stream } = this.#filter;
    // Not to a connection that is being closed, or whose client has closed its side.
    if (stream.writable && !stream.readableEnded && !stream.write(pubacks, 'latin1')) this.#filter.readOn();
  }

  #answer(id: number, arrivedAt: number): Answer {
    return (error) => {
      if (this.#unanswered === 0) throw new Error('an uplink was answered twice');
      this.#unanswered -= 1;
      if (error !== undefined) this.#fail(error);
      else {
        this.#pubacks += PUBACK + String.fromCharCode(id >> 8, id & 0xff);
        this.#paths.answered(this, arrivedAt);
      }
      if (this.#unanswered === MAX_READ_AHEAD - 1) this.#filter.readOn();
    };
  }

  #fail(error: Error): void {
    const { stream } = this.#filter;
    if (!stream.writable) return;
    // Uplinks that were stored before this one are acknowledged.
    this.write();
    this.#paths.options.onFailed(this.#filter, error);
  }
}
