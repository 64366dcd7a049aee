/**
 * Runs `lockgate serve` on a machine whose clock the test sets. The locks and the merchant's endpoint have the real
 * time.
 */
import { GatewayClient } from '../../../cli/client.js';
import { systemClock } from '../../../proto/clock.js';
import { formatMac, type Mac } from '../../../proto/wire/mac.js';
import { ServeProgram } from '../cli/serve-program.js';
import { MERCHANT, testBytes, testMac } from '../gateway/test-gateway.js';
import { type TestReceiver, testReceiver } from '../gateway/test-receiver.js';
import { TestLock } from '../mqtt/test-lock.js';
import { type Teardown, tempFolder } from '../store/temp-folder.js';
import { ChangeSignal, within } from './change-signal.js';
import { SetClock } from './set-clock.js';

/** A lock of the fleet: its credentials, and how many pings it has made. */
interface FleetLock {
  readonly mac: Mac;
  readonly secret: string;
  pingCount: number;
  connection: TestLock | undefined;
}

/** An event, as `tail --json` prints it. */
export type PrintedEvent = Readonly<Record<string, unknown>> & { readonly event: string };

/** What `GET /status` says about the machine's clock. */
export interface ClockStatus {
  readonly state: 'agrees' | 'ahead' | 'behind';
  readonly machine: string;
  readonly confirmed: string;
  readonly since: string | null;
  readonly locks_agreeing: number;
  readonly locks_needed: number | null;
}

/** A notice to operators, as `GET /notices` lists it; `resolved_at` is null while its cause lasts. */
export interface NoticeRow {
  readonly kind: string;
  readonly subject: string;
  readonly text: string;
  readonly resolved_at: string | null;
}

/** The gateway, its machine's clock, its locks and the merchant's receiver. */
export class ClockSetup {
  readonly clock: SetClock;
  readonly data: string;
  readonly receiver: TestReceiver;
  readonly locks: FleetLock[] = [];
  serve!: ServeProgram;
  client!: GatewayClient;
  readonly #test: Teardown;
  /** The gateway's events since its start that {@link nextEvent} has neither returned nor skipped. */
  readonly #unreadEvents: PrintedEvent[] = [];
  readonly #changeSignal = new ChangeSignal();

  private constructor(test: Teardown, receiver: TestReceiver) {
    this.#test = test;
    this.data = tempFolder(test);
    this.clock = new SetClock(test);
    this.receiver = receiver;
  }

  /** Starts a gateway with a merchant, a webhook URL and `locks` locks, each of which has sent a ping. */
  static async open(test: Teardown, locks: number): Promise<ClockSetup> {
    const setup = new ClockSetup(test, await testReceiver(test));
    await setup.start();
    await setup.client.post('/merchants', { name: MERCHANT });
    await setup.client.post('/webhooks', { merchant: MERCHANT, url: setup.receiver.url });
    for (let number = 1; number <= locks; number += 1) {
      const mac = testMac(number);
      const { secret } = await setup.client.post<{ secret: string }>('/devices', { mac: formatMac(mac) });
      setup.locks.push({ mac, secret, pingCount: 0, connection: undefined });
    }
    for (const lock of setup.locks) await setup.ping(lock);
    await setup.receiver.waitForRequests(locks);
    return setup;
  }

  get first(): FleetLock {
    return this.locks[0] as FleetLock;
  }

  /** Starts the gateway, and collects its events. */
  async start(): Promise<void> {
    this.serve = await ServeProgram.start(this.#test, this.data, this.clock.environment);
    this.client = new GatewayClient({ data: this.data });
    this.#unreadEvents.length = 0;
    const listening = new AbortController();
    this.#test.teardown(() => listening.abort());
    // Listening fails when a test stops the gateway.
    void this.#collectEvents(await this.client.listen('/events', listening.signal)).catch(() => undefined);
  }

  async #collectEvents(lines: AsyncIterable<string>): Promise<void> {
    for await (const line of lines) {
      if (line === '') continue;
      this.#unreadEvents.push(JSON.parse(line) as PrintedEvent);
      this.#changeSignal.notify();
    }
  }

  /**
   * Resolves with the next unread event of this name for which `matches` returns true. Skips events before it.
   * @throws Error if none comes within `seconds`
   */
  async nextEvent(
    event: string,
    matches: (nextEvent: PrintedEvent) => boolean = () => true,
    seconds = 30,
  ): Promise<PrintedEvent> {
    const indexOfMatch = (): number =>
      this.#unreadEvents.findIndex((nextEvent) => nextEvent.event === event && matches(nextEvent));
    await this.#changeSignal.waitUntil(
      () => indexOfMatch() >= 0,
      seconds,
      () => event,
    );
    return this.#unreadEvents.splice(0, indexOfMatch() + 1).at(-1) as PrintedEvent;
  }

  /** Resolves when the gateway next reports that its clock is in this state. */
  async waitForClockState(state: ClockStatus['state']): Promise<void> {
    await this.nextEvent('clock', (nextEvent) => nextEvent.state === state);
  }

  /** Resolves when the merchant has every ping. Counts ids, since a ping may be sent twice. */
  async waitForDelivery(): Promise<void> {
    const expectedCount = this.locks.reduce((sum, { pingCount }) => sum + pingCount, 0);
    const ids = (): number => new Set(this.receiver.requests.map(({ headers }) => headers['webhook-id'])).size;
    await within(60, () => `${expectedCount} pings; ${ids()} arrived`, this.#receivedAll(expectedCount, ids));
  }

  async #receivedAll(expectedCount: number, ids: () => number): Promise<void> {
    while (ids() < expectedCount) await this.receiver.waitForRequests(this.receiver.requests.length + 1);
  }

  /** Stops the gateway as an operator does. */
  async stop(): Promise<void> {
    for (const lock of this.locks) {
      await lock.connection?.client.endAsync();
      lock.connection = undefined;
    }
    this.serve.program.kill('SIGTERM');
    await this.serve.program.waitForExit();
  }

  /** Sends a ping made now by the lock's clock, which is wrong by `clockErrorMs`. Resolves when it is acknowledged. */
  async ping(lock: FleetLock, clockErrorMs = 0): Promise<void> {
    lock.connection ??= await TestLock.connect(this.#test, this.serve.mqttPort, lock.mac, lock.secret);
    lock.pingCount += 1;
    await lock.connection.send(testBytes(lock.pingCount, { timeMs: systemClock.now() + clockErrorMs }));
  }

  async clockStatus(): Promise<ClockStatus> {
    return (await this.client.get<{ clock: ClockStatus }>('/status')).clock;
  }

  /** The notice about a clock that is ahead or behind; undefined if there is none. */
  async clockNotice(subject: 'ahead' | 'behind'): Promise<NoticeRow | undefined> {
    const { notices } = await this.client.get<{ notices: NoticeRow[] }>('/notices?kind=clock-leapt');
    return notices.find((notice) => notice.subject === subject);
  }

  /** How many pings of each lock the store has. */
  async storedPings(): Promise<number[]> {
    const counts: number[] = [];
    for (const { mac } of this.locks)
      counts.push((await this.client.get<{ uplinks: unknown[] }>(`/devices/${mac}`)).uplinks.length);
    return counts;
  }
}
