/**
 * Empty replacements for two parts of aedes that the gateway does not use: the emitter that routes publishes to
 * subscribers, and the persistence of sessions, retained messages and wills.
 *
 * A lock's publishes go only to ingest, and each downlink goes only to one lock. Sessions are clean, nothing is
 * retained, and wills are refused. So there is nothing to route or persist. With aedes' own parts, each connection
 * would cost an announcement below `$SYS` without subscribers, an unused listener, and leaked memory.
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

/** The methods of a persistence that aedes calls when there are no lasting sessions, wills or retained messages. */
export class NullPersistence {
  async setup(): Promise<void> {}

  async cleanSubscriptions(): Promise<void> {}
  async cleanIncoming(): Promise<void> {}
  async delWill(): Promise<void> {}

  /** Called for a lock's PUBACK. Ignored: a command stays stored until its acknowledgement arrives as an uplink. */
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
