/**
 * Explains a moment at which nothing came from a lock: how its last connection ended, what came last, what came next,
 * and whether the lock was out of reach (protocol.md §2 and §3). Pure.
 */
import type { Belief } from '../power/judge/belief.js';
import type { DisconnectCause, JudgeEvent, UplinkEvent } from '../power/judge/event.js';
import { describeSpan, describeTime } from '../power/judge/words.js';
import type { PowerModel } from '../power/model.js';
import { type JudgedHistory, ownUplinks, uplinkLabel } from './history.js';
import { SECTIONS, type Section, step, type WhyStep } from './step.js';

/** How to explain one cause of a connection's end. */
interface EndRow {
  /** The sentence for a connection that had its close-connection ping. */
  readonly closed: string;
  /** The sentence for a connection without one. */
  readonly unclosed: string;
  readonly restsOn: Section;
}

const OUT_OF_REACH_TEXT =
  'the network may have lost it; a lock with something to send retries after 10, 30 and 60 s, then every 5 min, and ' +
  'buffers up to 256 uplinks meanwhile';

/** How connections end, by cause (protocol.md §4). */
export const CONNECTION_END_WHY: Readonly<Record<DisconnectCause, EndRow>> = Object.freeze({
  closed: {
    closed: 'the lock announced it with a close-connection ping and disconnected',
    unclosed: 'the lock disconnected, without a close-connection ping',
    restsOn: SECTIONS.ping,
  },
  dropped: {
    closed: 'the connection broke off after its close-connection ping',
    unclosed: `the connection broke off without a close-connection ping: ${OUT_OF_REACH_TEXT}`,
    restsOn: SECTIONS.model,
  },
  keepalive: {
    closed: 'nothing more came on it after its close-connection ping, so the gateway closed it',
    unclosed: `nothing came on it for one and a half keepalives, so the gateway closed it: ${OUT_OF_REACH_TEXT}`,
    restsOn: SECTIONS.model,
  },
  takeover: {
    closed: 'the lock connected again after its close-connection ping',
    unclosed: 'the lock connected again while it counted as connected: it had lost the old connection',
    restsOn: SECTIONS.judge,
  },
  gateway: {
    closed: 'the gateway closed it, after its close-connection ping',
    unclosed: 'the gateway closed it (it stopped, or the lock’s credential or account changed): not the lock’s doing',
    restsOn: SECTIONS.traces,
  },
});

/** How the lock's last connection ended; no step if the lock is connected or never was. */
export function lastConnectionEndStep({ before, belief }: JudgedHistory): WhyStep[] {
  const lastDisconnect = before.findLast((event) => event.type === 'disconnect' && event.source === 'lock');
  const lastGatewayEvent = before.findLast((event) => event.type === 'gateway');
  if (belief.isConnected || belief.offlineSinceMs === null) return [];
  const { offlineSinceMs, closeSeen } = belief;
  // When the gateway starts or stops, connections end without a disconnect event.
  const isByGateway = lastGatewayEvent?.atMs === offlineSinceMs && lastDisconnect?.atMs !== offlineSinceMs;
  const cause = isByGateway || lastDisconnect?.type !== 'disconnect' ? 'gateway' : lastDisconnect.cause;
  const row = CONNECTION_END_WHY[cause];
  const how = closeSeen === 'none' ? row.unclosed : row.closed;
  return [
    step(
      'connection',
      cause,
      row.restsOn,
      `Its last connection ended at ${describeTime(offlineSinceMs)}: ${how}.`,
      offlineSinceMs,
    ),
  ];
}

/** The step about the last uplink of the lock before the moment. */
export function lastUplinkStep({ before, isCut }: JudgedHistory): WhyStep {
  const last = ownUplinks(before).at(-1);
  if (last !== undefined)
    return step('before', 'last-uplink', SECTIONS.wire, `The last uplink before it: ${uplinkText(last)}.`, last.atMs);
  const sentence = isCut ? 'The events that were read contain no uplink from it.' : 'No uplink had come from it.';
  return step('before', 'nothing', SECTIONS.wire, sentence);
}

/** Names an uplink in a sentence. */
export function uplinkText({ uplink, atMs }: UplinkEvent): string {
  const { body } = uplink;
  const what = body.kind === 'ack' ? `the acknowledgement of command ${body.commandId}` : `a ping ${body.reason}`;
  return `${what} (${uplinkLabel(uplink)}), received at ${describeTime(atMs)}`;
}

/** The steps about what came after the moment, and what that reveals about the moment. */
export function afterMomentSteps(model: PowerModel, { after }: JudgedHistory, momentMs: number): WhyStep[] {
  const steps: WhyStep[] = [];
  // If the next gateway event is a start, the gateway was not listening at the moment.
  const listening = after.find((event) => event.type === 'gateway' && event.state === 'start');
  const stopped = after.find((event) => event.type === 'gateway' && event.state === 'stop');
  if (listening !== undefined && (stopped === undefined || listening.atMs < stopped.atMs))
    steps.push(
      step(
        'after',
        'listening',
        SECTIONS.judge,
        `The gateway listened again from ${describeTime(listening.atMs)} on.`,
        listening.atMs,
      ),
    );
  const next = after.find(isContact);
  if (next === undefined) steps.push(step('after', 'nothing', SECTIONS.judge, 'Nothing has come from it since.'));
  else {
    const what = next.type === 'uplink' ? uplinkText(next) : `it connected at ${describeTime(next.atMs)}`;
    const span = describeSpan(next.atMs - momentMs);
    steps.push(step('after', 'next-contact', SECTIONS.judge, `Next contact: ${what}, ${span} later.`, next.atMs));
  }
  return [...steps, ...outOfReachStep(model, after, momentMs)];
}

function isContact(event: JudgeEvent): boolean {
  return (event.type === 'connect' || event.type === 'uplink') && event.source === 'lock';
}

/** Uplinks that were made before the moment and arrived late show that the lock could not reach the gateway then. */
function outOfReachStep({ bounds }: PowerModel, after: readonly JudgeEvent[], momentMs: number): WhyStep[] {
  const late = ownUplinks(after).filter(({ uplink, atMs }) => {
    return uplink.timeMs <= momentMs && atMs - uplink.timeMs > bounds.bufferedOver;
  });
  const [first] = late;
  if (first === undefined) return [];
  const count = late.length === 1 ? 'One uplink' : `${late.length} uplinks`;
  const lateBy = describeSpan(first.atMs - first.uplink.timeMs);
  const sentence =
    `${count} made before then arrived late, from ${describeTime(first.atMs)} on, the first ${lateBy} after it was ` +
    'made: the lock was out of reach and buffered them.';
  return [step('after', 'out-of-reach', SECTIONS.model, sentence, first.atMs)];
}

/** The step about the gateway's view of the lock at the moment, which is now or, with `isPast`, in the past. */
export function believedStep(model: PowerModel, belief: Belief, momentMs: number, isPast: boolean): WhyStep {
  const { state, lockState, batteryPercent, powerFrom } = belief;
  const battery = batteryPercent === null ? 'battery unknown' : `battery ${batteryPercent} %`;
  // Before the first uplink, the boot is −1.
  const from = powerFrom.boot < 0 ? 'before any uplink' : `from uplink ${uplinkLabel(powerFrom)}`;
  const row = model.states.find((each) => each.state === state);
  const view = isPast ? 'view then' : 'current view';
  const words = `The gateway’s ${view}, ${from}: ${state}, ${lockState}, ${battery}.`;
  const sentence = `${words} ${row?.sentence ?? ''}`;
  return step('state', state, SECTIONS.model, sentence.trim(), momentMs);
}
