/**
 * An uplink from its arrival to its answer. One object is queued, judged, stored and announced: with an object for each
 * of these steps, creating and collecting them would cost more than judging.
 */
import type { Finding, UplinkCopy, UplinkEvent } from '../../proto/power/judge/event.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { Source, Uplink } from '../../proto/wire/ping.js';
import { FIRST_LIFE } from '../../proto/wire/uplink-life.js';
import type { UplinkTaken } from '../events.js';
import { type IncomingUplink, UPLINK_KINDS } from '../store/contract/store.js';
import { digestOf, eventId } from '../webhooks/event-id.js';

/** Who sent the bytes: determined by the connection's credential, never by the content. */
export interface Sender {
  readonly deviceId: number;
  readonly merchantId: number;
  readonly credentialId: number;
  readonly mac: Mac;
  readonly simulated: boolean;
  readonly source: Source;
}

/** Called once: without an error where the uplink may be acknowledged, with one where it must not be. */
export type Answer = (error?: Error) => void;

const NO_FINDINGS: readonly Finding[] = Object.freeze([]);

export class PendingUplink implements IncomingUplink, UplinkEvent {
  readonly type = 'uplink';
  readonly sender: Sender;
  readonly answer: Answer;
  readonly uplink: Uplink;
  readonly bytes: Buffer;
  /* The other members of an `UplinkEvent`, which the judge takes. */
  readonly source: Source;
  readonly credential: number;
  readonly atMs: number;
  /** Set when it is judged, for a lock that was reflashed. */
  life: number = FIRST_LIFE;
  /** Set when it is judged. */
  copy: UplinkCopy = 'new';
  /* The other members of an `IncomingUplink`, which the store takes. */
  readonly deviceId: number;
  readonly merchantId: number;
  readonly credentialId: number;
  readonly boot: number;
  readonly sequence: number;
  readonly kind: number;
  readonly receivedAtMs: number;
  readonly buffered: boolean;
  /** The findings of judging it. */
  findings: readonly Finding[] = NO_FINDINGS;
  #digest: Buffer | undefined;

  constructor(sender: Sender, bytes: Buffer, uplink: Uplink, receivedAtMs: number, answer: Answer) {
    this.sender = sender;
    this.answer = answer;
    this.uplink = uplink;
    this.bytes = bytes;
    this.source = sender.source;
    this.credential = sender.credentialId;
    this.atMs = receivedAtMs;
    this.deviceId = sender.deviceId;
    this.merchantId = sender.merchantId;
    this.credentialId = sender.credentialId;
    this.boot = uplink.boot;
    this.sequence = uplink.sequence;
    this.kind = UPLINK_KINDS.indexOf(uplink.body.kind);
    this.receivedAtMs = receivedAtMs;
    // An uplink that arrives over 60 s after its time was buffered somewhere (protocol.md §3).
    this.buffered = receivedAtMs - uplink.timeMs > POWER_MODEL.bounds.bufferedOver;
  }

  /** Computed on demand: a SHA-256 costs as much as judging. */
  get digest(): Buffer {
    this.#digest ??= digestOf(this.bytes);
    return this.#digest;
  }

  /** Whether it was in the log already, with the same bytes. */
  get repeated(): boolean {
    return this.copy === 'repeat';
  }

  /** As it is announced to listeners. */
  report(): UplinkTaken {
    const { atMs, source, uplink, bytes, buffered, repeated, findings } = this;
    const { mac, simulated } = this.sender;
    return {
      atMs,
      mac,
      source,
      eventId: eventId({ mac, ...this.#keyParts() }),
      uplink,
      bytes,
      buffered,
      repeated,
      simulated,
      findings,
    };
  }

  #keyParts() {
    const { credentialId, boot, sequence, digest } = this;
    return { credentialId, boot, sequence, digest };
  }
}
