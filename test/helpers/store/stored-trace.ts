/**
 * Stores a trace (recorded events of a lock) as if the gateway had received it: uplinks (the lock's messages), events,
 * findings (objections to the lock) and the lock's state, in one commit. For tests that read from a store.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { newDeviceState, noteUplink } from '../../../gateway/locks/device-state.js';
import { type Incoming, type Judged, UPLINK_KINDS } from '../../../gateway/store/contract/log/commit.js';
import type { Store } from '../../../gateway/store/contract/store.js';
import { uplinkDigest } from '../../../gateway/webhooks/event-id.js';
import { newBelief } from '../../../proto/power/judge/belief.js';
import { type JudgeEvent, newVerdict } from '../../../proto/power/judge/event.js';
import { judgeInPlace } from '../../../proto/power/judge/judge.js';
import { POWER_MODEL } from '../../../proto/power/model.js';
import { TraceReader } from '../../../proto/trace/reader.js';
import { type TraceEvent, type TraceLock, UNNAMED_LOCK } from '../../../proto/trace/trace.js';
import { encodeUplink } from '../../../proto/wire/codec.js';
import { formatMac, type Mac } from '../../../proto/wire/mac.js';
import { MERCHANT } from '../gateway/test-gateway.js';
import { root } from '../house/our-files.js';

/** The lock whose trace was stored. */
export interface StoredTrace {
  readonly mac: Mac;
  readonly deviceId: number;
  /** The id of a finding of each rule that the trace breaks. */
  readonly findings: ReadonlyMap<string, number>;
}

/** The events of a hand-written trace, and what its header says of its lock. */
export function readHandTrace(file: string): { readonly events: TraceEvent[]; readonly lock: TraceLock } {
  return readTraceLines(
    readFileSync(join(root, 'test/traces', file), 'utf8')
      .trimEnd()
      .split('\n'),
  );
}

/** The events of a trace's lines, and what its header says of its lock. */
export function readTraceLines(lines: readonly string[]): { readonly events: TraceEvent[]; readonly lock: TraceLock } {
  const reader = new TraceReader();
  const events: TraceEvent[] = [];
  for (const line of lines) {
    const event = reader.read(line);
    if (!event.ok) throw new Error(event.error.message);
    if (event.value !== null) events.push(event.value);
  }
  return { events, lock: [...(reader.header?.locks.values() ?? [])][0] ?? UNNAMED_LOCK };
}

/** A trace's event as an input of the judge, which checks a lock's messages against the power model. */
export function judgeEventOf(event: TraceEvent): JudgeEvent {
  const { atMs } = event;
  switch (event.event) {
    case 'ping':
    case 'ack':
      return { type: 'uplink', source: event.source, credential: 0, novelty: 'new', uplink: event.uplink, atMs };
    case 'connect':
      return { type: 'connect', source: event.source, atMs };
    case 'disconnect':
      return { type: 'disconnect', source: event.source, cause: event.cause, atMs };
    case 'command':
      return { type: 'command', id: event.id, command: event.command, expiresMs: event.expiresMs, atMs };
    case 'gateway':
      return { type: 'gateway', state: event.state, atMs };
    // Other events, such as what happens around the lock, only tell the judge the time.
    default:
      return { type: 'tick', atMs };
  }
}

/**
 * Stores the events as those of a new lock of the merchant. The judge's belief (the state that it concludes from the
 * lock's messages) starts from the state that `lock` describes.
 */
export async function storeEvents(
  store: Store,
  mac: Mac,
  { events, lock }: { readonly events: readonly TraceEvent[]; readonly lock: TraceLock },
): Promise<StoredTrace> {
  const nowMs = events[0]?.atMs ?? 0;
  const secretHash = Buffer.alloc(32, 1);
  const device = await store.addDevice({ mac, merchant: MERCHANT, simulated: true, secretHash, nowMs });
  const credential = (await store.findLock(mac))?.credentials[0]?.id ?? 0;
  const { highWindow, connected: isConnected, ...known } = lock;
  const window = highWindow === null ? {} : { highWindow };
  const initial = { ...known, ...window, isConnected, listeningSinceMs: nowMs };
  const belief = newBelief(POWER_MODEL, formatMac(mac), nowMs, initial);
  const state = { ...newDeviceState(mac, nowMs, nowMs), belief };
  const incoming: Incoming[] = [];
  const judged: Judged[] = [];
  const storedKeys = new Set<string>();
  for (const traceEvent of events) {
    const judgeEvent = judgeEventOf(traceEvent);
    const verdict = newVerdict();
    let event: JudgeEvent = judgeEvent;
    if (judgeEvent.type === 'uplink') {
      const bytes = Buffer.from(encodeUplink(judgeEvent.uplink));
      const { boot, sequence, body } = judgeEvent.uplink;
      const digest = uplinkDigest(bytes);
      const uplinkKey = `${boot}/${sequence}`;
      event = { ...judgeEvent, credential, novelty: storedKeys.has(uplinkKey) ? 'conflict' : 'new' };
      storedKeys.add(uplinkKey);
      noteUplink(state, credential, judgeEvent.uplink, judgeEvent.atMs);
      incoming.push({
        type: 'uplink',
        deviceId: device.id,
        merchantId: device.merchantId,
        credentialId: credential,
        boot,
        sequence,
        digest,
        kind: UPLINK_KINDS.indexOf(body.kind),
        bytes,
        receivedAtMs: judgeEvent.atMs,
        buffered: judgeEvent.atMs - judgeEvent.uplink.timeMs > POWER_MODEL.bounds.bufferedOver,
      });
    } else if (judgeEvent.type !== 'tick') {
      // A lock event has the members of the judge's event; TypeScript can't match the types one by one.
      const { type, atMs, ...rest } = judgeEvent as JudgeEvent & Record<string, unknown>;
      incoming.push({ type: 'lock-event', deviceId: device.id, atMs, event: { event: type, ...rest } as never });
    }
    judgeInPlace(POWER_MODEL, belief, event, verdict);
    judged.push({ deviceId: device.id, ...verdict });
  }
  await store.append({ incoming, judged, states: new Map([[device.id, JSON.stringify(state)]]) });
  const findings = new Map<string, number>();
  for (const { id, finding } of await store.readFindings(device.id, 1000)) findings.set(finding.rule, id);
  return { mac, deviceId: device.id, findings };
}
