/**
 * The gateway works with programs by other authors: `lockgate serve` in a separate process, Mosquitto's clients as the
 * lock, the reference library of Standard Webhooks as the merchant. Specified in protocol.md §1 and interfaces.md §3.
 */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { Webhook } from '../clients/webhook-libraries.js';
import { LOCKGATE, Program } from '../helpers/cli/program.js';
import { ServeProgram } from '../helpers/cli/serve-program.js';
import { freePort } from '../helpers/http/free-port.js';
import { type MosquittoIdentity, mosquitto, mosquittoIsMissing } from '../helpers/mqtt/mosquitto.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

const MAC = 'A4:C1:38:F0:E1:D2';
/** The MAC as MQTT's client id and user name. */
const WIRE_MAC = 'A4C138F0E1D2';

/**
 * A GPS ping for a theft, encoded by hand from the schema without lockgate's code: boot 41, sequence 12,
 * 2026-11-20T06:00:31Z, locked, 81 %, detached, 52.3702157 4.8951679, 3.1 m/s towards 271.5°, ±8 m.
 */
const THEFT = Buffer.from('0829100c189898abbc9f34421b0801100118512802358d0f371f3d7ff1ea0240ec04489ca8035010', 'hex');
/** The same with sequence 13. */
const NEXT = Buffer.from(THEFT.toString('hex').replace('0829100c', '0829100d'), 'hex');
/** Bounds the wait for `tail` to start; so many attempts take far longer than the start. */
const MAX_PROBES = 2000;
const GARBAGE = Buffer.from('no protobuf at all');

/** What `device show --json` prints, as far as this test reads it. */
interface ShownDevice {
  readonly uplinks: readonly { readonly sequence: number }[];
  readonly quarantine: readonly { readonly code: string; readonly raw: string }[];
}

/** A line of `tail --json`. */
interface TailLine {
  readonly event: string;
  readonly what?: string;
  readonly why?: string;
  readonly repeated?: boolean;
  readonly raw?: string;
}

/** A gateway with one lock and one webhook URL, and the foreign clients that use it. */
class Setup {
  readonly folder: string;
  readonly serve: ServeProgram;
  readonly lock: MosquittoIdentity;
  readonly webhookPort: number;
  readonly webhookSecret: string;
  tail!: Program;
  readonly #test: Test;

  private constructor(test: Test, parts: Pick<Setup, 'folder' | 'serve' | 'lock' | 'webhookPort' | 'webhookSecret'>) {
    this.#test = test;
    this.folder = parts.folder;
    this.serve = parts.serve;
    this.lock = parts.lock;
    this.webhookPort = parts.webhookPort;
    this.webhookSecret = parts.webhookSecret;
  }

  static async make(test: Test): Promise<Setup> {
    const folder = tempFolder(test);
    const serve = await ServeProgram.start(test, path.join(folder, 'data'));
    await serve.json('merchant', 'add', 'Amber');
    const { secret } = await serve.json<{ secret: string }>('device', 'add', 'a4c1.38f0.e1d2');
    const webhookPort = await freePort();
    const webhook = await serve.json<{ secret: string }>('webhook', 'add', `http://127.0.0.1:${webhookPort}/locks`);
    const lock = { port: serve.mqttPort, clientId: WIRE_MAC, userName: WIRE_MAC, password: secret };
    return new Setup(test, { folder, serve, lock, webhookPort, webhookSecret: webhook.secret });
  }

  /** What `device show` says about the lock. */
  async show(): Promise<ShownDevice> {
    return await this.serve.json<ShownDevice>('device', 'show', MAC);
  }

  /** Publishes at QoS 1 to `up`, unless the flags say otherwise. */
  async publish(payload: Buffer, identity: Partial<MosquittoIdentity> = {}, ...flags: string[]): Promise<Program> {
    const file = path.join(this.folder, 'payload');
    writeFileSync(file, payload);
    const args = ['-f', file, '-q', '1', '-t', 'up', ...flags];
    return await mosquitto(this.#test, 'pub', { ...this.lock, ...identity }, args);
  }

  /** Runs `webhook listen` as the merchant's receiver, without access to the data folder. */
  async listen(...flags: string[]): Promise<Program> {
    const args = ['--port', String(this.webhookPort), '--secret', this.webhookSecret, '--json', ...flags];
    const program = new Program(this.#test, process.execPath, [LOCKGATE, 'webhook', 'listen', ...args]);
    await program.waitForLine(/Listening/, 'stderr');
    return program;
  }

  /** Starts `tail`. `tail` doesn't say when it is ready, so refused connections are made until it prints one. */
  async startTail(): Promise<void> {
    this.tail = this.serve.run('tail', '--json');
    for (let probes = 0; this.tail.stdout.length === 0 && probes < MAX_PROBES; probes += 1)
      await this.publish(GARBAGE, { password: 'lgs_wrong' });
  }

  /** The first line of `tail` that matches. */
  async tailLine(pattern: RegExp): Promise<TailLine> {
    return JSON.parse(await this.tail.waitForLine(pattern)) as TailLine;
  }
}

async function arrivesSigned(t: Test, setup: Setup): Promise<void> {
  const listener = await setup.listen('--expect', '1');
  t.equal((await setup.publish(THEFT)).exit?.code, 0, 'the ping is acknowledged');
  t.equal((await listener.waitForExit()).code, 0, 'one verified webhook arrived');
  const { verified, headers, body } = JSON.parse(listener.stdout[0] ?? '') as {
    verified: boolean;
    headers: Record<string, string>;
    body: string;
  };
  t.equal(verified, true);
  const { event_id, received_at, ...ping } = new Webhook(setup.webhookSecret).verify(body, headers) as {
    event_id: string;
    received_at: string;
  } & Record<string, unknown>;
  t.equal(headers['webhook-id'], event_id);
  t.match(received_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  t.same(
    { ...ping, buffered: 'depends on when this runs' },
    {
      mac_addr: MAC,
      ping_type: 'gps',
      reason: 'REASON_THEFT',
      date: '2026-11-20T06:00:31.000Z',
      lock_state: 'locked',
      battery_percent: 81,
      ebike_voltage: null,
      tether_state: 'detached',
      latitude: 52.3702157,
      longitude: 4.8951679,
      speed: 3.1,
      direction: 271.5,
      uncertainty: 8,
      boot: 41,
      sequence: 12,
      buffered: 'depends on when this runs',
      test: false,
      simulated: false,
    },
  );
}

async function refusesStrangers(t: Test, setup: Setup): Promise<void> {
  const strangers: readonly (readonly [string, Partial<MosquittoIdentity>])[] = [
    ['a wrong secret', { password: 'lgs_wrong' }],
    ['no secret', { password: '' }],
    ['an unknown MAC', { clientId: 'A4C138F0E1D3', userName: 'A4C138F0E1D3' }],
    ['a client id other than the MAC', { clientId: 'A4C138F0E1D3' }],
    ['a user name other than the MAC', { userName: 'A4C138F0E1D3' }],
    ['the MAC in another spelling', { clientId: MAC, userName: MAC }],
  ];
  const answers = new Set<string>();
  for (const [who, members] of strangers) {
    const { exit, stderr } = await setup.publish(THEFT, members);
    // Mosquitto's clients exit with the code of the CONNACK; 5 is "not authorized".
    t.equal(exit?.code, 5, who);
    answers.add(stderr.join('\n'));
  }
  t.equal(answers.size, 1, 'all of them get the same answer');
  for (const why of [/wrong secret/, /no such lock/, /neither that MAC/])
    t.match(await setup.tailLine(why), { event: 'refused', what: 'connect' }, `the operator sees why: ${why}`);
}

async function disconnectsOffenders(t: Test, setup: Setup): Promise<void> {
  const offences: readonly (readonly [string, readonly string[], RegExp])[] = [
    ['another topic', ['-t', 'down'], /topic .*down/],
    ['a topic of another lock', ['-t', 'up/A4C138F0E1D3'], /topic .*up\/A4C138F0E1D3/],
    ['QoS 2', ['-q', '2'], /QoS 2/],
    ['a retained ping', ['-r'], /retained/],
    ['a will', ['--will-topic', 'up', '--will-payload', 'last words'], /will/],
  ];
  for (const [what, args, why] of offences) {
    const { exit } = await setup.publish(NEXT, {}, ...args);
    t.not(exit?.code, 0, `${what} is not acknowledged`);
    t.match(await setup.tailLine(why), { event: 'refused' }, 'the operator sees it');
  }
  for (const topic of ['#', '+', 'up', '$SYS/#', '$share/g/down', 'down/#']) {
    const { stderr, exit } = await mosquitto(t, 'sub', setup.lock, ['-t', topic, '-q', '1', '-W', '5']);
    t.match(stderr.join('\n'), /denied/, `a subscription to ${topic} is denied`);
    t.equal(exit?.signal, null);
  }
  t.match(await setup.show(), { uplinks: [{ sequence: 12 }], quarantine: [] });
  t.equal((await setup.show()).uplinks.length, 1, 'only the first ping is stored');
}

async function ignoresRepeatsAndGarbage(t: Test, setup: Setup): Promise<void> {
  const listener = await setup.listen();
  t.equal((await setup.publish(THEFT)).exit?.code, 0, 'the repeat is acknowledged');
  t.match(await setup.tailLine(/"event":"ping".*"sequence":12|"sequence":12.*"event":"ping"/), { repeated: true });
  t.equal(
    (await setup.publish(GARBAGE)).exit?.code,
    0,
    'garbage is acknowledged, so that the lock does not resend it for ever',
  );
  const raw = GARBAGE.toString('base64');
  t.match(await setup.tailLine(/"quarantined"/), { event: 'quarantined', raw });
  t.equal((await setup.publish(NEXT)).exit?.code, 0);
  // A lock's events arrive in order, so any event of the repeat or the garbage would have come before this one.
  await listener.waitForLine(/\\"sequence\\":13/);
  t.equal(listener.stdout.length, 1, 'neither the repeat nor the garbage became an event');
  const { uplinks, quarantine } = await setup.show();
  t.same(
    uplinks.map(({ sequence }) => sequence),
    [13, 12],
  );
  t.match(quarantine, [{ code: 'undecodable', raw }]);
  t.equal(quarantine.length, 1, 'quarantined once');
}

async function stopsOnRequest(t: Test, setup: Setup): Promise<void> {
  setup.serve.program.kill('SIGTERM');
  t.same(await setup.serve.program.waitForExit(5), { code: 0, signal: null });
  t.notMatch(setup.serve.program.stderr.join('\n'), /Warning|Error|broke/i, 'serve logged no complaint');
  t.equal((await setup.tail.waitForExit()).code, 3, 'tail reports that the gateway is gone');
}

t.test('a lock that uses Mosquitto’s client', { skip: mosquittoIsMissing() }, async (t) => {
  t.setTimeout(170_000);
  const setup = await Setup.make(t);
  await t.test('its ping arrives at the merchant, signed', (t) => arrivesSigned(t, setup));
  await setup.startTail();
  await t.test('wrong credentials get CONNACK 5 without a reason', (t) => refusesStrangers(t, setup));
  await t.test('a forbidden packet closes the connection and stores nothing', (t) => disconnectsOffenders(t, setup));
  await t.test('a repeat makes no second event, garbage is quarantined', (t) => ignoresRepeatsAndGarbage(t, setup));
  await t.test('the gateway stops on SIGTERM', (t) => stopsOnRequest(t, setup));
});
