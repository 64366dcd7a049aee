/**
 * The life of the systemd unit under a real systemd, as deploy/README.md describes it: install, start, a ping that is
 * acknowledged, reload, a process that hangs, one that is killed, secrets for root alone, a wrong setting, an upgrade
 * of an older store, stop. `test/deploy/service.test.ts` checks the unit's file without a systemd. Each command is
 * printed with what it wrote. The test needs root and the right to mount (test/helpers/deploy/systemd-machine.ts).
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import t, { type Test } from 'tap';
import { INSTALLED, NO_SYSTEMD_MACHINE, type Ran, SystemdMachine } from '../../helpers/deploy/systemd-machine.js';
import { directiveValues } from '../../helpers/deploy/unit-file.js';
import { root } from '../../helpers/house/our-files.js';

const UNIT = 'lockgate';
const MAC = 'A4:C1:38:F0:E1:D2';
const CLIENT = MAC.replaceAll(':', '');
const read = (name: string): Buffer => readFileSync(path.join(root, name));

/** The commands of deploy/README.md that install the unit: the first block of that section. */
function installCommands(): string[] {
  const [, section = ''] = read('deploy/README.md').toString().split('## As a systemd service');
  return (/```sh\n(.*?)```/s.exec(section)?.[1] ?? '').trim().split('\n');
}

/** A ping of a lock that has just started. */
const PING = {
  ping_type: 'cellular',
  reason: 'REASON_PERIOD_TRACKING',
  lock_state: 'locked',
  battery_percent: 81,
  boot: 1,
  date: '2026-11-20T06:00:51.000Z',
};

/** A lockgate command, run as the gateway's user, as deploy/README.md says. */
const lockgate = (args: string): string =>
  `runuser -u lockgate -- node ${INSTALLED}/cli/lockgate.mjs ${args} --data /var/lib/lockgate`;

/** The unit on its machine, and what each step of the test does with it. */
class Service {
  readonly #machine: SystemdMachine;
  /** The lock's secret. */
  secret = '';

  constructor(machine: SystemdMachine) {
    this.#machine = machine;
  }

  /** Runs a command, prints it and its output, and returns them. */
  run(t: Test, line: string): Ran {
    const ran = this.#machine.run(line);
    t.comment(`# ${line}\n${ran.output}\n(exit code ${ran.status})`);
    return ran;
  }

  /** Runs a command that must succeed, and returns its output. */
  mustRun(t: Test, line: string): string {
    const { status, output } = this.run(t, line);
    t.equal(status, 0, line);
    return output;
  }

  write(file: string, content: Buffer | string): void {
    this.#machine.write(file, content);
  }

  /** A property of the unit, as systemd knows it. */
  property(name: string): string {
    return this.#machine.run(`systemctl show ${UNIT} --property=${name} --value`).output;
  }

  /** Calls `act`, and waits until the journal has a line about it. */
  waitForJournal(t: Test, pattern: RegExp, act: () => void): void {
    t.pass(this.#machine.untilJournalSays(UNIT, pattern, act));
  }

  /** Calls `act`, which ends the process, and waits until systemd has started the unit again. */
  waitForRestart(t: Test, reason: RegExp, act: () => void): void {
    const before = this.property('MainPID');
    this.waitForJournal(t, reason, act);
    this.mustRun(t, `until systemctl --quiet is-active ${UNIT}; do sleep 0.1; done`);
    t.not(this.property('MainPID'), before, 'another process runs');
  }

  /** Sends a ping as a lock does. Returns whether it was acknowledged. */
  ping(t: Test, sequence: number): boolean {
    const json = JSON.stringify({ ...PING, sequence });
    this.mustRun(t, `node ${INSTALLED}/cli/lockgate.mjs ping encode '${json}' | xxd -r -p > /run/ping.bin`);
    const user = `-i ${CLIENT} -u ${CLIENT} -P ${this.secret}`;
    return this.run(t, `timeout 20 mosquitto_pub ${user} -q 1 -t up -f /run/ping.bin`).status === 0;
  }

  /** The sequences of the lock's pings that the store has. */
  sequences(t: Test): number[] {
    const lines = this.mustRun(t, lockgate(`trace export --mac ${MAC}`)).split('\n');
    const events: { event?: string; ping: { sequence: number } }[] = lines.map((line) => JSON.parse(line));
    return events.filter(({ event }) => event === 'ping').map(({ ping }) => ping.sequence);
  }
}

function installUnit(t: Test, service: Service): void {
  const commands = installCommands();
  t.equal(commands.length, 4);
  service.mustRun(t, commands.join(' && '));
  // systemctl came back because the gateway said that it is ready.
  t.equal(service.property('ActiveState'), 'active');
  t.match(service.mustRun(t, 'ls -ld /var/lib/lockgate'), /^drwx------ .* lockgate lockgate /);
  t.equal(service.property('NRestarts'), '0');
  t.match(service.mustRun(t, `systemd-analyze security ${UNIT} --no-pager | tail -1`), /: 1\.\d OK/);
}

function acknowledgePing(t: Test, service: Service): void {
  service.mustRun(t, lockgate('merchant add "Amber Bikes"'));
  const added = service.mustRun(t, lockgate(`device add ${MAC}`));
  service.secret = /lgs_[\w-]+/.exec(added)?.[0] ?? '';
  t.ok(service.ping(t, 1), 'the ping is acknowledged');
  t.same(service.sequences(t), [1], 'every acknowledged ping is stored');
}

function rereadSettings(t: Test, service: Service): void {
  const file = '/etc/lockgate/lockgate.yaml';
  service.mustRun(
    t,
    `node ${INSTALLED}/cli/lockgate.mjs config --write ${file} && chgrp lockgate ${file} && chmod 640 ${file}`,
  );
  service.write('/etc/lockgate/lockgate.env', `LOCKGATE_CONFIG=${file}\n`);
  service.mustRun(t, `systemctl restart ${UNIT}`);
  const process = service.property('MainPID');
  service.mustRun(t, `sed -i 's/^#* *log_level:.*/log_level: debug/' ${file}`);
  service.waitForJournal(t, /settings-read.*log_level/, () => service.mustRun(t, `systemctl reload ${UNIT}`));
  t.equal(service.property('MainPID'), process, 'the same process goes on');
  service.mustRun(t, `sed -i 's/^log_level:.*/log_level: loud/' ${file}`);
  service.waitForJournal(t, /log_level/, () => service.mustRun(t, `systemctl reload ${UNIT}`));
  t.equal(service.property('ActiveState'), 'active', 'a wrong file changes nothing');
  service.mustRun(t, `sed -i 's/^log_level:.*/log_level: info/' ${file}`);
}

function restartHung(t: Test, service: Service): void {
  const shorter = '[Service]\nWatchdogSec=3\n';
  service.write(`/etc/systemd/system/${UNIT}.service.d/watchdog.conf`, shorter);
  service.mustRun(t, `systemctl daemon-reload && systemctl restart ${UNIT}`);
  t.ok(service.ping(t, 2), 'the ping is acknowledged');
  service.waitForRestart(t, /Watchdog timeout/, () => service.mustRun(t, `kill -STOP ${service.property('MainPID')}`));
  t.same(service.sequences(t), [1, 2], 'every acknowledged ping is stored');
  service.mustRun(t, `rm /etc/systemd/system/${UNIT}.service.d/watchdog.conf && systemctl daemon-reload`);
}

function restartKilled(t: Test, service: Service): void {
  t.ok(service.ping(t, 3), 'the ping is acknowledged');
  service.waitForRestart(t, /code=killed/, () => service.mustRun(t, `kill -KILL ${service.property('MainPID')}`));
  t.same(service.sequences(t), [1, 2, 3], 'every acknowledged ping is stored');
  t.ok(service.ping(t, 4), 'the ping is acknowledged');
}

function hideSecrets(t: Test, service: Service): void {
  const comment = read('deploy/store-key.conf').toString();
  const commands = [...comment.matchAll(/^# {3}(install .*)$/gm)].map(([, command]) => command);
  t.equal(commands.length, 2);
  service.mustRun(t, `cd ${INSTALLED}/deploy && ${commands.join(' && ')}`);
  service.mustRun(t, `systemctl daemon-reload && systemctl restart ${UNIT}`);
  t.equal(service.run(t, 'ls /var/lib/lockgate/key').status, 2, 'the data folder has no key');
  t.equal(service.run(t, 'runuser -u lockgate -- cat /etc/lockgate/store-key').status, 1);
  t.ok(service.ping(t, 5), 'the secret of a lock is known');
  service.mustRun(t, `rm -r /etc/systemd/system/${UNIT}.service.d && systemctl daemon-reload`);
  service.mustRun(t, 'install -m 600 -o lockgate -g lockgate /etc/lockgate/store-key /var/lib/lockgate/key');
}

function refuseSetting(t: Test, service: Service): void {
  service.write('/etc/lockgate/lockgate.env', 'LOCKGATE_MQTT_PORT=many\n');
  service.waitForJournal(t, /LOCKGATE_MQTT_PORT.*many/, () => {
    t.not(service.run(t, `systemctl restart ${UNIT}`).status, 0);
  });
  t.equal(service.property('ActiveState'), 'failed');
  t.equal(
    service.property('ExecMainStatus'),
    directiveValues(read('deploy/lockgate.service').toString(), 'RestartPreventExitStatus')[0],
  );
  service.mustRun(t, 'rm /etc/lockgate/lockgate.env');
}

function upgrade(t: Test, service: Service): void {
  service.write('/root/older.sqlite', gunzipSync(read('test/stores/before-0032.sqlite.gz')));
  service.write('/root/older.key', read('test/stores/before-0032.key'));
  const install = 'install -m 600 -o lockgate -g lockgate';
  service.mustRun(
    t,
    `mv /var/lib/lockgate /var/lib/newer && install -d -m 700 -o lockgate -g lockgate /var/lib/lockgate`,
  );
  service.mustRun(t, `${install} /root/older.sqlite /var/lib/lockgate/lockgate.sqlite`);
  service.mustRun(t, `${install} /root/older.key /var/lib/lockgate/key`);
  service.mustRun(t, `cd ${INSTALLED} && npm run build && systemctl restart ${UNIT}`);
  t.match(service.mustRun(t, lockgate('device list --json')), /"mac"/);
  service.mustRun(t, `systemctl stop ${UNIT} && rm -r /var/lib/lockgate && mv /var/lib/newer /var/lib/lockgate`);
}

function stopUnit(t: Test, service: Service): void {
  service.mustRun(t, `systemctl start ${UNIT}`);
  t.same(service.sequences(t), [1, 2, 3, 4, 5], 'every acknowledged ping is stored');
  service.mustRun(t, `systemctl stop ${UNIT}`);
  t.same(
    ['ActiveState', 'Result', 'ExecMainStatus'].map((name) => service.property(name)),
    ['inactive', 'success', '0'],
  );
}

t.test('the life of the unit under systemd', { skip: NO_SYSTEMD_MACHINE, timeout: 300_000 }, async (t) => {
  const service = new Service(await SystemdMachine.boot(t));
  await t.test('install', async (t) => installUnit(t, service));
  if (!t.passing()) return;
  t.test('a lock pings', async (t) => acknowledgePing(t, service));
  t.test('settings are reread', async (t) => rereadSettings(t, service));
  t.test('a gateway that hangs is started again', async (t) => restartHung(t, service));
  t.test('a gateway that is killed is started again', async (t) => restartKilled(t, service));
  t.test('secrets that only root may read', async (t) => hideSecrets(t, service));
  t.test('a wrong setting stops the unit for good, and the journal says why', async (t) => refuseSetting(t, service));
  t.test('an upgrade keeps what an older version wrote', async (t) => upgrade(t, service));
  t.test('stop', async (t) => stopUnit(t, service));
});
