/**
 * `lockgate webhook trigger`: sends the pings of a story as test webhooks (interfaces.md §3). A story is a short
 * scripted course of events for one simulated lock, such as a theft.
 */
import { STORIES, type Story } from '../../../firmware-sim/story/story.js';
import { runStory, type StoryLock, type StoryPing } from '../../../firmware-sim/story/story-run.js';
import { type Milliseconds, Seconds, systemClock } from '../../../proto/clock.js';
import { didYouMean } from '../../../proto/did-you-mean.js';
import { LockgateError } from '../../../proto/errors.js';
import { describePing } from '../../../proto/wire/codec.js';
import { formatMac, type Mac, parseMac } from '../../../proto/wire/mac.js';
import type { TetherState } from '../../../proto/wire/ping.js';
import { formatDate, type PingJson, pingUplinkToJson } from '../../../proto/wire/ping-json.js';
import { type ConnectionFlags, GatewayClient } from '../../client.js';
import { EXIT_CODE } from '../../terminal/exit-codes.js';
import type { Interruption } from '../../terminal/interrupt.js';
import { paint, print, printJson, printJsonLine, printNote, sanitizeLine } from '../../terminal/output.js';
import { ProgressLine } from '../../terminal/progress-line.js';
import { printTable } from '../../terminal/table.js';
import type { TestJson } from './try.js';

/** The flags of `lockgate webhook trigger`. */
export interface TriggerFlags extends ConnectionFlags {
  readonly json?: boolean;
  readonly list?: boolean;
  readonly fast?: boolean;
  readonly url?: number;
}

/**
 * The boot number of a story's pings. A lock numbers its uplinks by boot (its restarts, from 1) and sequence, so test
 * pings sort before all real pings and don't disturb their order.
 */
const STORY_BOOT = 0;
/**
 * The first sequence of a story is the current time in units of 10 ms. No story has more than 100 pings per second, so
 * each story has higher sequences than the one before. After 497 days the field of 32 bits is full and sequences start
 * again, in time for a story of up to 100 pings.
 */
const SEQUENCE_UNIT_MS: Milliseconds = 10;
const SEQUENCE_LIMIT = 2 ** 32 - 100;

/** Assumed for a lock that has sent no ping yet. */
const UNKNOWN_LOCK = {
  firmwareVersion: '2.4.1',
  batteryPercent: 80,
  ebikeVolts: null,
  tetherState: 'detached',
} as const;

/** Below this battery level a lock only reports a theft (specification, Device power modes and switches). */
const MIN_BATTERY_PERCENT = 10;

/** A story in the list of stories. */
interface StoryRow {
  readonly story: string;
  readonly sentence: string;
  readonly pings: number;
  /** From the first ping to the last. */
  readonly seconds: number;
}

/** Prints the stories with the number and duration of their pings. */
export function listStories({ json }: TriggerFlags): void {
  const mac = parseMac('A4:C1:38:F0:E1:D2');
  if (!mac.ok) throw new Error(mac.error.message);
  const rows = STORIES.map((story): StoryRow => {
    const pings = runStory(
      story,
      { mac: mac.value, ...UNKNOWN_LOCK, place: null },
      { startMs: 0, boot: 0, firstSequence: 1 },
    );
    const seconds = Math.round((pings.at(-1)?.afterMs ?? 0) / Seconds(1));
    return { story: story.name, sentence: story.sentence, pings: pings.length, seconds };
  });
  if (json) printJson({ stories: rows });
  else printStories(rows);
}

function printStories(rows: readonly StoryRow[]): void {
  printTable(rows, [
    { title: 'STORY', show: (row) => row.story },
    { title: 'PINGS', show: (row) => String(row.pings) },
    { title: 'LASTS', show: (row) => minutesAndSeconds(Seconds(row.seconds)) },
    { title: 'WHAT HAPPENS', show: (row) => row.sentence },
  ]);
}

/**
 * Sends a story's pings. Shows each ping and the answer of each URL.
 * @throws LockgateError `input-story`, `bad-mac`, or the gateway's own code
 */
export async function triggerStory(
  name: string | undefined,
  macText: string | undefined,
  flags: TriggerFlags,
  interrupted: Interruption,
): Promise<void> {
  const story = findStory(name);
  const mac = parseMac(macText ?? '');
  if (!mac.ok)
    throw new LockgateError(
      'bad-mac',
      macText === undefined ? 'the lock is missing: expected a MAC' : mac.error.message,
    );
  const client = new GatewayClient(flags);
  const lock = readLock(mac.value, await client.get<DeviceJson>(`/devices/${mac.value}`));
  const nowMs = systemClock.now();
  const firstSequence = Math.floor(nowMs / SEQUENCE_UNIT_MS) % SEQUENCE_LIMIT;
  const pingsFrom = (startMs: number) => runStory(story, lock, { startMs, boot: STORY_BOOT, firstSequence });
  const durationMs = pingsFrom(nowMs).at(-1)?.afterMs ?? 0;
  // With --fast the story ends now, so that no ping has a future date.
  const startMs = flags.fast ? nowMs - durationMs : nowMs;
  const pings = pingsFrom(startMs);
  if (!flags.json) {
    const span = flags.fast ? 'without waiting' : `over ${minutesAndSeconds(durationMs)}`;
    printNote(`${story.name}: ${pings.length} pings of ${formatMac(lock.mac)}, ${span}. ${story.sentence}`);
  }
  const outcome = await sendPings({ client, mac: lock.mac, startMs, flags, interrupted }, pings);
  if (interrupted.signal.aborted) {
    printNote(`Interrupted: ${outcome.sent} of ${pings.length} pings were sent.`);
    process.exitCode = interrupted.exitCode;
  } else if (outcome.failed > 0) {
    printNote(`${outcome.failed} of ${pings.length} pings were not accepted by every URL.`);
    process.exitCode = EXIT_CODE.negativeAnswer;
  }
}

function findStory(name: string | undefined): Story {
  const story = STORIES.find((each) => each.name === name);
  if (story !== undefined) return story;
  const names = STORIES.map((each) => each.name);
  const what = name === undefined ? 'the story is missing.' : `there is no story ${JSON.stringify(name)}.`;
  throw new LockgateError(
    'input-story',
    `${what} Expected one of ${names.join(', ')}.${didYouMean(name ?? '', names)}`,
  );
}

/** The part of `GET /devices/:mac` that a story needs. */
interface DeviceJson {
  readonly state: {
    readonly battery_percent: number | null;
    readonly latitude: number | null;
    readonly longitude: number | null;
  } | null;
  readonly uplinks: readonly { readonly ping?: PingJson }[];
}

/** The lock in its last known state. A low battery counts as charged, because such a lock hardly sends pings. */
function readLock(mac: Mac, { state, uplinks }: DeviceJson): StoryLock {
  const pings = uplinks.flatMap(({ ping }) => (ping === undefined ? [] : [ping]));
  const cellular = pings.find((ping) => ping.ping_type === 'cellular');
  // A close_connection ping has neither e-bike voltage nor tether state.
  const detailed = pings.find((ping) => ping.ping_type !== 'close_connection');
  const { battery_percent: battery = null, latitude = null, longitude = null } = state ?? {};
  const isCharged = battery !== null && battery >= MIN_BATTERY_PERCENT && battery <= 100;
  return {
    mac,
    firmwareVersion: cellular?.firmware_version ?? UNKNOWN_LOCK.firmwareVersion,
    batteryPercent: isCharged ? battery : UNKNOWN_LOCK.batteryPercent,
    ebikeVolts: detailed?.ebike_voltage ?? null,
    // A tether state of the gateway: it stores no ping with another one.
    tetherState: (detailed?.tether_state ?? UNKNOWN_LOCK.tetherState) as TetherState,
    place: latitude === null || longitude === null ? null : { latitudeDegrees: latitude, longitudeDegrees: longitude },
  };
}

/** What {@link sendPings} needs besides the pings. */
interface StorySending {
  readonly client: GatewayClient;
  readonly mac: Mac;
  /** The receipt time of the first ping, ms since the epoch. */
  readonly startMs: number;
  readonly flags: TriggerFlags;
  readonly interrupted: Interruption;
}

/** Sends the pings in order, each when it is due and after all answers to the previous ping. */
async function sendPings(
  sending: StorySending,
  pings: readonly StoryPing[],
): Promise<{ sent: number; failed: number }> {
  const { client, mac, startMs, flags, interrupted } = sending;
  let sent = 0;
  let failed = 0;
  for (const ping of pings) {
    const atMs = startMs + ping.afterMs;
    if (!flags.fast) await untilTime(atMs, interrupted, `ping ${sent + 1} of ${pings.length}`);
    if (interrupted.signal.aborted) break;
    const body = {
      ping: pingUplinkToJson(ping.uplink),
      received_at: formatDate(atMs),
      ...(flags.url !== undefined && { url_id: flags.url }),
    };
    const answer = await client
      .post<TestJson>(`/devices/${mac}/test-webhook`, body, interrupted.signal)
      .catch((error: Error) => {
        if (interrupted.signal.aborted) return undefined;
        throw error;
      });
    if (answer === undefined) break;
    sent += 1;
    if (answer.status !== 'success') failed += 1;
    printSentPing(ping, answer, flags);
  }
  return { sent, failed };
}

/** Waits until a wall-clock time, or until Ctrl-C. `what` is the text of the progress line. */
async function untilTime(atMs: number, interrupted: Interruption, what: string): Promise<void> {
  const remaining = (): Milliseconds => atMs - systemClock.now();
  if (remaining() <= 0) return;
  const progress = new ProgressLine(() => `${what} in ${minutesAndSeconds(remaining())}`);
  await new Promise<void>((resolve) => {
    const timer = systemClock.after(remaining(), resolve);
    void interrupted.happened.then(() => {
      timer.cancel();
      resolve();
    });
  });
  progress.end();
}

function printSentPing({ afterMs, uplink }: StoryPing, answer: TestJson, { json }: TriggerFlags): void {
  const { event_id, status, deliveries } = answer;
  if (json) {
    const { ping_type, reason, date } = pingUplinkToJson(uplink);
    printJsonLine({ after_seconds: afterMs / Seconds(1), ping_type, reason, date, event_id, status, deliveries });
    return;
  }
  print(`${minutesAndSeconds(afterMs).padStart(6)}  ${sanitizeLine(describePing(uplink.body))}`);
  for (const { url_id, origin, status: code, duration_ms: took, error } of deliveries) {
    const result = `${code ?? 'no answer'}${took === null ? '' : ` in ${took} ms`}`;
    const verdict = error === null ? paint('green', 'received') : paint('red', sanitizeLine(error));
    print(`        URL ${url_id}  ${origin}  ${result}  ${verdict}`);
  }
}

/** `3:24`, for example. */
function minutesAndSeconds(span: Milliseconds): string {
  const seconds = Math.max(0, Math.round(span / Seconds(1)));
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}
