/**
 * The gateway as strangers meet it: `lockgate serve` in a process of its own, Mosquitto's clients as the lock, the
 * reference library of Standard Webhooks as the merchant. What must happen is protocol.md §1 and interfaces.md §3.
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
const WIRE_MAC = 'A4C138F0E1D2';

/**
 * A GPS ping for a theft, written field by field after the schema without any code of ours: boot 41, sequence 12,
 * 2026-11-20T06:00:31Z, locked, 81 %, detached, 52.3702157 4.8951679, 3.1 m/s towards 271.5°, ±8 m.
 */
const THEFT = Buffer.from('0829100c189898abbc9f34421b0801100118512802358d0f371f3d7ff1ea0240ec04489ca8035010', 'hex');
/** The same with sequence 13. */
const NEXT = Buffer.from(THEFT.toString('hex').replace('0829100c', '0829100d'), 'hex');
/** The command line is loaded in far less time than these take. */
const MOST_KNOCKS = 2000;
const GARBAGE = Buffer.from('no protobuf at all');

interface ShownDevice {
  readonly uplinks: readonly { readonly sequence: number }[];
  readonly quarantine: readonly { readonly code: string; readonly raw: string }[];
}

interface TailLine {
  readonly event: string;
  readonly what?: string;
  readonly why?: string;
  readonly repeated?: boolean;
  readonly raw?: string;
}

/** A gateway with one lock and one webhook URL, and who stands around it. */
class Place {
  readonly folder: string;
  readonly serve: ServeProgram;
  readonly lock: MosquittoIdentity;
  readonly webhookPort: number;
  readonly webhookSecret: string;
  tail!: Program;
  readonly #test: Test;

  private constructor(test: Test, place: Pick<Place, 'folder' | 'serve' | 'lock' | 'webhookPort' | 'webhookSecret'>) {
    this.#test = test;
    this.folder = place.folder;
    this.serve = place.serve;
    this.lock = place.lock;
    this.webhookPort = place.webhookPort;
    this.webhookSecret = place.webhookSecret;
  }

  static async make(test: Test): Promise<Place> {
    const folder = tempFolder(test);
    const serve = await ServeProgram.start(test, path.join(folder, 'data'));
    await serve.json('merchant', 'add', 'Amber');
    const { secret } = await serve.json<{ secret: string }>('device', 'add', 'a4c1.38f0.e1d2');
    const webhookPort = await freePort();
    const webhook = await serve.json<{ secret: string }>('webhook', 'add', `http://127.0.0.1:${webhookPort}/locks`);
    const lock = { port: serve.mqttPort, clientId: WIRE_MAC, userName: WIRE_MAC, password: secret };
    return new Place(test, { folder, serve, lock, webhookPort, webhookSecret: webhook.secret });
  }

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

  /** `webhook listen` knows no data folder: it stands where the merchant is. */
  async listen(...flags: string[]): Promise<Program> {
    const args = ['--port', String(this.webhookPort), '--secret', this.webhookSecret, '--json', ...flags];
    const program = new Program(this.#test, process.execPath, [LOCKGATE, 'webhook', 'listen', ...args]);
    await program.line(/Listening/, 'stderr');
    return program;
  }

  /** `tail` doesn't say when it listens, so somebody knocks until it tells of it. */
  async watch(): Promise<void> {
    this.tail = this.serve.run('tail', '--json');
    for (let knocks = 0; this.tail.stdout.length === 0 && knocks < MOST_KNOCKS; knocks += 1)
      await this.publish(GARBAGE, { password: 'lgs_wrong' });
  }

  async tailLine(fits: RegExp): Promise<TailLine> {
    return JSON.parse(await this.tail.line(fits)) as TailLine;
  }
}

async function arrivesSigned(t: Test, place: Place): Promise<void> {
  const listener = await place.listen('--expect', '1');
  t.equal((await place.publish(THEFT)).ended?.code, 0, 'the ping is acknowledged');
  t.equal((await listener.end()).code, 0, 'one verified webhook was expected and came');
  const { verified, headers, body } = JSON.parse(listener.stdout[0] ?? '') as {
    verified: boolean;
    headers: Record<string, string>;
    body: string;
  };
  t.equal(verified, true);
  const { event_id, received_at, ...ping } = new Webhook(place.webhookSecret).verify(body, headers) as {
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

async function refusesStrangers(t: Test, place: Place): Promise<void> {
  const strangers: readonly (readonly [string, Partial<MosquittoIdentity>])[] = [
    ['a wrong secret', { password: 'lgs_wrong' }],
    ['no secret', { password: '' }],
    ['a MAC that nobody has', { clientId: 'A4C138F0E1D3', userName: 'A4C138F0E1D3' }],
    ['a client id other than the MAC', { clientId: 'A4C138F0E1D3' }],
    ['a user name other than the MAC', { userName: 'A4C138F0E1D3' }],
    ['the MAC in another spelling', { clientId: MAC, userName: MAC }],
  ];
  const answers = new Set<string>();
  for (const [who, members] of strangers) {
    const { ended, stderr } = await place.publish(THEFT, members);
    t.equal(ended?.code, 5, who);
    answers.add(stderr.join('\n'));
  }
  t.equal(answers.size, 1, 'all of them are told the same');
  for (const why of [/wrong secret/, /no such lock/, /not the same MAC/])
    t.match(await place.tailLine(why), { event: 'refused', what: 'connect' }, `the operator sees why: ${why}`);
}

async function endsMisdeeds(t: Test, place: Place): Promise<void> {
  const misdeeds: readonly (readonly [string, readonly string[], RegExp])[] = [
    ['another topic', ['-t', 'down'], /topic .*down/],
    ['a topic of another lock', ['-t', 'up/A4C138F0E1D3'], /topic .*up\/A4C138F0E1D3/],
    ['QoS 2', ['-q', '2'], /QoS 2/],
    ['a retained ping', ['-r'], /retained/],
    ['a will', ['--will-topic', 'up', '--will-payload', 'last words'], /will/],
  ];
  for (const [what, args, why] of misdeeds) {
    const { ended } = await place.publish(NEXT, {}, ...args);
    t.not(ended?.code, 0, `${what} is not acknowledged`);
    t.match(await place.tailLine(why), { event: 'refused' }, 'the operator sees it');
  }
  for (const topic of ['#', '+', 'up', '$SYS/#', '$share/g/down', 'down/#']) {
    const { stderr, ended } = await mosquitto(t, 'sub', place.lock, ['-t', topic, '-q', '1', '-W', '5']);
    t.match(stderr.join('\n'), /denied/, `a subscription to ${topic} is denied`);
    t.equal(ended?.signal, null);
  }
  t.match(await place.show(), { uplinks: [{ sequence: 12 }], quarantine: [] });
  t.equal((await place.show()).uplinks.length, 1);
}

async function keepsOnce(t: Test, place: Place): Promise<void> {
  const listener = await place.listen();
  t.equal((await place.publish(THEFT)).ended?.code, 0, 'the repeat is acknowledged');
  t.match(await place.tailLine(/"event":"ping".*"sequence":12|"sequence":12.*"event":"ping"/), { repeated: true });
  t.equal((await place.publish(GARBAGE)).ended?.code, 0, 'garbage is acknowledged: else it came for ever');
  const raw = GARBAGE.toString('base64');
  t.match(await place.tailLine(/"quarantined"/), { event: 'quarantined', raw });
  t.equal((await place.publish(NEXT)).ended?.code, 0);
  // A lock's events arrive in order, so whatever else there was would have come before this one.
  await listener.line(/\\"sequence\\":13/);
  t.equal(listener.stdout.length, 1, 'neither the repeat nor the garbage became an event');
  const { uplinks, quarantine } = await place.show();
  t.same(
    uplinks.map(({ sequence }) => sequence),
    [13, 12],
  );
  t.match(quarantine, [{ code: 'undecodable', raw }]);
  t.equal(quarantine.length, 1, 'once');
}

async function endsWhenAsked(t: Test, place: Place): Promise<void> {
  place.serve.program.kill('SIGTERM');
  t.same(await place.serve.program.end(5), { code: 0, signal: null });
  t.notMatch(place.serve.program.stderr.join('\n'), /Warning|Error|broke/i, 'without a complaint');
  t.equal((await place.tail.end()).code, 3, 'and tail says that the gateway is gone');
}

t.test('a lock that speaks through Mosquitto', { skip: mosquittoIsMissing() }, async (t) => {
  t.setTimeout(170_000);
  const place = await Place.make(t);
  await t.test('its ping arrives at the merchant, signed', (t) => arrivesSigned(t, place));
  await place.watch();
  await t.test('who is not the lock is refused with CONNACK 5, and told no more', (t) => refusesStrangers(t, place));
  await t.test('what a lock must not do ends its connection, and nothing of it is kept', (t) => endsMisdeeds(t, place));
  await t.test('a repeat is one event, garbage is acknowledged and quarantined', (t) => keepsOnce(t, place));
  await t.test('it ends when it is asked to', (t) => endsWhenAsked(t, place));
});
