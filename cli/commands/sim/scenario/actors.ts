/**
 * The actors of a live scenario: the operator, who sends commands through the operator interface, and phones, each with
 * a credential that the operator interface creates for the run.
 */
import { sendAsPhone } from '../../../../firmware-sim/link/phone-mqtt.js';
import type { Actors } from '../../../../firmware-sim/scenario/play.js';
import type { Scenario } from '../../../../firmware-sim/scenario/scenario.js';
import { commandToJson } from '../../../../proto/trace/writer.js';
import { formatMac, type Mac } from '../../../../proto/wire/mac.js';
import type { Command, PingUplink } from '../../../../proto/wire/ping.js';
import type { GatewayClient } from '../../../client.js';
import type { SimGateway } from '../gateway.js';

/** The members of a gateway that actors need. */
type Gateway = Pick<SimGateway, 'address' | 'client' | 'macs'>;

/** Carries out a scenario's commands and phone actions against a gateway. */
export class LiveActors implements Actors {
  /** The first error of a request. */
  firstError: Error | undefined;
  readonly #gateway: Gateway;
  readonly #phoneName: string;
  /** The secret of each lock's phone. */
  readonly #secrets = new Map<Mac, string>();
  readonly #inProgress = new Set<Promise<void>>();

  /** @param runNumber a number that no other run has; the phones are named after it */
  constructor(gateway: Gateway, runNumber: number) {
    this.#gateway = gateway;
    this.#phoneName = `sim${runNumber}`;
  }

  /** Creates a credential for a phone of each lock for which a phone acts. */
  async prepare({ locks, events }: Scenario): Promise<void> {
    const locksWithPhone = new Set(
      events.filter(({ deviceEvent }) => deviceEvent.type === 'phone').flatMap((event) => event.locks),
    );
    for (const [index, { name }] of locks.entries()) {
      const mac = this.#gateway.macs[index];
      if (mac === undefined || !locksWithPhone.has(name)) continue;
      const { secret } = await this.#client.post<{ secret: string }>(phonesPath(mac), { name: this.#phoneName });
      this.#secrets.set(mac, secret);
    }
  }

  /** Sends a command as the operator. */
  command(mac: Mac, command: Command): void {
    const { type, ...parameters } = commandToJson(command);
    this.#start(
      this.#client.post('/commands', {
        type,
        ...(Object.keys(parameters).length > 0 && { parameters }),
        macs: [formatMac(mac)],
        // The scenario's author wants airplane mode, so no further confirmation is needed.
        ...(command.type === 'set-power' && command.airplane === true && { confirm_airplane: true }),
        asked_by: 'a scenario',
      }),
    );
  }

  /** Sends an uplink, a message that counts as the lock's, as a phone. */
  phone(mac: Mac, uplink: PingUplink, acknowledged: () => void): void {
    const phone = { mac, name: this.#phoneName, secret: this.#secrets.get(mac) ?? '' };
    this.#start(sendAsPhone(this.#gateway.address, phone, uplink).then(acknowledged));
  }

  /** The number of requests in progress. */
  get inProgress(): number {
    return this.#inProgress.size;
  }

  /** Waits for requests in progress, and revokes the phones' credentials. */
  async close(): Promise<void> {
    await Promise.all(this.#inProgress);
    for (const mac of this.#secrets.keys()) await this.#client.delete(`${phonesPath(mac)}/${this.#phoneName}`);
  }

  get #client(): GatewayClient {
    const { client } = this.#gateway;
    // Without an operator interface, live.ts refuses a scenario that has commands or phones.
    if (client === null) throw new Error('this scenario needs the operator interface');
    return client;
  }

  /** Stores the request's error instead of throwing it. */
  #start(request: Promise<unknown>): void {
    const done = request.then(
      () => undefined,
      (error: Error) => {
        this.firstError ??= error;
      },
    );
    this.#inProgress.add(done);
    void done.then(() => this.#inProgress.delete(done));
  }
}

function phonesPath(mac: Mac): string {
  return `/devices/${encodeURIComponent(formatMac(mac))}/phones`;
}
