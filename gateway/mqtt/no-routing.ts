/**
 * Empty stand-ins for two parts of aedes that the gateway does not use: the emitter that routes publishes to
 * subscribers, and the persistence of sessions, retained messages and wills.
 *
 * What a lock publishes goes to ingest only, and what it receives is sent to it only. Sessions are clean, nothing is
 * retained, a will is refused. So there is nothing to route or to persist. With aedes' own parts, each connection would
 * be announced below `$SYS` to nobody, occupy a listener that nobody calls, and leave memory behind.
 */
import { Readable } from 'node:stream';
import { afterThisTurn } from '../../proto/clock.js';

type Done = () => void;

/** An emitter (the interface of mqemitter) without listeners. */
export class NullEmitter {
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

/** A persistence as aedes needs it without lasting sessions, wills and retained messages. */
export class NullPersistence {
  async setup(): Promise<void> {}

  async cleanSubscriptions(): Promise<void> {}
  async cleanIncoming(): Promise<void> {}
  async delWill(): Promise<void> {}

  /** A lock's PUBACK. It is ignored: a command is stored until its acknowledgement arrives as an uplink. */
  async outgoingClearMessageId(): Promise<void> {}

  /** The messages queued for a client while it was offline. */
  outgoingStream(): Readable {
    return Readable.from([]);
  }

  /** The retained messages that match a subscription. */
  createRetainedStreamCombi(): { pipe(): void } {
    return { pipe: () => undefined };
  }

  /** The wills of other brokers, which aedes polls. */
  streamWill(): Readable {
    return Readable.from([]);
  }
}
