/** `lockgate serve`: runs the gateway until SIGINT or SIGTERM. */
import { writeFileSync } from 'node:fs';
import type { Command } from 'commander';
import type { Logger } from 'pino';
import type { Config } from '../../../gateway/config.js';
import type { Gateway } from '../../../gateway/gateway.js';
import type { SettingInForce } from '../../../gateway/resolved-settings.js';
import { VERSION } from '../../../gateway/version.js';
import { systemClock } from '../../../proto/clock.js';
import { LockgateError } from '../../../proto/errors.js';
import { addressFile } from '../../client.js';
import { tuneGarbageCollection } from '../../garbage-collection.js';
import { onHangUp, untilInterrupted } from '../../terminal/interrupt.js';
import { print, printNote } from '../../terminal/output.js';
import type { SettingFlags } from './setting-sources.js';

/** The flag that allows a start on a data folder whose store is lost. */
export const NEW_FLAG = ['--new', 'Start with a new, empty store if the data folder has lost its store.'] as const;

/** The flag that names the settings file. */
export const CONFIG_FLAG = ['--config <file>', 'A settings file, which flags and environment override.'] as const;

/** The flags of commands that run a gateway. */
export interface RunFlags extends SettingFlags {
  readonly new?: boolean;
}

/** The flags of `serve`. */
interface ServeFlags extends RunFlags {
  readonly config?: string;
}

/**
 * The flags of the settings, with their help texts. A copy of the gateway's settings table, which help must not load; a
 * test compares the names of the flags.
 */
export const SETTING_FLAGS: readonly (readonly [flag: string, help: string])[] = [
  ['--data <folder>', 'The data folder (default: ./data).'],
  ['--store <url>', 'A PostgreSQL database for the store (default: SQLite in the data folder).'],
  ['--key-file <file>', 'The file with the key that encrypts secrets (default: key in the data folder).'],
  ['--mqtt-host <address>', 'The address for MQTT without TLS (default: 127.0.0.1).'],
  ['--mqtt-port <port>', 'The port for MQTT without TLS; 0 lets the system choose (default: 1883).'],
  ['--mqtt-tls-host <address>', 'The address for MQTT over TLS (default: 0.0.0.0).'],
  ['--mqtt-tls-port <port>', 'The port for MQTT over TLS; 0 lets the system choose (default: 8883).'],
  ['--mqtt-tls-cert <file>', 'The certificate with its chain (PEM); enables TLS.'],
  ['--mqtt-tls-key <file>', 'The certificate’s private key (PEM).'],
  ['--mqtt-per-address <count>', 'Maximum MQTT connections from one address; 0 for no limit (default: 0).'],
  ['--mqtt-proxies <ranges>', 'Balancers in front of MQTT that send the PROXY protocol, such as 10.0.0.0/8.'],
  [
    '--lock-uplinks-per-second <count>',
    'Maximum uplinks per second of a lock, on average; 0 for no limit (default: 200).',
  ],
  ['--lock-uplink-burst <count>', 'Maximum burst of uplinks of a lock (default: 2000).'],
  ['--lock-uplinks-per-day <count>', 'Maximum uplinks per day of a lock; 0 for no limit (default: 200000).'],
  ['--http-host <address>', 'The address of the merchants’ HTTP interface (default: 127.0.0.1).'],
  ['--http-port <port>', 'The port of the merchants’ HTTP interface; 0 lets the system choose (default: 8080).'],
  ['--http-cors-origin <origins>', 'Origins whose pages may call the HTTP interface, such as https://example.com.'],
  ['--console-hosts <names>', 'Names under which browsers reach the console through a proxy.'],
  ['--map-tiles <url>', 'Street tiles for the console’s map, as https://tiles.example.com/{z}/{x}/{y}.png.'],
  ['--map-attribution <text>', 'Whose map the tiles are, shown on the map (default: their host).'],
  ['--map-streets <file>', 'A GeoJSON file with lines of streets that the console’s map draws.'],
  ['--http-per-address <count>', 'Maximum HTTP connections from one address; 0 for no limit (default: 1000).'],
  ['--trusted-proxies <ranges>', 'Proxies whose X-Forwarded-For header is trusted, such as 10.0.0.0/8.'],
  ['--merchant-requests <rate>', 'Maximum HTTP requests per second of a merchant; 0 for no limit (default: 50).'],
  ['--merchant-requests-burst <count>', 'Maximum burst of requests of a merchant (default: 200).'],
  [
    '--merchant-bytes <rate>',
    'Maximum request body bytes per second of a merchant; 0 for no limit (default: 1048576).',
  ],
  ['--merchant-bytes-burst <bytes>', 'Maximum burst of body bytes of a merchant (default: 8388608).'],
  ['--merchant-hashes <rate>', 'Maximum password hashes per minute of a merchant; 0 for no limit (default: 20).'],
  ['--merchant-hashes-burst <count>', 'Maximum burst of password hashes of a merchant (default: 1000).'],
  [
    '--merchant-pets <count>',
    'Maximum pets that a merchant may store with POST /v1/pet; 0 for no limit (default: 100000).',
  ],
  ['--merchant-pet-bytes <bytes>', 'Maximum size of a stored pet in bytes (default: 16384).'],
  ['--merchant-users <count>', 'Maximum users of a merchant; 0 for no limit (default: 1000000).'],
  ['--merchant-kept-bytes <bytes>', 'Maximum bytes that a merchant may store; 0 for no limit (default: 1073741824).'],
  ['--name-length <characters>', 'Maximum length of a name; 0 for no limit (default: 256).'],
  [
    '--stranger-requests <rate>',
    'Maximum requests per second without a key from one address; 0 for no limit (default: 100).',
  ],
  ['--stranger-requests-burst <count>', 'Maximum burst of requests without a key (default: 1000).'],
  ['--operator-host <address>', 'The address of the operator’s interface (default: 127.0.0.1).'],
  ['--operator-port <port>', 'The port of the operator’s interface (default: 8081).'],
  ['--allow-webhook-range <ranges>', 'Non-public addresses that webhooks may go to, such as 127.0.0.0/8.'],
  [
    '--notify-url <url>',
    'URL that gets a signed POST for each notice of a problem, and again when the problem ends (default: none).',
  ],
  ['--keep-days <days>', 'Days to store pings and findings: 31 or more, or 0 for no limit (default: 400).'],
  ['--log-format <format>', 'The log format: auto, pretty or json; auto is pretty on a terminal (default: auto).'],
  ['--log-level <level>', 'The lowest level to log: debug, info, warn, error or fatal (default: info).'],
];

/** Adds the command to the program. */
export function addServeCommand(program: Command): void {
  const serve = program.command('serve').description('Run the gateway.');
  for (const [flag, help] of SETTING_FLAGS) serve.option(flag, help);
  serve.option(...CONFIG_FLAG);
  serve.option(...NEW_FLAG);
  serve
    .addHelpText('after', '\nExample:\n  $ lockgate serve --data ./data --allow-webhook-range 127.0.0.0/8')
    .action(runGateway);
}

async function runGateway(flags: ServeFlags): Promise<void> {
  tuneGarbageCollection();
  const { readConfig } = await import('../../../gateway/config-reader.js');
  const { misspeltVariables, settingsInForce } = await import('../../../gateway/resolved-settings.js');
  const { GatewayEvents } = await import('../../../gateway/events.js');
  const { startGateway } = await import('../../../gateway/gateway.js');
  const { logEvents } = await import('../../../gateway/log/log.js');
  const { loadRequestChecks } = await import('../../../gateway/http/operator/check-request.js');
  const { closeGateway, exitBroken } = await import('./gateway-end.js');
  const { openLog } = await import('./serve-log.js');
  const { ServiceManager } = await import('./service-manager.js');
  const { rereadSettings, settingsFrom } = await import('./setting-sources.js');
  const settings = await settingsFrom(flags);
  const config = readConfig(settings);
  const { log, isJson } = openLog(config);
  for (const sentence of misspeltVariables(process.env)) log.warn({ event: 'setting-unknown' }, sentence);
  const interrupted = untilInterrupted();
  const events = new GatewayEvents();
  const onFailure = ({ message }: Error): void => log.warn({ event: 'service-manager' }, message.trim());
  const manager = new ServiceManager({ environment: process.env, clock: systemClock, onFailure });
  const stopLogging = logEvents(log, events, systemClock);
  try {
    // Several gateways may share a database; a file is one gateway's.
    const isShared = config.store != null;
    const makeNew = flags.new === true;
    const gateway = await startGateway(config, { events, settings, onBroken: exitBroken, makeNew, isShared });
    writeAddress(config, gateway);
    printReady(config, gateway);
    // Preloaded, so that the first request does not wait, and succeeds even if file descriptors run out later. The
    // first request reports a failure.
    void loadRequestChecks().catch(() => undefined);
    onHangUp(async () => {
      void manager.reloading();
      await rereadSettings(flags, settings, log);
      rereadCertificate(config, gateway, log);
      void manager.ready();
    });
    void manager.ready();
    // The text format needs no log line: printReady has printed the same.
    if (isJson) log.info(startedMembers(settingsInForce(settings), gateway), 'started');
    await interrupted.happened;
    void manager.stopping();
    if (isJson) log.info({ event: 'stopping' }, 'stopping');
    else printNote('Stopping: pings that have arrived are stored and acknowledged first.');
    await closeGateway(gateway, (why) => log.fatal({ event: 'stop-hung' }, why));
    if (isJson) log.info({ event: 'stopped' }, 'stopped');
  } finally {
    stopLogging();
  }
  // A signal is the ordinary end of a gateway, not a failure.
  process.exitCode = 0;
}

/**
 * Handles SIGHUP: rereads the TLS certificate for new connections. An invalid certificate changes nothing. The
 * operator's token needs no SIGHUP.
 */
function rereadCertificate({ mqttTls }: Config, gateway: Gateway, log: Logger): void {
  if (mqttTls === null) {
    log.info({ event: 'nothing-to-read' }, 'SIGHUP: nothing to reread, because no TLS certificate is set');
    return;
  }
  try {
    const { validTo, fingerprint } = gateway.reloadTls();
    log.info(
      { event: 'tls-read', valid_to: validTo, fingerprint },
      `reread the certificate; it is valid until ${validTo}`,
    );
  } catch (error) {
    if (!(error instanceof LockgateError)) throw error;
    log.error({ event: 'tls-wrong' }, `${error.message}; the previous certificate stays in use`);
  }
}

/** The members of the log line "started": version, settings and ports in use. `given` never contains a secret. */
function startedMembers(settings: readonly SettingInForce[], gateway: Gateway): Record<string, unknown> {
  const entries = settings.map(({ key, given }) => [key, given]);
  const { mqttPort, mqttTlsPort, httpPort, operatorPort } = gateway;
  const ports = { mqtt: mqttPort, mqtts: mqttTlsPort, http: httpPort, operator: operatorPort };
  return { event: 'started', version: VERSION, settings: Object.fromEntries(entries), ports };
}

/** Writes the gateway's address to the data folder, so that commands find this gateway without a flag. */
export function writeAddress(config: Config, gateway: Gateway): void {
  writeFileSync(addressFile(config.data), `${operatorAddress(config, gateway)}\n`, { mode: 0o600 });
}

/** The address of the operators' interface, for programs on this machine. */
export function operatorAddress({ operatorHost }: Config, { operatorPort }: Pick<Gateway, 'operatorPort'>): string {
  return `http://${connectHost(operatorHost)}:${operatorPort}`;
}

/** The host to connect to: loopback if the gateway listens on all addresses. */
function connectHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1';
  return host.includes(':') ? `[${host}]` : host;
}

/** Prints the addresses; other programs read these lines, so they don't change. */
function printReady(config: Config, gateway: Gateway): void {
  print(`Gateway ready, data in ${config.data} (${gateway.store.description}).`);
  print(`  locks      mqtt://${connectHost(config.mqttHost)}:${gateway.mqttPort}`);
  if (gateway.mqttTlsPort !== undefined)
    print(`             mqtts://${connectHost(config.mqttTlsHost)}:${gateway.mqttTlsPort}`);
  print(`  merchants  http://${connectHost(config.httpHost)}:${gateway.httpPort}`);
  print(`  operators  http://${connectHost(config.operatorHost)}:${gateway.operatorPort}`);
  print('Ctrl-C stops it. Next: lockgate merchant add NAME, lockgate device add MAC, lockgate tail');
}
