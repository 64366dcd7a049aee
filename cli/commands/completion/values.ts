/**
 * Values for shell completion that the command tree does not contain: names from lockgate's files, and MACs, merchants
 * and ids from a running gateway, if it answers quickly. Must print nothing.
 */
import { Seconds, systemClock } from '../../../proto/clock.js';

/** A word and its meaning. */
export interface WordValue {
  readonly value: string;
  readonly means?: string;
}

/** The words before the cursor, and the flags among them. */
interface Given {
  readonly flags: ReadonlyMap<string, string>;
  readonly words: readonly string[];
}

type Source = (given: Given) => Promise<readonly WordValue[]>;

/** How long the gateway may take to answer. */
const GATEWAY_TIMEOUT_MS = Seconds(0.5);

const MAX_VALUES = 500;

/** Sources of values, by command and flag or argument. A test checks that each key exists in the command tree. */
export const VALUE_SOURCES: Readonly<Record<string, Source>> = {
  'trace check --ignore': rules,
  'sim run --bug': bugs,
  'sim run --fault': faults,
  'sim run --scenario': scenarios,
  'sim scenarios <name>': scenarios,
  'webhook trigger <story>': stories,
  'webhook set <id>': urls,
  'webhook remove <id>': urls,
  'webhook rotate-secret <id>': urls,
  'usage plan set <merchant>': merchants,
  'usage plan show <merchant>': merchants,
  'key revoke <id>': keys,
  'command show <id>': commands,
  'command cancel <id>': commands,
  'command send <words>': macsAndTypes,
  'trace show --reason': reasons,
};

/** The values for a position; empty if unknown. @param what the name in the flag's angle brackets */
export async function valuesFor(path: string, name: string, what: string, given: Given): Promise<readonly WordValue[]> {
  const source = VALUE_SOURCES[`${path} ${name}`] ?? sourceByName(name, what);
  return source === undefined ? [] : (await source(given)).slice(0, MAX_VALUES);
}

function sourceByName(name: string, what: string): Source | undefined {
  if (what === 'mac') return macs;
  if (name === '--merchant') return merchants;
  if (name === '--url' && what === 'id') return urls;
  return what === 'on|off' ? async () => [{ value: 'on' }, { value: 'off' }] : undefined;
}

async function rules(): Promise<readonly WordValue[]> {
  const { RULES } = await import('../../../proto/power/rules.js');
  return RULES.map(({ rule, brokenWhen }) => ({ value: rule, means: brokenWhen }));
}

async function bugs(): Promise<readonly WordValue[]> {
  const { BUGS } = await import('../../../firmware-sim/faults/bugs.js');
  return BUGS.map(({ name, sentence }) => ({ value: name, means: sentence }));
}

async function faults(): Promise<readonly WordValue[]> {
  const { FAULTS } = await import('../../../firmware-sim/faults/faults.js');
  return FAULTS.map(({ name, sentence }) => ({ value: name, means: sentence }));
}

async function scenarios(): Promise<readonly WordValue[]> {
  const { builtInNames } = await import('../../../firmware-sim/scenario/built-in.js');
  return builtInNames().map((value) => ({ value }));
}

async function stories(): Promise<readonly WordValue[]> {
  const { STORIES } = await import('../../../firmware-sim/story/story.js');
  return STORIES.map(({ name }) => ({ value: name }));
}

async function reasons(): Promise<readonly WordValue[]> {
  const { REASONS } = await import('../../../proto/wire/reasons.js');
  return REASONS.map(({ name }) => ({ value: name }));
}

async function macs(given: Given): Promise<readonly WordValue[]> {
  const { devices } = await ask<{ devices: { mac: string; merchant: string }[] }>('/devices', given);
  const wanted = given.flags.get('--merchant');
  const some = devices.filter(({ merchant }) => wanted === undefined || merchant === wanted);
  return some.map(({ mac, merchant }) => ({ value: mac, means: merchant }));
}

async function macsAndTypes(given: Given): Promise<readonly WordValue[]> {
  const types = ['unlock', 'lock', 'siren', 'locate-gps', 'locate-cell', 'set-power', 'reset'];
  const offered = types.map((value) => ({ value }));
  try {
    return [...offered, ...(await macs(given)).filter(({ value }) => !given.words.includes(value))];
  } catch {
    return offered;
  }
}

async function merchants(given: Given): Promise<readonly WordValue[]> {
  const answer = await ask<{ merchants: { name: string }[] }>('/merchants', given);
  return answer.merchants.map(({ name }) => ({ value: name }));
}

async function urls(given: Given): Promise<readonly WordValue[]> {
  const { webhooks } = await ask<{ webhooks: { id: number; url: string; merchant: string }[] }>('/webhooks', given);
  return webhooks.map(({ id, url, merchant }) => ({ value: String(id), means: `${url} (${merchant})` }));
}

async function keys(given: Given): Promise<readonly WordValue[]> {
  const answer = await ask<{ keys: { id: string; name: string; state: string }[] }>('/keys', given);
  return answer.keys.map(({ id, name, state }) => ({ value: id, means: `${name}, ${state}` }));
}

async function commands(given: Given): Promise<readonly WordValue[]> {
  const answer = await ask<{ commands: { id: number; type: string; mac: string; state: string }[] }>(
    '/commands?limit=50',
    given,
  );
  return answer.commands.map(({ id, type, mac, state }) => ({ value: String(id), means: `${type} ${mac}, ${state}` }));
}

/** Asks the gateway that the typed flags name, or else the default gateway. */
async function ask<T>(where: string, { flags }: Given): Promise<T> {
  const { GatewayClient } = await import('../../client.js');
  const [gateway, token, data] = ['--gateway', '--token', '--data'].map((flag) => flags.get(flag));
  const client = new GatewayClient({ ...(gateway && { gateway }), ...(token && { token }), ...(data && { data }) });
  const timeout = new AbortController();
  const timer = systemClock.after(GATEWAY_TIMEOUT_MS, () => timeout.abort());
  try {
    return await client.get<T>(where, timeout.signal);
  } finally {
    timer.cancel();
  }
}
