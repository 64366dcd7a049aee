// Simulated locks made from a trace (firmware-sim/inference/). Made from a healthy trace, they send the same pings
// again. Made from the trace of a faulty lock, the simulated lock is healthy, and the same happens to it (its world) as
// to the faulty lock. A trace may have ground truth: `world` events, which say what truly happened to the locks.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { readLockTraces, TracedLocks } from '../../cli/commands/sim/traced-locks.js';
import { parseBugAssignment } from '../../firmware-sim/faults/bugs.js';
import { parseMix } from '../../firmware-sim/fleet/mix.js';
import { LockTraceReader } from '../../firmware-sim/inference/lock-trace.js';
import { TracedRun } from '../../firmware-sim/inference/traced-run.js';
import { LockgateError } from '../../proto/errors.js';
import { TraceReader } from '../../proto/trace/reader.js';
import { formatMac, type Mac } from '../../proto/wire/mac.js';
import { type Command, isPingUplink, type PingUplink } from '../../proto/wire/ping.js';
import { runLockgate } from '../helpers/cli/program.js';
import { MERCHANT, testGateway } from '../helpers/gateway/test-gateway.js';
import { findingsIn, traceOf } from '../helpers/sim/judged-run.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

const folder = tempFolder(t);
const MIX = 'mid=3,mid+ride=2,high=2,high+ride=2,recovery=1,airplane=1,low-battery=1';
const LOCKS = 12;
const COMMANDS: readonly Command[] = [
  { type: 'locate-gps' },
  { type: 'locate-cell' },
  { type: 'unlock' },
  { type: 'lock' },
  { type: 'siren', seconds: 5 },
  { type: 'reset' },
  { type: 'set-power', mode: 'HIGH' },
  { type: 'set-power', mode: 'MID', rideTracking: true },
  { type: 'set-power', recovery: true },
  { type: 'set-power', recovery: false },
  { type: 'set-power', airplane: true },
];

interface Replay {
  readonly traced: TracedLocks;
  /** The pings that the simulated locks made, by lock. */
  readonly made: ReadonlyMap<Mac, readonly PingUplink[]>;
  readonly lines: readonly string[];
}

/** Makes the locks of a trace and runs them. */
function replay(lines: readonly string[]): Replay {
  const reader = new TraceReader();
  let recorder: LockTraceReader | undefined;
  for (const line of lines) {
    const event = reader.read(line);
    if (!event.ok) throw new Error(`line ${event.error.line}: ${event.error.message}`);
    if (event.value !== null) recorder?.add(event.value);
    else if (reader.header !== null) recorder = new LockTraceReader(reader.header);
  }
  // It was made at the header.
  const record = (recorder as LockTraceReader).end();
  // The commands of the trace are sent to the simulated locks again.
  const traced = new TracedLocks(record, 'sent');
  const made = new Map<Mac, PingUplink[]>(traced.locks.map(({ mac }) => [mac, []]));
  const written: string[] = [];
  const { fromMs, untilMs } = record;
  const run = new TracedRun(
    {
      locks: traced.locks,
      fromMs,
      untilMs,
      note: '',
      hasWorldEvents: false,
      made: (mac, uplink) => {
        traced.addSimulated(mac, uplink);
        if (isPingUplink(uplink)) made.get(mac)?.push(uplink);
      },
    },
    (line) => written.push(line),
  );
  run.advance(run.endMs);
  return { traced, made, lines: written };
}

const pingText = ({ body }: PingUplink): string =>
  `${body.kind} ${body.reason} ${body.lockState} ${body.batteryPercent}`;
const pingTexts = (pings: readonly PingUplink[]): string => pings.map(pingText).join('\n');

/** The length of a degree of latitude. */
const METERS_PER_DEGREE = 111_195;
/** The cosine of the latitude of Amsterdam, where all rides are. */
const AMSTERDAM_COSINE = 0.61;

/** The largest distance between a recorded and a simulated GPS ping of the same moment, divided by the uncertainty. */
function maxRelativeDistance(traced: TracedLocks, made: Replay['made']): number {
  let maximum = 0;
  for (const { mac, pings } of traced.locks) {
    for (const [index, recorded] of pings.entries()) {
      const simulated = made.get(mac)?.[index];
      if (recorded.body.kind !== 'gps' || simulated?.body.kind !== 'gps') continue;
      const { latitudeDegrees, longitudeDegrees, uncertaintyMeters } = recorded.body.position;
      const north = (simulated.body.position.latitudeDegrees - latitudeDegrees) * METERS_PER_DEGREE;
      const east = (simulated.body.position.longitudeDegrees - longitudeDegrees) * METERS_PER_DEGREE * AMSTERDAM_COSINE;
      maximum = Math.max(maximum, Math.hypot(north, east) / uncertaintyMeters);
    }
  }
  return maximum;
}

for (const hasGroundTruth of [false, true]) {
  t.test(
    `a healthy trace gives the same pings again, ${hasGroundTruth ? 'with' : 'without'} ground truth`,
    async (t) => {
      const reasons = new Set<string>();
      for (const [seed, pace, days, commandsPerDay] of [
        ['s1', 'lively', 0.7, 0],
        ['s2', 'lively', 1, 20],
        ['s3', 'everyday', 3, 0],
      ] as const) {
        const options = { seed, locks: LOCKS, days, pace, mix: parseMix(MIX), hasWorldEvents: hasGroundTruth };
        const commandSchedule = { perDay: commandsPerDay, commands: COMMANDS };
        const lines = traceOf(commandsPerDay === 0 ? options : { ...options, commandSchedule });
        const { traced, made, lines: written } = replay(lines);
        for (const { mac, pings } of traced.locks)
          t.equal(pingTexts(made.get(mac) ?? []), pingTexts(pings), `${seed} ${pace} ${mac}`);
        t.ok(traced.locks.length === LOCKS && traced.locks.reduce((sum, { pings }) => sum + pings.length, 0) > 500);
        t.ok(maxRelativeDistance(traced, made) <= 1, 'positions within their uncertainty');
        t.same(traced.compare().differing, []);
        const violations = findingsIn(written).filter(({ severity }) => severity === 'violation');
        t.same(violations, [], 'only the network breaks rules');
        for (const { pings } of traced.locks) for (const { body } of pings) reasons.add(body.reason);
      }
      // The run must contain every trigger except commands, so that no seed passes because nothing happened.
      for (const reason of ['THEFT', 'STATE_PING', 'UNLOCKED_MOVEMENT', 'UNLOCKED_PING', 'PERIOD_TRACKING', 'RESET'])
        t.ok(reasons.has(`REASON_${reason}`), reason);
    },
  );
}

t.test('a lock that misbehaved is simulated as a healthy lock in the same world', async (t) => {
  const expected: readonly [string, string, number][] = [
    // The bug, the reason whose number of pings differs, and whether the simulated lock sends more (1) or fewer (-1).
    ['period-every-6h', 'REASON_PERIOD_TRACKING', -1],
    ['forgets-period', 'REASON_PERIOD_TRACKING', 1],
    ['theft-while-unlocked', 'REASON_THEFT', -1],
    ['talks-after-close', 'REASON_NETWORK_PING', -1],
    ['forgets-to-close', 'REASON_CLOSE_CONNECTION', 1],
  ];
  for (const [bug, reason, sign] of expected) {
    // In these runs the network does not fail, and no ride ends unlocked. Otherwise the inference would attribute a
    // connection that breaks off in a ride to the network.
    const lines = traceOf({ seed: 3, locks: 2, days: 2, mix: parseMix('mid'), bugs: [parseBugAssignment(bug)] });
    t.not(findingsIn(lines).length, 0, `${bug}: the trace breaks a rule`);
    const { traced, lines: written } = replay(lines);
    const { reasons, differing } = traced.compare();
    const count = reasons.find((row) => row.reason === reason);
    t.equal(Math.sign((count?.simulated ?? 0) - (count?.trace ?? 0)), sign, `${bug}: ${reason}`);
    t.ok(differing.length > 0, `${bug}: the first difference is reported`);
    t.same(findingsIn(written), [], `${bug}: the simulated lock breaks no rule`);
  }
});

const HEADER = '{"trace":"lockgate","version":1,"locks":{"A4:C1:38:F0:E1:D2":{"lock_state":"locked"}}}';
const MAC = '"mac":"A4:C1:38:F0:E1:D2"';
const at = (time: string): string => `"at":"2026-11-20T${time}.000Z"`;
const cellular = (reason: string, lockState: string): string => {
  const body = `"ping_type":"cellular","reason":"${reason}","lock_state":"${lockState}","battery_percent":80`;
  return `${body},"firmware_version":"2.4.1","ebike_voltage":null,"tether_state":"detached"`;
};

t.test('commands are sent again, and their effects are not applied twice', async (t) => {
  const recovery = '"power":{"mode":"MID","ride_tracking":false,"airplane":false,"recovery":true}';
  const lines = [
    HEADER.replace('"lock_state"', `${recovery},"lock_state"`),
    `{${at('08:00:00')},${MAC},"event":"connect"}`,
    `{${at('08:00:00')},${MAC},"event":"ping","ping":{${cellular('REASON_NETWORK_PING', 'locked')}}}`,
    `{${at('08:01:00')},${MAC},"event":"command","command":{"id":7,"type":"unlock"}}`,
    `{${at('08:01:00')},${MAC},"event":"ping","ping":{${cellular('REASON_STATE_PING', 'unlocked')}}}`,
    `{${at('08:01:00')},${MAC},"event":"ack","ack":{"id":7,"result":"ok"}}`,
    `{${at('08:03:10')},${MAC},"event":"command","command":{"id":8,"type":"set-power","airplane":true}}`,
    `{${at('08:03:10')},${MAC},"event":"ack","ack":{"id":8,"result":"ok"}}`,
    `{${at('08:03:10')},${MAC},"event":"ping","ping":{"ping_type":"close_connection",` +
      `"reason":"REASON_CLOSE_CONNECTION","lock_state":"unlocked","battery_percent":80}}`,
    `{${at('08:03:10')},${MAC},"event":"disconnect","cause":"closed"}`,
  ];
  const { traced, lines: written } = replay(lines);
  t.same(traced.compare().differing, []);
  const count = (word: string): number => written.filter((line) => line.includes(`"event":"${word}"`)).length;
  t.same([count('command'), count('ack')], [2, 2]);
  t.same(findingsIn(written), []);
});

t.test('the command line reads plain and gzipped files, prints counts, and reports errors in a file', async (t) => {
  const run = async (...args: string[]) => {
    const program = await runLockgate(['sim', 'run', ...args]);
    return { code: program.exit?.code, out: program.stdout.join('\n'), err: program.stderr.join('\n') };
  };
  const file = path.join(folder, 'field.jsonl.gz');
  const out = path.join(folder, 'again.jsonl');
  t.match(await run('--virtual', '--locks', '3', '--days', '1', '--seed', '4', '--out', file), { code: 0 });
  const again = await run('--virtual', '--from-trace', file, '--out', out);
  t.equal(again.code, 0, again.err);
  t.match(again.out, /^REASON +TRACE +SIMULATED/);
  t.match(again.out, /The same pings in the same order, for 3 locks\./);
  t.ok(again.out.endsWith(`Repeat with: lockgate sim run --virtual --from-trace ${file} --out ${out}`), again.out);
  t.same(findingsIn(readFileSync(out, 'utf8').trimEnd().split('\n')), []);
  const json = JSON.parse((await run('--virtual', '--from-trace', file, '--json')).out);
  t.match(json, { from_trace: file, locks: 3, comparison: { same: true, first_differences: [] } });
  t.match(await run('--virtual', '--from-trace', file, '--seed', '3'), { code: 2, err: /cannot be used with/ });

  const bad = path.join(folder, 'bad.jsonl');
  const refusal = async (...lines: string[]): Promise<string> => {
    writeFileSync(bad, `${lines.join('\n')}\n`);
    const error = await readLockTraces(bad).then(
      () => undefined,
      (refused: unknown) => refused,
    );
    if (!(error instanceof LockgateError)) throw new Error('the file was accepted');
    t.match(error.code, /^input-/);
    return error.message;
  };
  t.match(await refusal(HEADER, '{"at":1}'), /bad\.jsonl:2: /);
  t.match(
    await refusal(HEADER, `{${at('08:00:00')},${MAC},"event":"world","moving":3}`),
    /bad\.jsonl:2: moving is 3: expected true or false/,
  );
  t.match(
    await refusal('{"trace":"lockgate","version":1}', `{${at('08:00:00')},"event":"tick"}`),
    /no event of a lock/,
  );
});

t.test('in a live run the locks of a trace send to a gateway, with all times shifted to now', async (t) => {
  const gateway = await testGateway(t, { speed: 300 });
  // 0.02 days are half an hour, which takes 6 s at this speed.
  const lines = traceOf({ seed: 'live', locks: 2, days: 0.02, pace: 'lively', mix: parseMix('mid') });
  const { traced } = replay(lines);
  const file = path.join(folder, 'live.jsonl');
  const secrets = path.join(folder, 'secrets.csv');
  writeFileSync(file, `${lines.join('\n')}\n`);
  const secretLines: string[] = [];
  for (const { mac } of traced.locks) {
    const { secret } = await gateway.accounts.addDevice({ mac, merchant: MERCHANT });
    secretLines.push(`${formatMac(mac)},${secret}`);
  }
  writeFileSync(secrets, secretLines.join('\n'));
  const liveFlags = ['--gateway', `mqtt://127.0.0.1:${gateway.mqttPort}`, '--secrets', secrets, '--speed', '300'];
  const run = await runLockgate(['sim', 'run', '--from-trace', file, ...liveFlags, '--json']);
  t.equal(run.exit?.code, 0, run.stderr.join('\n'));
  const { comparison, acknowledged } = JSON.parse(run.stdout.join('\n'));
  const isOfStatePings = ({ reason }: { reason: string }): boolean => reason === 'REASON_STATE_PING';
  const { trace, simulated } = comparison.reasons.find(isOfStatePings);
  t.ok(trace > 0 && simulated === trace, JSON.stringify(comparison));
  t.ok(acknowledged >= trace, `${acknowledged} arrived`);
});
