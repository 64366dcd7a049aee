/**
 * An uplink from its arrival to its answer. The same object is queued, judged, stored and announced: separate objects
 * for these steps would cost more than judging.
 */
import type { Finding, UplinkEvent, UplinkNovelty } from '../../proto/power/judge/event.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { Source, Uplink } from '../../proto/wire/ping.js';
import { FIRST_LIFE } from '../../proto/wire/uplink-life.js';
import type { UplinkTaken } from '../events.js';
import { type IncomingUplink, UPLINK_KINDS } from '../store/contract/store.js';
import { eventId, uplinkDigest } from '../webhooks/event-id.js';

/** The sender of an uplink. The connection's credential determines it, never the content. */
export interface Sender {
  readonly deviceId: number;
  readonly merchantId: number;
  readonly credentialId: number;
  readonly mac: Mac;
  readonly simulated: boolean;
  readonly source: Source;
}

/** Called once: without an error if the uplink may be acknowledged, with an error if it must not be. */
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
  /** Set by the judging, for a lock that was reflashed. */
  life: number = FIRST_LIFE;
  /** Set by the judging. */
  novelty: UplinkNovelty = 'new';
  /* The other members of an `IncomingUplink`, which the store takes. */
  readonly deviceId: number;
  readonly merchantId: number;
  readonly credentialId: number;
  readonly boot: number;
  readonly sequence: number;
  readonly kind: number;
  readonly receivedAtMs: number;
  readonly buffered: boolean;
  /** The judge's findings about the uplink. */
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

  /** The digest of the bytes. Computed on demand: a SHA-256 costs as much as judging. */
  get digest(): Buffer {
    this.#digest ??= uplinkDigest(this.bytes);
    return this.#digest;
  }

  /** Whether the log already had the uplink with the same bytes. */
  get repeated(): boolean {
    return this.novelty === 'repeat';
  }

  /** The uplink as an event for listeners. */
  report(): UplinkTaken {
    const { atMs, source, credentialId, uplink, bytes, buffered, repeated, findings } = this;
    const { mac, simulated } = this.sender;
    return {
      atMs,
      mac,
      source,
      credentialId,
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
