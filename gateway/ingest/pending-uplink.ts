/**
 * One uplink of a lock or phone, from its arrival at the gateway to its answer. The same object is queued, judged,
 * stored and announced: separate objects for these steps would take more time than judging takes. To judge an uplink is
 * to check it against the protocol's rules (proto/power/judge). Does no I/O.
 */
import type { Finding, UplinkEvent, UplinkNovelty } from '../../proto/power/judge/event.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { Source, Uplink } from '../../proto/wire/ping.js';
import { FIRST_LIFE } from '../../proto/wire/uplink-life.js';
import type { UplinkTaken } from '../lock-events.js';
import { type IncomingUplink, UPLINK_KINDS } from '../store/contract/log/commit.js';
import { eventId, uplinkDigest } from '../webhooks/event-id.js';

/** The sender of an uplink. The connection's credential determines it, never the content. */
export interface Sender {
  readonly deviceId: number;
  readonly merchantId: number;
  readonly credentialId: number;
  readonly mac: Mac;
  /** Whether the lock is simulated. */
  readonly simulated: boolean;
  /** Whether the lock itself sent the uplink, or a phone on the lock's behalf. */
  readonly source: Source;
}

/** Called once: without an error if the uplink may be acknowledged, with an error if it must not be. */
export type Answer = (error?: Error) => void;

const NO_FINDINGS: readonly Finding[] = Object.freeze([]);

/**
 * An uplink is the judge's input (`UplinkEvent`) and the store's (`IncomingUplink`), which name some members
 * differently.
 */
export class PendingUplink implements IncomingUplink, UplinkEvent {
  readonly type = 'uplink';
  readonly sender: Sender;
  readonly answer: Answer;
  readonly uplink: Uplink;
  readonly bytes: Buffer;
  /* The members that only the judge's input has. */
  readonly source: Source;
  readonly credential: number;
  readonly atMs: number;
  /**
   * The number of wipes of the lock's flash before the uplink, plus 1: after each wipe the lock counts its boots from 1
   * again. DraftJudge sets it.
   */
  life: number = FIRST_LIFE;
  /** Whether an earlier uplink used the key (credential, boot, sequence). DraftJudge sets it. */
  novelty: UplinkNovelty = 'new';
  /* The members that only the store's input has. */
  readonly deviceId: number;
  readonly merchantId: number;
  readonly credentialId: number;
  readonly boot: number;
  readonly sequence: number;
  /** The index of the body's kind in UPLINK_KINDS. */
  readonly kind: number;
  readonly receivedAtMs: number;
  readonly buffered: boolean;
  /** Whether the store refused its acknowledgement: it is not the first one, or the command is another lock's. */
  isRefused = false;
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
    // Over 60 s between the lock's time and the receipt mean that the lock or the network buffered it (protocol.md §3).
    this.buffered = receivedAtMs - uplink.timeMs > POWER_MODEL.bounds.bufferedOver;
  }

  /** The digest of the bytes. Computed on demand: a SHA-256 costs as much as judging. */
  get digest(): Buffer {
    this.#digest ??= uplinkDigest(this.bytes);
    return this.#digest;
  }

  /** Whether the store's log already had this uplink: the same key and the same bytes. */
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
