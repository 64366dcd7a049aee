/**
 * Compares the diaries of locks (which pings were acknowledged) with the diary of the merchant (which webhooks
 * arrived), without asking the gateway. Returns every broken promise of the gateway: an acknowledged ping arrives, with
 * one id and one body, and in the order in which the lock made it.
 */
import type { PingKey } from './diary-lock.js';
import type { Arrival } from './diary-merchant.js';

/**
 * How a promise is broken. `too-few-acked` says that the run proves nothing; `changed-on-repeat`: one id came with two
 * bodies; `never-sent`: a webhook came for a ping that no lock made.
 */
export type BrokenPromise =
  | 'too-few-acked'
  | 'missing'
  | 'two-ids-for-a-ping'
  | 'one-id-for-two-pings'
  | 'changed-on-repeat'
  | 'out-of-order'
  | 'never-sent';

/** A broken promise; the message names the ping. */
export interface Finding {
  readonly broken: BrokenPromise;
  readonly message: string;
}

/** A lock's diary. */
export interface LockDiary {
  readonly mac: string;
  readonly acked: readonly PingKey[];
  /** Uplinks that were sent but never acknowledged: they may arrive or not. */
  readonly unacked: readonly PingKey[];
  /** Uplinks that the lock may send before older ones (protocol.md §2); none if undefined. */
  readonly overtaking?: readonly PingKey[];
}

/**
 * Returns every broken promise; empty if there is none. A run with fewer than `minAcked` acknowledgements proves
 * nothing, which is a finding too.
 */
export function checkDeliveries(
  locks: readonly LockDiary[],
  arrivals: readonly Arrival[],
  minAcked: number,
): readonly Finding[] {
  const findings: Finding[] = [];
  const addFinding = (broken: BrokenPromise, message: string): void => void findings.push({ broken, message });
  const acked = locks.reduce((sum, lock) => sum + lock.acked.length, 0);
  if (acked < minAcked)
    addFinding('too-few-acked', `${acked} pings were acknowledged: at least ${minAcked} are needed`);

  const idOfPing = new Map<string, string>();
  const firstArrivalOfId = new Map<string, { readonly ping: string; readonly bodyHash: string }>();
  const accepted = new Set<string>();
  /** For each lock, the newest ping that has arrived; what arrives for the first time after it must be newer. */
  const lastNewPing = new Map<string, PingKey>();
  const overtaking = new Set(
    locks.flatMap((lock) => (lock.overtaking ?? []).map((pingKey) => keyOf(lock.mac, pingKey))),
  );
  for (const arrival of arrivals) {
    const { webhookId, bodyHash } = arrival;
    const ping = keyOf(arrival.mac, arrival);
    if (arrival.accepted) accepted.add(ping);
    const id = idOfPing.get(ping);
    if (id === undefined) {
      idOfPing.set(ping, webhookId);
      const newestBefore = lastNewPing.get(arrival.mac);
      if (newestBefore !== undefined && isAfter(newestBefore, arrival))
        addFinding(
          'out-of-order',
          `ping ${ping} came for the first time after ${keyOf(arrival.mac, newestBefore)} had`,
        );
      const isNewest = newestBefore === undefined || isAfter(arrival, newestBefore);
      if (isNewest && !overtaking.has(ping)) lastNewPing.set(arrival.mac, arrival);
    } else if (id !== webhookId) addFinding('two-ids-for-a-ping', `ping ${ping} came as ${id} and as ${webhookId}`);
    const firstArrival = firstArrivalOfId.get(webhookId);
    if (firstArrival === undefined) firstArrivalOfId.set(webhookId, { ping, bodyHash });
    else if (firstArrival.ping !== ping)
      addFinding('one-id-for-two-pings', `${webhookId} came for ${firstArrival.ping} and for ${ping}`);
    else if (firstArrival.bodyHash !== bodyHash) addFinding('changed-on-repeat', `${webhookId} came with two bodies`);
  }

  const sent = new Set<string>();
  for (const { mac, acked, unacked } of locks) {
    for (const pingKey of [...acked, ...unacked]) sent.add(keyOf(mac, pingKey));
    for (const pingKey of acked) {
      const ping = keyOf(mac, pingKey);
      if (!accepted.has(ping))
        addFinding('missing', `ping ${ping} was acknowledged, but the merchant never accepted it`);
    }
  }
  for (const ping of idOfPing.keys()) {
    if (!sent.has(ping)) addFinding('never-sent', `ping ${ping} arrived and no lock made it`);
  }
  return findings;
}

/** Whether a lock made uplink `a` after uplink `b` (protocol.md §1: ordered by boot, then by sequence). */
function isAfter(a: PingKey, b: PingKey): boolean {
  return a.boot === b.boot ? a.sequence > b.sequence : a.boot > b.boot;
}

function keyOf(mac: string, { boot, sequence }: PingKey): string {
  return `${mac}/${boot}/${sequence}`;
}

/** Summarises findings: the number of each kind, and the first sentences. */
export function summarize(findings: readonly Finding[]): string {
  const counts = new Map<string, number>();
  for (const { broken } of findings) counts.set(broken, (counts.get(broken) ?? 0) + 1);
  const kinds = [...counts].map(([broken, count]) => `${count} ${broken}`).join(', ');
  return [kinds === '' ? 'nothing is broken' : kinds, ...findings.slice(0, 5).map(({ message }) => message)].join('\n');
}
