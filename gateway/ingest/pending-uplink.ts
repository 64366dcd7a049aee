/**
 * An uplink on its way in, from its arrival to its answer: what waits, what is judged, what is stored and what is told
 * of are one object. There is one for every ping, and with an object for each of the four the ingest would spend more
 * on making and collecting them than on judging.
 */

import type { Finding, UplinkCopy, UplinkEvent } from '../../proto/power/judge/event.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { Source, Uplink } from '../../proto/wire/ping.js';
import { FIRST_LIFE } from '../../proto/wire/uplink-life.js';
import type { UplinkTaken } from '../events.js';
import { type IncomingUplink, UPLINK_KINDS } from '../store/contract/store.js';
import { digestOf, eventId } from '../webhooks/event-id.js';

/** Who sent the bytes: decided by the credential that the connection was made with, never by the content. */
export interface Sender {
  readonly deviceId: number;
  readonly merchantId: number;
  readonly credentialId: number;
  readonly mac: Mac;
  readonly simulated: boolean;
  readonly source: Source;
}

/** Called once: without an error when the uplink may be acknowledged, with one when it must not be. */
export type Answer = (error?: Error) => void;

const NO_FINDINGS: readonly Finding[] = Object.freeze([]);

export class PendingUplink implements IncomingUplink, UplinkEvent {
  readonly type = 'uplink';
  readonly sender: Sender;
  readonly answer: Answer;
  readonly uplink: Uplink;
  readonly bytes: Buffer;
  /* The rest of what the judge is told. */
  readonly source: Source;
  readonly credential: number;
  readonly atMs: number;
  /** Known when its turn has come, of a lock that was reflashed. */
  life: number = FIRST_LIFE;
  /** Known when its turn has come. */
  copy: UplinkCopy = 'new';
  /* The rest of what is stored. */
  readonly deviceId: number;
  readonly merchantId: number;
  readonly credentialId: number;
  readonly boot: number;
  readonly sequence: number;
  readonly kind: number;
  readonly receivedAtMs: number;
  readonly buffered: boolean;
  /** What judging it brought. */
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
    // An uplink that arrives over 60 s after its time waited somewhere (protocol.md §3).
    this.buffered = receivedAtMs - uplink.timeMs > POWER_MODEL.bounds.bufferedOver;
  }

  /** Worked out when somebody asks: a SHA-256 costs as much as judging. */
  get digest(): Buffer {
    this.#digest ??= digestOf(this.bytes);
    return this.#digest;
  }

  /** It was in the log already, with the same bytes. */
  get repeated(): boolean {
    return this.copy === 'repeat';
  }

  /** As listeners are told of it. */
  report(): UplinkTaken {
    const { atMs, source, uplink, bytes, buffered, repeated, findings } = this;
    const { mac, simulated } = this.sender;
    return {
      atMs,
      mac,
      source,
      eventId: eventId({ mac, ...this.#name() }),
      uplink,
      bytes,
      buffered,
      repeated,
      simulated,
      findings,
    };
  }

  #name() {
    const { credentialId, boot, sequence, digest } = this;
    return { credentialId, boot, sequence, digest };
  }
}
