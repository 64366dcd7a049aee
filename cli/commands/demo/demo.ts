/**
 * The demo: a gateway, a merchant with simulated locks at 60 × speed, and the merchant's webhook receiver. Only the
 * locks are simulated; the gateway, its store, MQTT and HTTP over loopback are real.
 *
 * The folder `demo/` in the data folder has what the locks and the merchant would store (secrets, the receiver's port,
 * and each lock's flash: its persistent memory), so that a second start continues with the same fleet.
 */
import { createServer } from 'node:net';
import path from 'node:path';
import { Fleet } from '../../../firmware-sim/fleet/fleet.js';
import { mqttLinks } from '../../../firmware-sim/link/mqtt-link.js';
import { DirectoryFlash } from '../../../firmware-sim/lock/flash.js';
import { AMSTERDAM } from '../../../firmware-sim/world/routes/city.js';
import { cityWithStreets, streetsGeoJson } from '../../../firmware-sim/world/routes/street-grid.js';
import type { Config } from '../../../gateway/config.js';
import { readConfig } from '../../../gateway/config-reader.js';
import { GatewayEvents } from '../../../gateway/events.js';
import { type Gateway, startGateway } from '../../../gateway/gateway.js';
import { listenToAll } from '../../../gateway/http/operator/json/event.js';
import { logEvents } from '../../../gateway/log/log.js';
import { streetLines } from '../../../gateway/map/street-lines.js';
import { type ResolvedSetting, resolveSettings } from '../../../gateway/resolved-settings.js';
import type { SettingKey } from '../../../gateway/settings.js';
import { systemClock } from '../../../proto/clock.js';
import { untilInterrupted } from '../../terminal/interrupt.js';
import { paint, print, printNote } from '../../terminal/output.js';
import { closeGateway, exitBroken } from '../serve/gateway-end.js';
import { operatorAddress, writeAddress } from '../serve/serve.js';
import { openLog } from '../serve/serve-log.js';
import { eventLines } from '../tail/event-line.js';
import { type Receiver, startReceiver } from '../webhook/receiver.js';
import { webhookLine } from '../webhook/webhook-line.js';
import { consoleText, type DemoAccounts, dashboardText, openDemoAccounts } from './accounts.js';
import type { DemoFlags } from './flags.js';

const HOST = '127.0.0.1';
const DEFAULT_WEBHOOK_PORT = 9000;
/** The city of the locks. Its streets do not depend on the fleet's seed: a city stays when its bicycles change. */
const CITY = cityWithStreets(AMSTERDAM, 'demo');

/** Runs the demo until Ctrl-C. @throws LockgateError for a wrong setting, data folder or port */
export async function runDemo(flags: DemoFlags): Promise<void> {
  const interrupted = untilInterrupted();
  const { config, settings } = await demoConfig(flags);
  const onBroken = (failure: Error): void => {
    printNote(`lockgate: ${failure.message}; the store can no longer be trusted, so the demo stops`);
    exitBroken();
  };
  // The demo prints events itself, so a log is only needed for programs, as JSON.
  const events = new GatewayEvents();
  const stopLogging =
    config.logFormat === 'json' ? logEvents(openLog(config).log, events, systemClock) : () => undefined;
  // The gateway has withdrawn other users' rights to files of its data folder.
  events.on('files-mended', ({ what }) => printNote(what));
  // `makeNew`: whether to start with an empty store if the data folder has lost its store.
  const { speed, new: makeNew = false } = flags;
  const gateway = await startGateway(config, { speed, events, settings, onBroken, makeNew });
  // Called in reverse order.
  const closers: (() => Promise<void>)[] = [
    async () => stopLogging(),
    () => closeGateway(gateway, (why) => printNote(`lockgate: ${why}`)),
  ];
  try {
    writeAddress(config, gateway);
    const accounts = await openDemoAccounts(gateway, config.data, flags, () => choosePort(flags.webhookPort));
    const receiver = await startDemoReceiver(accounts);
    // First in the list, so closed last: the gateway still delivers webhooks to the receiver while it closes.
    closers.unshift(() => receiver.close());
    const dashboard = await dashboardText(gateway, `http://${HOST}:${gateway.httpPort}`);
    const operatorPage = await consoleText(gateway, operatorAddress(config, gateway));
    printReady(config, gateway, accounts, { ...flags, dashboard, operatorPage });
    listenToAll(gateway.events, (event) => {
      // The receiver prints successful deliveries.
      if (event.event === 'delivery' && event.outcome === 'delivered') return;
      // The lines of the connect and disconnect events already say this.
      if (event.event === 'presence' && (event.presence === 'online' || event.presence === 'asleep')) return;
      for (const line of eventLines(event, lineWidth())) print(line);
    });
    const fleet = startFleet(gateway, config, accounts);
    closers.push(() => fleet.stop());
    await interrupted.happened;
    printNote('\nStopping: first the locks, then deliveries, then the store.');
  } finally {
    for (const close of closers.reverse()) await close();
  }
  const restart = config.data === './data' ? 'npm start' : `lockgate demo --data ${config.data}`;
  printNote(`Stopped. The data is in ${config.data}; ${restart} continues with it.`);
}

function lineWidth(): number | undefined {
  return process.stdout.isTTY ? process.stdout.columns : undefined;
}

/** The address range of the demo's webhook receiver. */
const LOOPBACK_RANGE = '127.0.0.0/8';

/** The settings. Occupied default ports are replaced by free ones, and webhooks may go to loopback. */
export async function demoConfig(flags: DemoFlags): Promise<{ config: Config; settings: ResolvedSetting[] }> {
  const resolved = resolveSettings(flags, process.env).map(withLoopback);
  const config = readConfig(resolved);
  const isChosen = (key: SettingKey): boolean => {
    return resolved.some(({ setting, source }) => setting.key === key && source !== 'default');
  };
  const freePort = async (key: 'mqttPort' | 'httpPort' | 'operatorPort', host: string): Promise<number> => {
    return isChosen(key) || (await isFree(config[key], host)) ? config[key] : 0;
  };
  const demoSettings = {
    ...config,
    // The map shows the streets that the simulated locks ride through, unless the user sets others.
    mapStreets:
      config.mapStreets ?? (config.mapTiles === null ? streetLines(JSON.stringify(streetsGeoJson(CITY))) : null),
    mqttPort: await freePort('mqttPort', config.mqttHost),
    httpPort: await freePort('httpPort', config.httpHost),
    operatorPort: await freePort('operatorPort', config.operatorHost),
  };
  return { config: demoSettings, settings: resolved };
}

/**
 * Adds loopback to the setting of the ranges that webhooks may go to: for the demo's receiver, and for others that the
 * user starts. Returns any other setting unchanged.
 */
function withLoopback(resolved: ResolvedSetting): ResolvedSetting {
  if (resolved.setting.key !== 'allowWebhookRange') return resolved;
  return { ...resolved, text: [resolved.text, LOOPBACK_RANGE].filter((range) => range !== '').join(',') };
}

/** The webhook receiver's port: that of the flag, or the default, or 0 (any free port) if another program has that. */
async function choosePort(portFlag: number | undefined): Promise<number> {
  if (portFlag !== undefined) return portFlag;
  return (await isFree(DEFAULT_WEBHOOK_PORT, HOST)) ? DEFAULT_WEBHOOK_PORT : 0;
}

function isFree(port: number, host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, host, () => probe.close(() => resolve(true)));
  });
}

function startDemoReceiver(accounts: DemoAccounts): Promise<Receiver> {
  return startReceiver({
    host: HOST,
    port: accounts.webhookPort,
    secrets: [accounts.webhookSecret],
    clock: systemClock,
    onWebhook: (webhook) => print(webhookLine(webhook, lineWidth())),
  });
}

function startFleet(gateway: Gateway, config: Config, accounts: DemoAccounts): Fleet {
  const secrets = new Map(accounts.locks.map(({ mac, secret }) => [mac, secret]));
  const fleet = new Fleet({
    seed: accounts.seed,
    clock: gateway.clock,
    macs: accounts.locks.map(({ mac }) => mac),
    pace: 'lively',
    city: CITY,
    flash: new DirectoryFlash(path.join(config.data, 'demo', 'flash')),
    openLink: mqttLinks({ host: HOST, port: gateway.mqttPort }, (mac) => secrets.get(mac) ?? ''),
  });
  fleet.start();
  return fleet;
}

function printReady(
  config: Config,
  gateway: Gateway,
  accounts: DemoAccounts,
  {
    speed,
    dashboard,
    operatorPage,
  }: Pick<DemoFlags, 'speed'> & { readonly dashboard: string; readonly operatorPage: string },
): void {
  const { locks, webhookPort, isNew, apiKey } = accounts;
  print(paint('bold', `lockgate demo: ${locks.length} simulated locks at ${speed} × speed`));
  print(`  data       ${config.data}${isNew ? '' : ' (existing data)'}`);
  print(`  locks      mqtt://${HOST}:${gateway.mqttPort}`);
  print(`  webhooks   http://${HOST}:${webhookPort}/ (a receiver that verifies and prints)`);
  print(`  merchants  http://${HOST}:${gateway.httpPort}`);
  print(`  operators  http://${HOST}:${gateway.operatorPort}`);
  print(`  console    ${operatorPage}`);
  print(`  dashboard  ${dashboard}`);
  print(`  API key    ${apiKey} (of the merchant Demo)`);
  print(`Try it: curl -u ${apiKey}: http://${HOST}:${gateway.httpPort}/v1/pet \\`);
  print(`  -H 'content-type: application/json' -d '{"name":"Rex"}'`);
  print('In another terminal: npx lockgate device list, npx lockgate tail. Ctrl-C stops the demo.');
  print(paint('dim', 'time is the run’s clock, UTC; conn = connection, ping = decoded ping, hook = webhook received'));
}
