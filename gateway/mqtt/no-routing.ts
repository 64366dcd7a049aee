/**
 * The two parts of aedes that the gateway has no use for, emptied: the emitter that takes publishes to subscribers, and
 * the persistence that keeps sessions, retained messages and wills.
 *
 * What a lock publishes goes to ingest and nowhere else, and what it hears is sent to it alone. Sessions are clean,
 * nothing is retained, a will is refused. So there is nothing to route and nothing to keep. With aedes' own parts each
 * connection would be announced below `$SYS` to nobody, stand in a list of listeners that nobody speaks to, and leave
 * something behind.
 */
import { Readable } from 'node:stream';
import { afterThisTurn } from '../../proto/clock.js';

type Done = () => void;

/** An emitter (the interface of mqemitter) that nobody hears. */
export class DeafEmitter {
  readonly concurrency = 0;
  readonly current = 0;

  on(_topic: string, _listener: unknown, done?: Done): this {
    if (done !== undefined) afterThisTurn(done);
    return this;
  }

  removeListener(_topic: string, _listener: unknown, done?: Done): this {
    if (done !== undefined) afterThisTurn(done);
    return this;
  }

  emit(_message: unknown, done?: Done): this {
    if (done !== undefined) afterThisTurn(done);
    return this;
  }

  close(done: Done): void {
    afterThisTurn(done);
  }
}

/** What aedes asks of a persistence where nobody has a lasting session, a will or a retained message. */
export class NoPersistence {
  async setup(): Promise<void> {}

  async cleanSubscriptions(): Promise<void> {}
  async cleanIncoming(): Promise<void> {}
  async delWill(): Promise<void> {}

  /** A PUBACK of a lock: nothing waits for it, since a command is kept until its acknowledgement comes as an uplink. */
  async outgoingClearMessageId(): Promise<void> {}

  /** What waited for a client while it was away. */
  outgoingStream(): Readable {
    return Readable.from([]);
  }

  /** What is retained below a subscription. */
  createRetainedStreamCombi(): { pipe(): void } {
    return { pipe: () => undefined };
  }

  /** The wills of other brokers, asked for from time to time. */
  streamWill(): Readable {
    return Readable.from([]);
  }
}
