/**
 * `lockgate sim shadow`: follows a real lock on the operator interface's live stream and compares its uplinks (its
 * messages) with those of a simulated lock, its shadow, in the same circumstances (firmware-sim/inference/shadow).
 */
import { kindOf } from '../../../../firmware-sim/inference/shadow/comparison.js';
import {
  LockShadow,
  type ShadowDifference,
  type ShadowNews,
} from '../../../../firmware-sim/inference/shadow/shadow.js';
import { type Milliseconds, Minutes, Seconds, systemClock } from '../../../../proto/clock.js';
import { LockgateError } from '../../../../proto/errors.js';
import { TraceReader } from '../../../../proto/trace/reader.js';
import { REASON_WHY } from '../../../../proto/why/reasons.js';
import { describeUplink } from '../../../../proto/wire/codec.js';
import { formatMac } from '../../../../proto/wire/mac.js';
import { formatDate, isDatable } from '../../../../proto/wire/ping-json.js';
import { isKnownReason } from '../../../../proto/wire/reasons.js';
import { GatewayClient } from '../../../client.js';
import { readClocks } from '../../../gateway-clocks.js';
import { EXIT_CODE } from '../../../terminal/exit-codes.js';
import type { Interruption } from '../../../terminal/interrupt.js';
import { paint, print, printJsonLine, printNote, sanitizeLine } from '../../../terminal/output.js';
import { passOrAbort } from '../../../terminal/pass-or-abort.js';
import { readMac } from '../../../terminal/shared-flags.js';
import { plural } from '../summary.js';
import type { ShadowFlags } from './flags.js';

/**
 * How often the two locks are compared, in real time. Each comparison covers the events up to the time when the
 * previous comparison was made, since by now all of them have arrived.
 */
const COMPARE_INTERVAL: Milliseconds = Seconds(5);
/** The maximum time between two comparisons by the gateway's clock, which may be sped up. */
const MAX_GATEWAY_TIME_BETWEEN_COMPARISONS: Milliseconds = Minutes(5);

/**
 * Runs until `--for` is over, Ctrl-C, or the gateway closes the stream.
 *
 * @throws LockgateError `input-mac`, the gateway's errors, or `gateway-down` if it closes the stream
 */
export async function runShadow(macText: string, flags: ShadowFlags, interrupted: Interruption): Promise<void> {
  const mac = readMac(macText);
  const client = new GatewayClient(flags);
  const ending = new AbortController();
  const signal = AbortSignal.any([interrupted.signal, ending.signal]);
  const gatewayTime = async (): Promise<number> => (await readClocks(client, signal)).runMs;
  const startMs = await gatewayTime();
  const endMs = flags.for === undefined ? Number.POSITIVE_INFINITY : startMs + flags.for;
  const report = new ShadowReport(flags.json ?? false, formatMac(mac));
  const lines = await client.listen(`/trace/live?mac=${encodeURIComponent(formatMac(mac))}`, signal);
  const reader = new TraceReader();
  let shadow: LockShadow | undefined;
  let nowMs = startMs;
  // Compares the locks' uplinks up to a time of the gateway's clock.
  const compareUntil = (atMs: number): void => {
    nowMs = Math.max(nowMs, Math.min(atMs, endMs));
    if (shadow !== undefined) report.printChanges(shadow.compare(nowMs), nowMs);
    if (nowMs >= endMs) ending.abort();
  };
  let previousMs = startMs;
  const comparing = repeatEvery(
    COMPARE_INTERVAL,
    async () => {
      const currentMs = await gatewayTime();
      compareUntil(previousMs);
      previousMs = currentMs;
    },
    signal,
  );
  try {
    for await (const line of lines) {
      const parsed = reader.read(line);
      if (!parsed.ok) throw new LockgateError('gateway-answer', `the gateway’s stream: ${parsed.error.message}`);
      const event = parsed.value;
      // The header, which starts the simulated lock, and empty lines give no event.
      if (event === null) {
        if (reader.header === null || shadow !== undefined) continue;
        shadow = new LockShadow(reader.header, mac, startMs);
        report.printStart(shadow, startMs);
        continue;
      }
      if (event.atMs > endMs) {
        compareUntil(endMs);
        break;
      }
      // Uplinks that were due long before this event are compared before the event is added.
      if (event.atMs - nowMs > MAX_GATEWAY_TIME_BETWEEN_COMPARISONS) compareUntil(event.atMs);
      shadow?.add(event);
      if (event.event === 'disconnect') compareUntil(event.atMs);
    }
    if (!signal.aborted && nowMs < endMs) throw new LockgateError('gateway-down', 'the gateway closed the stream');
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    ending.abort();
    await comparing;
  }
  if (shadow === undefined) return;
  report.printChanges(shadow.compare(nowMs), nowMs);
  report.printEnd(shadow, nowMs - startMs);
  if (shadow.differences > 0) process.exitCode = EXIT_CODE.negativeAnswer;
}

/** Repeats a task until the signal fires. Ignores errors: if the gateway fails, its stream ends with an error too. */
async function repeatEvery(intervalMs: Milliseconds, task: () => Promise<void>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await passOrAbort(systemClock, intervalMs, signal);
    if (!signal.aborted) await task().catch(() => undefined);
  }
}

/** Prints differences as they are found, and the summary. */
class ShadowReport {
  readonly #isJson: boolean;
  readonly #mac: string;

  constructor(isJson: boolean, mac: string) {
    this.#isJson = isJson;
    this.#mac = mac;
  }

  /** `isAlive`: the simulated lock runs already; otherwise it starts when the real lock connects again. */
  printStart({ isAlive }: LockShadow, atMs: number): void {
    if (this.#isJson) {
      printJsonLine({ at: formatDate(atMs), mac: this.#mac, event: 'begin', connected: !isAlive });
      return;
    }
    printNote(`Comparing ${this.#mac} with a simulated lock. Press Ctrl-C to stop.`);
    if (!isAlive)
      printNote('The lock is connected: it is followed from its next connection, or its next network ping.');
  }

  /** Prints new differences, and earlier differences that a later uplink has explained. */
  printChanges({ found, explained }: ShadowNews, atMs: number): void {
    for (const difference of found) this.#printDifference(difference, atMs, 'difference');
    for (const difference of explained) this.#printDifference(difference, atMs, 'explained');
  }

  printEnd(shadow: LockShadow, span: Milliseconds): void {
    const { uplinks, differences } = shadow;
    if (this.#isJson) {
      printJsonLine({ event: 'end', mac: this.#mac, seconds: Math.round(span / Seconds(1)), uplinks, differences });
      return;
    }
    const text = `${plural(differences, 'difference')} in ${plural(uplinks, 'uplink')}.`;
    print(paint(differences > 0 ? 'red' : 'green', text));
    if (uplinks === 0) printNote('The lock sent nothing, so little can be said about it.');
  }

  #printDifference(difference: ShadowDifference, atMs: number, event: 'difference' | 'explained'): void {
    const { what, uplink, madeMs, isCertain } = difference;
    const madeAt = isDatable(madeMs) ? formatDate(madeMs) : null;
    if (this.#isJson) {
      const { body } = uplink;
      const isAck = body.kind === 'ack';
      printJsonLine({
        at: formatDate(atMs),
        mac: this.#mac,
        event,
        difference: what,
        made: madeAt,
        ping_type: isAck ? null : body.kind,
        reason: isAck ? null : body.reason,
        ...(isAck && { command_id: body.commandId }),
        ...(what === 'sent' && { boot: uplink.boot, sequence: uplink.sequence }),
        certain: isCertain,
        message: sanitizeLine(sentenceOf(difference)),
      });
      return;
    }
    const newLabel = paint(what === 'sent' ? 'yellow' : 'red', what.padEnd('explained'.length));
    const label = event === 'explained' ? paint('dim', 'explained') : newLabel;
    print(`${madeAt ?? madeMs}  ${label}  ${sanitizeLine(sentenceOf(difference))}`);
  }
}

/** What differs, in a sentence. `what` is `sent` for an uplink of the real lock only, otherwise it is missing. */
function sentenceOf({ what, uplink, isCertain }: ShadowDifference): string {
  const { body } = uplink;
  if (what === 'sent') return `${describeUplink(uplink)}: the model would not send it here.`;
  if (body.kind === 'ack')
    return `the acknowledgement of command ${body.commandId}: the model sends it, the lock did not.`;
  const doubt = isCertain ? '' : ' The lock has not been in touch since, so it may be out of coverage.';
  const missing = 'the model sends it, the lock did not';
  if (body.kind === 'close_connection') return `a close-connection ping: ${missing}.${doubt}`;
  const why = isKnownReason(body.reason) ? ` (${REASON_WHY[body.reason][body.kind]})` : '';
  return `a ${kindOf(uplink)} ping: ${missing}${why}.${doubt}`;
}
