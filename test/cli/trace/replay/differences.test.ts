// `lockgate trace replay` against real gateways: what it reports as a difference, and what not. `connect(mac, 3)` is an
// event 3 s after a trace's start; `ping(mac, 2, members, 4)` is uplink (message of the lock) 2 with these members,
// received after 4 s (by default after as many seconds as its number). `shortSession` is a connect, three pings and a
// disconnect.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import type { Commit } from '../../../../gateway/store/contract/log/commit.js';
import type { CommitResult } from '../../../../gateway/store/contract/log/commit-result.js';
import type { Store } from '../../../../gateway/store/contract/store.js';
import { Minutes } from '../../../../proto/clock.js';
import { formatMac } from '../../../../proto/wire/mac.js';
import type { Ping, Uplink } from '../../../../proto/wire/ping.js';
import {
  close,
  connect,
  ping,
  RESET,
  replay,
  START_MS,
  shortSession,
  stored,
  traceWriter,
  uplink,
} from '../../../helpers/cli/replay-run.js';
import { testGateway, testMac } from '../../../helpers/gateway/test-gateway.js';
import { tempFolder } from '../../../helpers/store/temp-folder.js';

const folder = tempFolder(t);
const traceFile = traceWriter(folder);

t.test('a lock with a wrong secret is a difference', async (t) => {
  const gateway = await testGateway(t);
  const [right, wrong] = [testMac(1), testMac(2)];
  const { secret } = await gateway.accounts.addDevice({ mac: right });
  await gateway.accounts.addDevice({ mac: wrong });
  const secrets = path.join(folder, 'wrong.csv');
  writeFileSync(secrets, `mac,secret\r\n"${formatMac(right)}","${secret}"\r\n\r\n${wrong},not-it\r\n`);
  // After the header the session is lines 2 to 6, so the last two pings are lines 8 and 9.
  const file = traceFile('two.jsonl', [
    ...shortSession(right),
    { event: 'tick', atMs: START_MS + Minutes(1) },
    ping(wrong, 61),
    ping(wrong, 62),
  ]);
  const { report } = await replay(gateway, file, { secrets });
  t.equal(report.same, false);
  t.match(report.differences, [
    { line: 8, mac: formatMac(wrong), kind: 'refused', message: /^CONNACK 5: .*\(wrong secret\)$/ },
    { line: 8, kind: 'unsent' },
    { line: 9, kind: 'unsent' },
  ]);
  t.equal(report.differences.length, 3);
  t.notOk(JSON.stringify(report).includes('not-it'));
  t.equal((await stored(gateway, right)).length, 3, 'the other lock is still replayed');
});

t.test('a connection that the gateway closes is a difference', async (t) => {
  const gateway = await testGateway(t, { wrapStore: failingOnce(2) });
  const mac = testMac(1);
  const file = traceFile('ended.jsonl', [
    ...shortSession(mac).slice(0, 4),
    close(mac, 4),
    connect(mac, 5),
    ping(mac, 6),
    close(mac, 7),
  ]);
  const { report } = await replay(gateway, file, { provision: true });
  t.equal(report.same, false);
  t.same(report.differences.map(({ line, kind }) => `${line} ${kind}`).sort(), [
    '4 ended',
    '4 unacknowledged',
    '5 unsent',
  ]);
  t.same(
    (await stored(gateway, mac)).map(({ sequence }) => sequence),
    [1, 6],
    'the lock continues with the trace’s next connection',
  );
});

/** A store that refuses the first commit with an uplink of this sequence. */
function failingOnce(sequence: number): (store: Store) => Store {
  let hasFailed = false;
  return (store) => {
    const append = (commit: Commit): Promise<CommitResult> => {
      const hasUplink = commit.incoming.some((each) => each.type === 'uplink' && each.sequence === sequence);
      if (hasFailed || !hasUplink) return store.append(commit);
      hasFailed = true;
      return Promise.reject(new Error('the disk is full'));
    };
    return new Proxy(store, {
      get: (target, name) => {
        if (name === 'append') return append;
        const member: unknown = Reflect.get(target, name);
        return typeof member === 'function' ? member.bind(target) : member;
      },
    });
  };
}

t.test('duplicates, conflicts and takeovers are no differences; uplinks known before are noted', async (t) => {
  const gateway = await testGateway(t);
  const mac = testMac(1);
  const { secret } = await gateway.accounts.addDevice({ mac });
  const secrets = path.join(folder, 'duplicates.csv');
  writeFileSync(secrets, `${mac},${secret}`);
  const file = traceFile('duplicates.jsonl', [
    connect(mac, 0),
    ping(mac, 1),
    ping(mac, 1, {}, 2),
    connect(mac, 3),
    ping(mac, 2, {}, 4),
    ping(mac, 2, { timeMs: START_MS + 5 }, 5),
    close(mac, 6, 'takeover'),
    connect(mac, 7),
    ping(mac, 3, {}, 8),
  ]);
  const causes: string[] = [];
  gateway.events.on('disconnected', ({ cause }) => causes.push(cause));
  const once = await replay(gateway, file, { secrets });
  t.equal(once.report.same, true, 'both find the conflict');
  t.same(once.report.differences, []);
  t.same(causes, ['takeover', 'takeover', 'closed']);
  const sequences = (await stored(gateway, mac)).map(({ sequence }) => sequence);
  t.same(sequences, [1, 2, 2, 3], 'the repeat of 1 is not stored, the conflict with 2 is');
  const again = await replay(gateway, file, { secrets });
  t.equal(again.report.same, true);
  t.match(
    again.report.notes.find(({ kind }) => kind === 'known'),
    { message: /^3 uplinks known to the gateway before/ },
  );
  t.equal((await stored(gateway, mac)).length, 4, 'nothing was stored twice');
});

t.test('an uplink that the gateway quarantines is a difference', async (t) => {
  const gateway = await testGateway(t);
  const mac = testMac(1);
  // A copy of the ping `RESET` whose version is too long; it stays a ping of its type, so the cast holds.
  const long: Uplink = { ...uplink(2), body: { ...RESET, firmwareVersion: 'x'.repeat(1100) } as Ping };
  const file = traceFile('long.jsonl', [connect(mac, 0), ping(mac, 1), ping(mac, 2, long), close(mac, 4)]);
  const { report } = await replay(gateway, file, { provision: true });
  t.equal(report.same, false);
  t.match(report.differences, [{ line: 4, kind: 'quarantined', message: /at most 1024 are taken/ }]);
  t.equal(report.differences.length, 1);
});

t.test('uplinks sent to another gateway’s MQTT port are reported as missing', async (t) => {
  const [watched, receiving] = [await testGateway(t), await testGateway(t)];
  const mac = testMac(1);
  const { secret } = await receiving.accounts.addDevice({ mac });
  const secrets = path.join(folder, 'elsewhere.csv');
  writeFileSync(secrets, `${mac},${secret}`);
  const file = traceFile('elsewhere.jsonl', [ping(mac, 1)]);
  const mqtt = { host: '127.0.0.1', port: receiving.mqttPort };
  const { report } = await replay(watched, file, { secrets, mqtt });
  t.equal(report.same, false);
  // The gateway whose event stream the replay reads reported no such uplink.
  t.match(report.differences, [{ kind: 'untold' }]);
});
