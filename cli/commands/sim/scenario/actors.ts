/**
 * The actors of a live scenario: an operator who sends commands, and phones, each with a credential that the operator's
 * interface creates for the run.
 */
import { sendAsPhone } from '../../../../firmware-sim/link/phone-mqtt.js';
import type { Actors } from '../../../../firmware-sim/scenario/play.js';
import type { Scenario } from '../../../../firmware-sim/scenario/scenario.js';
import { commandToJson } from '../../../../proto/trace/writer.js';
import { formatMac, type Mac } from '../../../../proto/wire/mac.js';
import type { Command, PingUplink } from '../../../../proto/wire/ping.js';
import type { GatewayClient } from '../../../client.js';
import type { SimGateway } from '../gateway.js';

/** The part of a gateway that is needed. */
type Gateway = Pick<SimGateway, 'address' | 'client' | 'macs'>;

export class LiveActors implements Actors {
  /** The first error of the gateway. */
  trouble: Error | undefined;
  readonly #gateway: Gateway;
  readonly #phoneName: string;
  readonly #secrets = new Map<Mac, string>();
  readonly #underWay = new Set<Promise<void>>();

  constructor(gateway: Gateway, bootsBefore: number) {
    this.#gateway = gateway;
    this.#phoneName = `sim${bootsBefore}`;
  }

  /** Creates a credential for a phone of each lock for which a phone acts. */
  async prepare({ locks, events }: Scenario): Promise<void> {
    const names = new Set(
      events.filter(({ deviceEvent }) => deviceEvent.type === 'phone').flatMap((event) => event.locks),
    );
    for (const [index, { name }] of locks.entries()) {
      const mac = this.#gateway.macs[index];
      if (mac === undefined || !names.has(name)) continue;
      const { secret } = await this.#client.post<{ secret: string }>(phonesOf(mac), { name: this.#phoneName });
      this.#secrets.set(mac, secret);
    }
  }

  command(mac: Mac, command: Command): void {
    const { type, ...parameters } = commandToJson(command);
    this.#do(
      this.#client.post('/commands', {
        type,
        ...(Object.keys(parameters).length > 0 && { parameters }),
        macs: [formatMac(mac)],
        // The author of the scenario meant it.
        ...(command.type === 'set-power' && command.airplane === true && { confirm_airplane: true }),
        asked_by: 'a scenario',
      }),
    );
  }

  phone(mac: Mac, uplink: PingUplink, acknowledged: () => void): void {
    const phone = { mac, name: this.#phoneName, secret: this.#secrets.get(mac) ?? '' };
    this.#do(sendAsPhone(this.#gateway.address, phone, uplink).then(acknowledged));
  }

  /** How many requests are still in progress. */
  get underWay(): number {
    return this.#underWay.size;
  }

  /** Waits for requests in progress, and revokes the phones' credentials. */
  async close(): Promise<void> {
    await Promise.all(this.#underWay);
    for (const mac of this.#secrets.keys()) await this.#client.delete(`${phonesOf(mac)}/${this.#phoneName}`);
  }

  get #client(): GatewayClient {
    const { client } = this.#gateway;
    if (client === null) throw new Error('what needs the operator was refused before');
    return client;
  }

  #do(act: Promise<unknown>): void {
    const done = act.then(
      () => undefined,
      (error: Error) => {
        this.trouble ??= error;
      },
    );
    this.#underWay.add(done);
    void done.then(() => this.#underWay.delete(done));
  }
}

function phonesOf(mac: Mac): string {
  return `/devices/${encodeURIComponent(formatMac(mac))}/phones`;
}
