/**
 * `lockgate trace replay`: sends the uplinks (messages of locks) of a trace to a running gateway over MQTT, and
 * compares the gateway's findings with those of `trace check`.
 */
import { setMaxListeners } from 'node:events';
import { type Milliseconds, Seconds } from '../../../../proto/clock.js';
import { LockgateError } from '../../../../proto/errors.js';
import { formatMac, type Mac } from '../../../../proto/wire/mac.js';
import { type ConnectionFlags, GatewayClient } from '../../../client.js';
import { readClocks } from '../../../gateway-clocks.js';
import { EXIT_CODE } from '../../../terminal/exit-codes.js';
import type { Interruption } from '../../../terminal/interrupt.js';
import { printJson, printNote } from '../../../terminal/output.js';
import { ProgressLine } from '../../../terminal/progress-line.js';
import { listAllDevices } from '../../device/all-devices.js';
import type { MqttTarget } from './connection.js';
import type { ReplayContext } from './lock.js';
import { lowestBoots, type ReplayPlan, readReplayPlan, shiftPlan } from './plan.js';
import { playReplay, type ReplaySpeed } from './player.js';
import { compareWithGateway, type Deviation, printReplay, type ReplayReport } from './report.js';
import { provisionLocks, readSecrets, requireSecrets, type Secrets } from './secrets.js';
import { ReplayWatch } from './watch.js';

/** The flags of `lockgate trace replay`. */
export interface ReplayFlags extends ConnectionFlags {
  readonly json?: boolean;
  readonly mqtt?: MqttTarget;
  readonly secrets?: string;
  readonly provision?: boolean;
  readonly merchant?: string;
  readonly speed: ReplaySpeed;
  readonly asNow?: boolean;
}

/** How long the gateway may take to report uplinks that it has acknowledged. */
const UPLINK_REPORT_TIMEOUT_MS = Seconds(3);
/**
 * How long to wait for further findings. The gateway reports findings about the end of a connection later than the
 * disconnect, and no event marks the last finding.
 */
const FINDING_REPORT_TIMEOUT_MS: Milliseconds = 250;
/** Listeners of the stop signal in addition to one per lock. */
const EXTRA_LISTENERS = 10;

/** The members of the gateway's status that a replay needs. */
interface Status {
  readonly mqtt: { readonly host: string; readonly port: number };
}

/**
 * Replays the file and prints the report. Sets exit code 1 if there are differences, 130 after Ctrl-C.
 *
 * @throws LockgateError as {@link runReplay}
 */
export async function replayTrace(file: string, flags: ReplayFlags, interrupted: Interruption): Promise<void> {
  const report = await runReplay(file, flags, interrupted);
  if (report === null) {
    process.exitCode = interrupted.exitCode;
    return;
  }
  if (flags.json) printJson(report);
  else printReplay(report);
  if (!report.same) process.exitCode = EXIT_CODE.negativeAnswer;
}

/**
 * Replays the file. Returns null if the replay was interrupted.
 *
 * @throws LockgateError `input-…` for a wrong file or flag, otherwise as {@link GatewayClient.get}
 */
export async function runReplay(
  file: string,
  flags: ReplayFlags,
  interrupted: Interruption,
): Promise<ReplayReport | null> {
  if (flags.secrets === undefined && !flags.provision)
    throw new LockgateError('input-secrets', 'locks need secrets: give --secrets FILE.csv or --provision');
  const givenSecrets = flags.secrets === undefined ? undefined : readSecrets(flags.secrets);
  const originalPlan = await readReplayPlan(file);
  if (givenSecrets !== undefined) requireSecrets(givenSecrets, originalPlan.macs, flags.secrets as string);
  const client = new GatewayClient(flags);
  const status = await client.get<Status>('/status');
  const target = flags.mqtt ?? mqttTargetOf(status, client.host);
  const secrets = givenSecrets ?? (await provisionLocks(client, originalPlan.macs, flags.merchant, interrupted.signal));
  const plan = flags.asNow ? await planAsNow(client, originalPlan) : originalPlan;
  if (interrupted.signal.aborted) return null;
  return await playAndCompare({ plan, client, target, secrets, speed: flags.speed, interrupted });
}

/** The gateway's MQTT address. If it listens on every address, the operator interface's host is used. */
function mqttTargetOf({ mqtt: { host, port } }: Status, operatorHost: string): MqttTarget {
  const isEveryAddress = host === '0.0.0.0' || host === '::';
  // A URL has an IPv6 address in brackets, such as [::1]; a socket needs it without them.
  return { host: (isEveryAddress ? operatorHost : host).replace(/^\[|\]$/g, ''), port };
}

/**
 * Shifts all times so that the first event is now by the gateway's clock. If a lock's lowest boot is not above the
 * gateway's highest, raises all its boots by the same number, so that the lowest becomes the gateway's highest plus 1.
 */
async function planAsNow(client: GatewayClient, plan: ReplayPlan): Promise<ReplayPlan> {
  const devices = await listAllDevices<{ mac: string }>(client);
  const knownMacs = new Set(devices.map(({ mac }) => mac));
  const bootShifts = new Map<Mac, number>();
  for (const [mac, lowestBoot] of lowestBoots(plan)) {
    const macText = formatMac(mac);
    if (!knownMacs.has(macText)) continue;
    const { uplinks } = await client.get<{ uplinks: { boot: number }[] }>(`/devices/${encodeURIComponent(macText)}`);
    const highestBoot = Math.max(-1, ...uplinks.map(({ boot }) => boot));
    if (lowestBoot <= highestBoot) bootShifts.set(mac, highestBoot + 1 - lowestBoot);
  }
  const { runMs: nowMs } = await readClocks(client);
  return shiftPlan(plan, { shiftMs: nowMs - (plan.steps[0]?.atMs ?? nowMs), bootShifts });
}

/** What a replay needs. */
interface Replay {
  readonly plan: ReplayPlan;
  readonly client: GatewayClient;
  readonly target: MqttTarget;
  readonly secrets: Secrets;
  readonly speed: ReplaySpeed;
  readonly interrupted: Interruption;
}

/** Replays the plan and compares the results. Returns null if the replay was interrupted. */
async function playAndCompare(replay: Replay): Promise<ReplayReport | null> {
  const { plan, client, target, interrupted } = replay;
  const stop = new AbortController();
  const listening = new AbortController();
  setMaxListeners(plan.macs.size + EXTRA_LISTENERS, stop.signal);
  const watch = await ReplayWatch.start(client, plan.macs, listening.signal);
  let failure: Error | undefined;
  const fail = (error: Error): void => {
    failure ??= error;
    stop.abort();
  };
  void interrupted.happened.then(() => stop.abort());
  void watch.ended.then(() => {
    fail(new LockgateError('gateway-down', 'the gateway closed its event stream, so its findings are unknown'));
  });
  const differences: Deviation[] = [];
  const counts = { connections: 0, sent: 0, acknowledged: 0 };
  try {
    await play(replay, { target, watch, signal: stop.signal, counts, differences, fail });
    if (!stop.signal.aborted) await waitForReports(watch, counts.acknowledged, plan.checked.findings().length);
  } finally {
    listening.abort();
  }
  if (interrupted.signal.aborted) return null;
  if (failure !== undefined) throw failure;
  const unreported = counts.acknowledged - watch.reported;
  if (unreported > 0) differences.push(unreportedDifference(unreported));
  const compared = compareWithGateway(plan, watch);
  differences.push(...compared.differences);
  return {
    file: plan.file,
    mqtt: mqttUrl(target),
    locks: plan.macs.size,
    connections: counts.connections,
    uplinks: { sent: counts.sent, acknowledged: counts.acknowledged },
    same: differences.length === 0,
    differences: differences.map((deviation) => withReason(deviation, watch)),
    notes: compared.notes,
  };
}

async function play({ plan, secrets, speed, interrupted }: Replay, context: ReplayContext): Promise<void> {
  let done = 0;
  const total = plan.steps.length.toLocaleString('en-US');
  const progress = new ProgressLine(() => `${done.toLocaleString('en-US')} of ${total} events`);
  try {
    await playReplay(plan, secrets, speed, context, (count) => {
      done = count;
    });
  } finally {
    progress.end();
  }
  if (interrupted.signal.aborted)
    printNote(`Interrupted: ${done.toLocaleString('en-US')} of ${total} events were replayed.`);
}

/** Waits until the gateway has reported all acknowledged uplinks and as many findings as `trace check` made. */
async function waitForReports(watch: ReplayWatch, acknowledged: number, findings: number): Promise<void> {
  await watch.waitUntil(() => watch.reported >= acknowledged, UPLINK_REPORT_TIMEOUT_MS);
  await watch.waitUntil(() => watch.findings.length >= findings, FINDING_REPORT_TIMEOUT_MS);
}

function unreportedDifference(count: number): Deviation {
  const message = `the gateway did not report ${count} acknowledged uplinks: does --mqtt point to another gateway?`;
  return { line: null, mac: null, kind: 'untold', message };
}

/** Adds the reason why the gateway refused the CONNECT, from its event stream. */
function withReason(deviation: Deviation, watch: ReplayWatch): Deviation {
  if (deviation.kind !== 'refused') return deviation;
  // A lock's client id is its MAC without colons.
  const clientId = (deviation.mac ?? '').replaceAll(':', '');
  const why = watch.refusals.get(clientId);
  return why === undefined ? deviation : { ...deviation, message: `${deviation.message} (${why})` };
}

function mqttUrl({ host, port }: MqttTarget): string {
  return `mqtt://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
