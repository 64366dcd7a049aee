/**
 * The addresses at which the broker listens for locks: plain TCP, and TLS if there is a certificate. It must not know
 * MQTT; every accepted connection goes to the broker.
 */
import type { SecureContext } from 'node:tls';
import { LockgateError } from '../../proto/errors.js';
import type { BrokerOptions } from './broker-options.js';
import { type Connection, Listener } from './listener.js';
import type { ProxiedConnections } from './proxied-connections.js';
import type { SocketCopier } from './socket-copier.js';
import { readTlsIdentity, type TlsIdentity } from './tls-identity.js';

export class BrokerListeners {
  readonly #options: Pick<BrokerOptions, 'host' | 'port' | 'tls'>;
  readonly #proxied: ProxiedConnections;
  #plain: Listener | undefined;
  #overTls: Listener | undefined;
  /** The certificate and key in use; undefined without TLS. */
  #identity: TlsIdentity | undefined;

  constructor(options: Pick<BrokerOptions, 'host' | 'port' | 'tls'>, proxied: ProxiedConnections) {
    this.#options = options;
    this.#proxied = proxied;
  }

  /**
   * Starts to listen. If it fails, {@link close} must still be called.
   *
   * @throws LockgateError `port-taken`, `input-address`, `tls-file`
   */
  async start(onConnection: (connection: Connection) => void): Promise<void> {
    const { host, port, tls } = this.#options;
    if (tls) this.reloadTls();
    const proxied = this.#proxied;
    this.#plain = await Listener.start({ host, port, proxied, onConnection });
    if (!tls) return;
    // Set by `reloadTls` above. Each handshake asks for it, so that new connections get a renewed certificate.
    const context = (): SecureContext => (this.#identity as TlsIdentity).context;
    this.#overTls = await Listener.start({ host: tls.host, port: tls.port, tls: context, proxied, onConnection });
  }

  /** Copies the sockets, so that several connections are accepted in one turn of the event loop. */
  async copySockets(copier: Pick<SocketCopier, 'copy'>): Promise<void> {
    await this.#plain?.copySocket(copier);
    await this.#overTls?.copySocket(copier);
  }

  get port(): number {
    return this.#plain?.port ?? 0;
  }

  /** Undefined if there is no listener over TLS. */
  get tlsPort(): number | undefined {
    return this.#overTls?.port;
  }

  /** Reads certificate and key again. New connections use them; open ones stay. @throws LockgateError `tls-file` */
  reloadTls(): TlsIdentity {
    const { tls } = this.#options;
    if (!tls) throw new LockgateError('tls-file', 'no TLS certificate is set');
    this.#identity = readTlsIdentity(tls.files);
    return this.#identity;
  }

  /** When the current certificate expires, ms since the epoch; null without TLS. */
  get certificateEndMs(): number | null {
    return this.#identity === undefined ? null : Date.parse(this.#identity.validTo);
  }

  /** Stops accepting connections at once. Resolves when the ports are free. */
  async close(): Promise<void> {
    const closed = Promise.all([this.#plain?.close(), this.#overTls?.close()]);
    this.#proxied.close();
    await closed;
  }
}
