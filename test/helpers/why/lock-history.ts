// The history of one lock for tests of `why`, which explains what happened to a lock in steps, each a sentence with a
// kind and a code. Has the lock's pings and commands on 2026-11-20 as inputs of the judge, the code that checks a
// lock's messages.
import type { DisconnectCause, JudgeEvent } from '../../../proto/power/judge/event.js';
import type { LockState, Ping } from '../../../proto/wire/ping.js';
import type { Reason } from '../../../proto/wire/reasons.js';
import { cellular, uplink } from '../pair/judged-uplinks.js';

/** Later than all traces, so that each moment in a trace is in the past. */
export const NOW = Date.UTC(2026, 10, 22, 12);

/** The sentence of the first step of this kind and code; a text that says so if there is none. */
export function sentenceOf(
  steps: readonly { kind: string; code: string; sentence: string }[],
  kind: string,
  code?: string,
) {
  const match = steps.find((step) => step.kind === kind && (code === undefined || step.code === code));
  return match?.sentence ?? `no step ${kind} ${code ?? ''}`;
}

/** The lock. */
export const MAC = 'A4:C1:38:F0:E1:D2';
/** A time of that day, such as `06:30:05`, in ms since the epoch. */
export const at = (time: string): number => Date.parse(`2026-11-20T${time}.000Z`);

/** A GPS ping. */
export const gps = (reason: Reason, lockState: LockState = 'locked'): Ping => ({
  kind: 'gps',
  reason,
  lockState,
  batteryPercent: 80,
  ebikeVolts: null,
  tetherState: 'detached',
  position: { latitudeDegrees: 52, longitudeDegrees: 4, uncertaintyMeters: 8 },
  speedMetersPerSecond: 0,
  directionDegrees: 0,
});
/** A close-connection ping, which a lock sends before it disconnects. */
export const close = (batteryPercent = 80): Ping => ({
  kind: 'close_connection',
  reason: 'REASON_CLOSE_CONNECTION',
  lockState: 'locked',
  batteryPercent,
});
/** A command that the gateway sends at 06:29:59. */
export const command = (id: number, type: 'unlock' | 'locate-gps' | 'locate-cell' | 'reset'): JudgeEvent => {
  return { type: 'command', id, command: { type }, atMs: at('06:29:59') };
};

/**
 * The events of a connection from 06:01 to 06:02 on which the lock sends a ping with this body, and a close-connection
 * ping unless the connection ends otherwise. An uplink arrives as many ms after 06:01 as its sequence number.
 */
export function visit(body: Ping, power: object = {}, cause: DisconnectCause = 'closed', boot = 1): JudgeEvent[] {
  const uplinkEvent = (sequence: number, sentBody: Ping): JudgeEvent => ({
    type: 'uplink',
    source: 'lock',
    credential: 0,
    novelty: 'new',
    atMs: at('06:01:00') + sequence,
    uplink: uplink({ boot, sequence, timeMs: at('06:01:00'), power, body: sentBody }),
  });
  const closing = cause === 'closed' ? [uplinkEvent(2, close(body.batteryPercent))] : [];
  return [
    { type: 'connect', source: 'lock', atMs: at('06:01:00') },
    uplinkEvent(1, body),
    ...closing,
    { type: 'disconnect', source: 'lock', cause, atMs: at('06:02:00') },
  ];
}

/** The ping that a lock sends daily. */
export const DAILY = cellular({ reason: 'REASON_PERIOD_TRACKING' });

/** Connections on which the lock reports that it is in mode HIGH, or in recovery. */
export const HIGH = visit(cellular(), { mode: 'HIGH' });
export const RECOVERY = visit(cellular(), { recovery: true });
