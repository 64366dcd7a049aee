/**
 * The parts of a gateway that handle commands, set up for tests: a real store, a manual clock, and simulated
 * connections without MQTT. Commands that the gateway sends are collected in a list, and uplinks (messages from locks)
 * pass through the real ingest, the code that stores them.
 */
import { readCommandRequest } from '../../../gateway/commands/command-input.js';
import { type CommandOutcome, Commands } from '../../../gateway/commands/commands.js';
import { GatewayEvents } from '../../../gateway/events.js';
import { Ingest, type Sender } from '../../../gateway/ingest/ingest.js';
import { Locks } from '../../../gateway/locks/locks.js';
import { Session, Sessions } from '../../../gateway/mqtt/sessions.js';
import type { CommandRecord } from '../../../gateway/store/contract/command-record.js';
import type { Store } from '../../../gateway/store/contract/store.js';
import { afterThisTurn, ManualClock } from '../../../proto/clock.js';
import { decodeDownlink } from '../../../proto/wire/codec.js';
import type { Mac } from '../../../proto/wire/mac.js';
import type { CommandAck, Downlink, Ping, PowerSettings, Source } from '../../../proto/wire/ping.js';
import { DEFAULT_POWER } from '../../../proto/wire/ping.js';
import { MERCHANT, testBytes, testMac } from '../gateway/test-gateway.js';
import { openStore } from '../store/new-store.js';
import { type Teardown, tempFolder } from '../store/temp-folder.js';

/** A time of day at which no deadline of the power model is near. */
export const START_MS = Date.UTC(2026, 10, 20, 12);

/** A lock that exists only in the test, which acts for it. */
export interface PlayedLock {
  readonly mac: Mac;
  readonly sender: Sender;
  sequence: number;
  session: Session | undefined;
}

/** The parts of the gateway, and functions that act as a lock or an operator. */
export class CommandSetup {
  readonly clock: ManualClock;
  readonly events = new GatewayEvents();
  readonly folder: string;
  /** The commands that were sent, with the MAC of the lock. */
  readonly sent: { readonly mac: Mac; readonly downlink: Downlink }[] = [];
  /** The changes of commands that the gateway reported, such as `7 sent`, and answers to no command: `9 stray: why`. */
  readonly reported: string[] = [];
  readonly sessions = new Sessions();
  store!: Store;
  commands!: Commands;
  ingest!: Ingest;
  locks!: Locks;

  private constructor(folder: string, clock: ManualClock) {
    this.folder = folder;
    this.clock = clock;
    this.events.on('command', ({ record }) => this.reported.push(`${record.id} ${record.state}`));
    this.events.on('stray-ack', ({ commandId, why }) => this.reported.push(`${commandId} stray: ${why}`));
  }

  /** Opens a setup on a new folder, or on the folder of a closed setup. `wrap` may replace methods of the store. */
  static async open(test: Teardown, previous?: CommandSetup, wrap = (store: Store) => store): Promise<CommandSetup> {
    const setup = new CommandSetup(previous?.folder ?? tempFolder(test), previous?.clock ?? new ManualClock(START_MS));
    const opened = await openStore(setup.folder);
    test.teardown(() => opened.close().catch(() => undefined));
    const { clock, events, sessions } = setup;
    const store = wrap(opened);
    setup.store = store;
    setup.locks = new Locks(store, clock, () => undefined);
    await setup.locks.load();
    // Commands and Ingest need each other, so Commands gets the ingest through this object.
    const holder: { ingest?: Ingest } = {};
    setup.commands = new Commands({
      store,
      events,
      clock,
      wallClock: clock,
      findLock: (deviceId) => setup.locks.find(deviceId),
      sessionOf: (deviceId) => sessions.ofLock(deviceId),
      recordEvent: (...eventArguments) => holder.ingest?.recordEvent(...eventArguments),
    });
    const { commands, locks } = setup;
    setup.ingest = new Ingest({ store, locks, clock, events, commands, onStored: () => undefined });
    holder.ingest = setup.ingest;
    await commands.load();
    if (previous === undefined) await store.addMerchant(MERCHANT, clock.now());
    return setup;
  }

  /** Stops the setup; {@link open} can continue with its folder. */
  async close(): Promise<void> {
    await this.commands.stop();
    await this.ingest.stop();
    await this.store.close();
  }

  /** Adds a lock to the merchant, or finds it. */
  async lock(number = 1, source: Source = 'lock'): Promise<PlayedLock> {
    const mac = testMac(number);
    const existing = await this.store.findDevice(mac);
    const secretHash = Buffer.alloc(32, number);
    const nowMs = this.clock.now();
    const device =
      existing?.device ?? (await this.store.addDevice({ mac, merchant: MERCHANT, simulated: true, secretHash, nowMs }));
    const { id: deviceId, merchantId } = device;
    const credentialId = (await this.store.findLock(mac))?.credentials[0]?.id ?? 0;
    const sender: Sender = { deviceId, merchantId, credentialId, mac, simulated: true, source };
    return { mac, sender, sequence: 0, session: undefined };
  }

  /** The lock connects and subscribes, but sends no uplink yet. */
  async connect(lock: PlayedLock): Promise<void> {
    this.#endSession(lock);
    const { mac, sender } = lock;
    const stream = { destroyed: false };
    const session = new Session({
      sender,
      clientId: mac,
      // Only these members of a connection are read, since `send` below takes the place of MQTT.
      connection: { stream, raw: stream, address: '' } as unknown as Session['connection'],
      expiresAtMs: null,
      messages: { messagesUp: 0, messagesDown: 0 },
      send: async (_session, payload) => {
        const downlink = decodeDownlink(payload);
        if (!downlink.ok) throw new Error(downlink.error.message);
        this.sent.push({ mac, downlink: downlink.value });
      },
    });
    session.connect();
    session.subscription = 'active';
    lock.session = session;
    this.sessions.add(session);
    this.ingest.recordEvent(sender.deviceId, mac, { type: 'connect', source: sender.source, atMs: this.clock.now() });
    this.commands.subscribed(session);
    await this.settle();
  }

  /** The lock's connection is lost. */
  async loseConnection(lock: PlayedLock): Promise<void> {
    const { deviceId, mac, source } = lock.sender;
    this.#endSession(lock);
    this.ingest.recordEvent(deviceId, mac, { type: 'disconnect', source, cause: 'dropped', atMs: this.clock.now() });
    await this.settle();
  }

  /** Removes the lock's session as a closed one. */
  #endSession(lock: PlayedLock): void {
    if (lock.session === undefined) return;
    (lock.session.connection.stream as { destroyed: boolean }).destroyed = true;
    this.sessions.remove(lock.session);
    lock.session = undefined;
  }

  /** The lock connects and sends a ping. */
  async connectAndPing(lock: PlayedLock, batteryPercent = 80): Promise<void> {
    await this.connect(lock);
    await this.ping(lock, batteryPercent);
  }

  /** The lock sends a ping: of a movement, or below 10 %, where a lock reports only thefts, of a theft. */
  async ping(lock: PlayedLock, batteryPercent = 80, power: PowerSettings = DEFAULT_POWER): Promise<void> {
    const sensorValues = {
      firmwareVersion: '2.4.1',
      ebikeVolts: null,
      tetherState: 'detached',
      position: null,
    } as const;
    const reason = batteryPercent < 10 ? 'REASON_THEFT' : 'REASON_UNLOCKED_MOVEMENT';
    const lockState = batteryPercent < 10 ? 'locked' : 'unlocked';
    await this.send(lock, { kind: 'cellular', reason, lockState, batteryPercent, ...sensorValues }, power);
  }

  /** The lock answers a command. */
  async ack(lock: PlayedLock, commandId: number, result: CommandAck['result'] = 'ok', detail = ''): Promise<void> {
    await this.send(lock, { kind: 'ack', commandId, result, detail, highWindow: null });
  }

  /** Sends an uplink. @throws Error if the ingest refuses to acknowledge it */
  async send(lock: PlayedLock, body: Ping | CommandAck, power: PowerSettings = DEFAULT_POWER): Promise<void> {
    lock.sequence += 1;
    await this.take(lock, testBytes(lock.sequence, { timeMs: this.clock.now(), body, power }));
  }

  /** Passes the bytes of an uplink to the ingest. */
  async take(lock: PlayedLock, bytes: Buffer): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.ingest.take(lock.sender, bytes, (error) => (error === undefined ? resolve() : reject(error)));
    });
    await this.settle();
  }

  /** Requests a command for one lock, as the operators' interface does. */
  async command(lock: PlayedLock, type: string, members: object = {}): Promise<CommandRecord> {
    const [outcome] = await this.request({ macs: [lock.mac], type, ...members });
    if (outcome === undefined || !('record' in outcome)) throw new Error('the command was refused');
    return outcome.record;
  }

  /** Requests commands with this body. */
  async request(body: object): Promise<CommandOutcome[]> {
    const outcomes = await this.commands.send(readCommandRequest(body, this.clock.now()));
    await this.settle();
    return outcomes;
  }

  /** Advances the clock, and waits until everything that was due is done. */
  async advance(span: number): Promise<void> {
    this.clock.advance(span);
    await this.settle();
  }

  /**
   * Waits until the ingest (which takes uplinks) and the store are idle: three rounds, as either can start the other.
   */
  async settle(): Promise<void> {
    for (let round = 0; round < 3; round += 1) {
      await this.ingest.idle();
      // The store writes in order, so all earlier writes are finished when this one is.
      await this.store.writeMetadata('settled', '');
      await new Promise<void>((resolve) => afterThisTurn(resolve));
    }
  }

  /** Removes and returns the ids of the commands sent since the last call. */
  takeSent(): number[] {
    return this.sent.splice(0).map(({ downlink }) => downlink.id);
  }

  /** Removes and returns the changes reported since the last call. */
  takeReported(): string[] {
    return this.reported.splice(0);
  }
}
