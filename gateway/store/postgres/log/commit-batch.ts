/**
 * Several commits that are stored by one statement, as the rows that the statement writes. A statement can't change a
 * row twice, so what a later commit does to the same row is combined here with what an earlier one does. Does no I/O.
 *
 * A *staged event* is an event for a merchant about the end of a command. A trigger puts it into the table
 * `staged_event` when the command ends; the next commit moves it into the log.
 */
import type { Finding, Withdrawal } from '../../../../proto/power/judge/event.js';
import { uplinkDigest } from '../../../webhooks/event-id.js';
import type { CommandChange } from '../../contract/command-record.js';
import type { Commit, IncomingLockEvent, IncomingQuarantine, IncomingUplink } from '../../contract/log/commit.js';
import { uplinkSum } from '../../log/uplink-sum.js';

/** An uplink's row in the log. */
export interface UplinkRow {
  readonly id: number;
  readonly deviceId: number;
  readonly merchantId: number;
  readonly credentialId: number;
  readonly boot: number;
  readonly sequence: number;
  readonly receivedAtMs: number;
  readonly kind: number;
  readonly buffered: number;
  readonly digest: Buffer;
  readonly bytes: Buffer;
  readonly sum: number;
  /** Of a staged event, its id in `staged_event`; else 0. */
  readonly stagedId: number;
}

/** An event for a merchant that is not a ping. */
export interface MerchantEventRow {
  readonly deviceId: number;
  readonly merchantId: number;
  readonly kind: number;
  readonly atMs: number;
  /** JSON. */
  readonly content: string;
  /** Its id in `staged_event`; 0 if it was not staged. */
  readonly stagedId: number;
}

/** What happens to a command: sent some times, and then perhaps answered. */
export interface CommandRow {
  readonly id: number;
  sends: number;
  firstAtMs: number;
  lastAtMs: number;
  /** The first answer of each lock that sent one, by the lock's id; only the command's own lock counts. */
  readonly answers: Map<number, Extract<CommandChange, { type: 'acknowledged' }>>;
}

/** The rows of a statement. */
export class CommitBatch {
  readonly uplinks: UplinkRow[] = [];
  /** `afterId`: the newest uplink before the event. */
  readonly lockEvents: { readonly item: IncomingLockEvent; readonly afterId: number }[] = [];
  readonly quarantined: IncomingQuarantine[] = [];
  readonly withdrawn: { readonly deviceId: number; readonly withdrawal: Withdrawal }[] = [];
  findings: { readonly deviceId: number; readonly finding: Finding }[] = [];
  /** By lock; `throughId` is the newest uplink that the state includes. */
  readonly states = new Map<number, { readonly state: string; readonly throughId: number }>();
  readonly commands = new Map<number, CommandRow>();

  addUplink(id: number, uplink: Omit<IncomingUplink, 'type' | 'digest'>, stagedId = 0): void {
    const { deviceId, merchantId, credentialId, boot, sequence, kind, bytes } = uplink;
    // The log stores whole ms.
    const receivedAtMs = Math.floor(uplink.receivedAtMs);
    const [digest, buffered] = [uplinkDigest(bytes), uplink.buffered ? 1 : 0];
    // Both objects are spelled out, since V8 takes over 1 µs for each property that it adds to a spread object.
    const sum = uplinkSum({
      id,
      device_id: deviceId,
      merchant_id: merchantId,
      credential_id: credentialId,
      boot,
      sequence,
      digest,
      kind,
      bytes,
      received_at_ms: receivedAtMs,
      buffered,
    });
    this.uplinks.push({
      id,
      deviceId,
      merchantId,
      credentialId,
      boot,
      sequence,
      receivedAtMs,
      kind,
      buffered,
      digest,
      bytes,
      sum,
      stagedId,
    });
  }

  /** Adds an event. Its key is the credential 0, which no lock has, the boot 0 and its own id. */
  addEvent(id: number, { deviceId, merchantId, kind, atMs, content, stagedId }: MerchantEventRow): void {
    const key = { credentialId: 0, boot: 0, sequence: id };
    const bytes = Buffer.from(content);
    this.addUplink(id, { deviceId, merchantId, ...key, kind, bytes, receivedAtMs: atMs, buffered: false }, stagedId);
  }

  /** Adds the results of judging. A withdrawal removes the finding from this batch, or from the stored ones. */
  addJudged({ judged }: Commit): void {
    for (const { deviceId, withdrawn, findings } of judged) {
      for (const withdrawal of withdrawn) {
        this.withdrawn.push({ deviceId, withdrawal });
        this.findings = this.findings.filter((each) => !isWithdrawn(each, deviceId, withdrawal));
      }
      for (const finding of findings) this.findings.push({ deviceId, finding });
    }
  }

  /** Adds a change to a command. Returns false if it can't apply: the command is answered before it. */
  addCommand(change: CommandChange): boolean {
    const known = this.commands.get(change.id);
    const row = known ?? { id: change.id, sends: 0, firstAtMs: 0, lastAtMs: 0, answers: new Map() };
    if (known === undefined) this.commands.set(change.id, row);
    if (change.type === 'acknowledged') {
      if (row.answers.has(change.deviceId)) return false;
      row.answers.set(change.deviceId, change);
      return true;
    }
    if (row.answers.size > 0) return false;
    if (row.sends === 0) row.firstAtMs = change.atMs;
    row.sends += 1;
    row.lastAtMs = change.atMs;
    return true;
  }
}

function isWithdrawn(
  { deviceId, finding }: CommitBatch['findings'][number],
  ofDevice: number,
  { rule, about }: Withdrawal,
): boolean {
  const { about: key } = finding;
  return (
    deviceId === ofDevice &&
    finding.rule === rule &&
    key !== null &&
    key.credential === about.credential &&
    key.boot === about.boot &&
    key.sequence === about.sequence
  );
}
