/**
 * The fast path for ordinary uplinks, nearly everything that locks send: an uplink goes from the connection filter
 * directly to ingest, and its PUBACK from ingest directly to the socket. This bypasses the broker library, whose work
 * for a PUBLISH costs more than reading and answering it.
 *
 * Each connection has its own fast path. The library still handles CONNECT, subscriptions, PINGREQs, the end of a
 * connection, and every unusual PUBLISH (connection-filter.ts distinguishes them).
 *
 * PUBACKs are written in the order of the PUBLISHes (MQTT 3.1.1, 4.6), since ingest answers in that order. The PUBACKs
 * of one commit are written in the microtask after ingest's answers, in one write per socket.
 */
import { monotonicMs } from '../../proto/clock.js';
import type { GatewayEvents } from '../events.js';
import type { Answer, Ingest } from '../ingest/ingest.js';
import type { ConnectionFilter, UplinkPath } from './connection-filter.js';
import type { Session } from './sessions.js';

/** A connection with this many unanswered uplinks is not read. All uplinks of one read are accepted. */
const MAX_UNANSWERED_UPLINKS = 64;

/** The first two bytes of each PUBACK: its type and its length (MQTT 3.1.1, 3.4). */
const PUBACK_HEADER = '\x40\x02';

export interface FastPathOptions {
  readonly ingest: Pick<Ingest, 'take'>;
  readonly events: Pick<GatewayEvents, 'emit'>;
  /** The first uplink of a session has arrived, perhaps before the library reported the client as ready. */
  readonly onFirst: (filter: ConnectionFilter) => void;
  /** An uplink must not be acknowledged: the caller must close the connection. */
  readonly onFailed: (filter: ConnectionFilter, error: Error) => void;
}

/** The fast paths of a broker, and the PUBACKs that wait to be written. */
export class UplinkFastPaths {
  readonly options: FastPathOptions;
  /* For each waiting PUBACK: its path, and when its PUBLISH arrived (monotonic, ms). */
  readonly #answered: UplinkFastPath[] = [];
  readonly #arrivedAt: number[] = [];
  readonly #flush = (): void => this.#writeAll();

  constructor(options: FastPathOptions) {
    this.options = options;
  }

  /** Creates the path of an authenticated connection. Must be called before its filter is opened. */
  open(session: Session, filter: ConnectionFilter): UplinkFastPath {
    return new UplinkFastPath(this, session, filter);
  }

  /** Makes a path write its PUBACKs in the next microtask. @param arrivedAt when the PUBLISH arrived, monotonic */
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
 * - *reading*: fewer than {@link MAX_UNANSWERED_UPLINKS} uplinks are unanswered.
 * - *full*: at least that many are unanswered. The filter does not read until there are fewer.
 * - *failed*: an uplink must not be acknowledged. The PUBACKs of earlier uplinks are written, and the connection is
 *   closed. The path takes nothing more; uplinks that ingest has already are still stored, but get no PUBACK.
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
    return this.#unanswered >= MAX_UNANSWERED_UPLINKS;
  }

  take(payload: Buffer, packetId: number): void {
    const session = this.#session;
    if (session.isEnded) return;
    const { ingest, onFirst } = this.#paths.options;
    if (session.phase === 'authenticated') onFirst(this.#filter);
    session.messages.messagesUp += 1;
    this.#unanswered += 1;
    ingest.take(session.sender, payload, this.#answer(packetId, monotonicMs()));
  }

  /** Writes the waiting PUBACKs. Must be called before a write that must not overtake them. */
  write(): void {
    const pubacks = this.#pubacks;
    if (pubacks === '') return;
    this.#pubacks = '';
    const { stream } = this.#filter;
    // A connection that is being closed, or whose client has closed its side, gets no PUBACKs.
    if (stream.writable && !stream.readableEnded && !stream.write(pubacks, 'latin1')) this.#filter.updateReading();
  }

  /** The callback with which ingest answers an uplink. */
  #answer(packetId: number, arrivedAt: number): Answer {
    return (error) => {
      if (this.#unanswered === 0) throw new Error('an uplink was answered twice');
      this.#unanswered -= 1;
      if (error !== undefined) this.#fail(error);
      else {
        this.#pubacks += PUBACK_HEADER + String.fromCharCode(packetId >> 8, packetId & 0xff);
        this.#paths.answered(this, arrivedAt);
      }
      // The path was full until this answer.
      if (this.#unanswered === MAX_UNANSWERED_UPLINKS - 1) this.#filter.updateReading();
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
