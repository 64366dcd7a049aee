/**
 * What stands at the root of the command line: each name, what it is for, and the file that has the rest. The
 * descriptions stand in those files too, where the group's own help takes them from; a test holds the two together.
 */
import type { Command } from 'commander';

/** One word of the root. */
export interface CommandGroup {
  readonly name: string;
  readonly description: string;
  /** Loads the file; what it answers adds the group to the program. */
  readonly load: () => Promise<(program: Command) => void>;
}

/** In the order of help. */
export const COMMAND_GROUPS: readonly CommandGroup[] = [
  {
    name: 'demo',
    description: 'Run a gateway, a fleet of simulated locks and a webhook receiver, and show what happens.',
    load: async () => (await import('./commands/demo/command.js')).addDemoCommand,
  },
  {
    name: 'serve',
    description: 'Run the gateway.',
    load: async () => (await import('./commands/serve/serve.js')).addServeCommand,
  },
  {
    name: 'tail',
    description: 'Watch what happens, live: one line each.',
    load: async () => (await import('./commands/tail/tail.js')).addTailCommand,
  },
  {
    name: 'why',
    description: 'Say why: what a lock did or did not, and what became of it.',
    load: async () => (await import('./commands/why/why.js')).addWhyCommand,
  },
  {
    name: 'notices',
    description: 'Show what an operator should know and has not read yet.',
    load: async () => (await import('./commands/notices/notices.js')).addNoticeCommands,
  },
  {
    name: 'audit',
    description: 'Show what was changed and by whom, the newest first.',
    load: async () => (await import('./commands/audit/audit.js')).addAuditCommand,
  },
  {
    name: 'merchant',
    description: 'The merchants whose locks connect here.',
    load: async () => (await import('./commands/merchant.js')).addMerchantCommands,
  },
  {
    name: 'user',
    description: 'The merchants’ users, who log in over HTTP.',
    load: async () => (await import('./commands/user.js')).addUserCommands,
  },
  {
    name: 'key',
    description: 'The API keys that merchants call with.',
    load: async () => (await import('./commands/key.js')).addKeyCommands,
  },
  {
    name: 'device',
    description: 'The locks, and what they prove themselves with.',
    load: async () => (await import('./commands/device/device.js')).addDeviceCommands,
  },
  {
    name: 'command',
    description: 'What locks are asked to do, once each.',
    load: async () => (await import('./commands/command/command.js')).addCommandCommands,
  },
  {
    name: 'webhook',
    description: 'Where merchants get their pings.',
    load: async () => (await import('./commands/webhook/webhook.js')).addWebhookCommands,
  },
  {
    name: 'sim',
    description: 'Simulated locks: a fleet to order, with firmware bugs and network faults.',
    load: async () => (await import('./commands/sim/sim.js')).addSimCommands,
  },
  {
    name: 'trace',
    description: 'What locks did, as files: judged, listed, made anonymous, replayed.',
    load: async () => (await import('./commands/trace/trace.js')).addTraceCommands,
  },
  {
    name: 'ping',
    description: 'One uplink: from its bytes to JSON and back.',
    load: async () => (await import('./commands/ping/ping.js')).addPingCommands,
  },
  {
    name: 'model',
    description: 'The power model: what a lock does, and what it must not do.',
    load: async () => (await import('./commands/model/model.js')).addModelCommands,
  },
  {
    name: 'usage',
    description: 'Cellular data: what locks used, monthly statements, prices.',
    load: async () => (await import('./commands/usage/usage.js')).addUsageCommands,
  },
  {
    name: 'config',
    description: 'The settings in force; the clock, the token and the key.',
    load: async () => (await import('./commands/config/config.js')).addConfigCommands,
  },
  {
    name: 'db',
    description: 'The store: check it, back it up, bring it to this version, accept its damage.',
    load: async () => (await import('./commands/db/db.js')).addDbCommands,
  },
  {
    name: 'completion',
    description: 'Print what makes a shell complete lockgate’s commands, flags and values.',
    load: async () => (await import('./commands/completion/command.js')).addCompletionCommand,
  },
];
