/**
 * The command groups: name, description, and the file to load. That file repeats the description for the group's own
 * help; a test compares the two.
 */
import type { Command } from 'commander';

/** One group of the root command. */
export interface CommandGroup {
  readonly name: string;
  readonly description: string;
  /** Loads the file and returns the function that adds the group to the program. */
  readonly load: () => Promise<(program: Command) => void>;
}

/** All groups, in the order of `--help`. */
export const COMMAND_GROUPS: readonly CommandGroup[] = [
  {
    name: 'demo',
    description: 'Run a gateway, simulated locks and a webhook receiver, and show what they do.',
    load: async () => (await import('./commands/demo/command.js')).addDemoCommand,
  },
  {
    name: 'serve',
    description: 'Run the gateway.',
    load: async () => (await import('./commands/serve/serve.js')).addServeCommand,
  },
  {
    name: 'tail',
    description: 'Watch events live, one per line.',
    load: async () => (await import('./commands/tail/tail.js')).addTailCommand,
  },
  {
    name: 'why',
    description: 'Explain what a lock did or did not do, and what followed.',
    load: async () => (await import('./commands/why/why.js')).addWhyCommand,
  },
  {
    name: 'status',
    description: 'Show whether the gateway is well, on one screen.',
    load: async () => (await import('./commands/status.js')).addStatusCommand,
  },
  {
    name: 'console',
    description: 'Open the operators’ page by a one-time link.',
    load: async () => (await import('./commands/console/console.js')).addConsoleCommand,
  },
  {
    name: 'notices',
    description: 'Show unread notices for the operator.',
    load: async () => (await import('./commands/notices/notices.js')).addNoticeCommands,
  },
  {
    name: 'audit',
    description: 'Show who changed what, newest first.',
    load: async () => (await import('./commands/audit/audit.js')).addAuditCommand,
  },
  {
    name: 'merchant',
    description: 'Manage merchants.',
    load: async () => (await import('./commands/merchant/merchant.js')).addMerchantCommands,
  },
  {
    name: 'user',
    description: 'Manage merchants’ users, who log in over HTTP.',
    load: async () => (await import('./commands/user/user.js')).addUserCommands,
  },
  {
    name: 'key',
    description: 'Manage merchants’ API keys.',
    load: async () => (await import('./commands/key.js')).addKeyCommands,
  },
  {
    name: 'token',
    description: 'Manage operators’ named tokens and their roles.',
    load: async () => (await import('./commands/token.js')).addTokenCommands,
  },
  {
    name: 'device',
    description: 'Manage locks and their credentials.',
    load: async () => (await import('./commands/device/device.js')).addDeviceCommands,
  },
  {
    name: 'command',
    description: 'Send commands to locks.',
    load: async () => (await import('./commands/command/command.js')).addCommandCommands,
  },
  {
    name: 'webhook',
    description: 'Manage webhook URLs and deliveries.',
    load: async () => (await import('./commands/webhook/webhook.js')).addWebhookCommands,
  },
  {
    name: 'sim',
    description: 'Simulate locks, with firmware bugs and network faults.',
    load: async () => (await import('./commands/sim/sim.js')).addSimCommands,
  },
  {
    name: 'trace',
    description: 'Judge, list, anonymise, record and replay traces of locks.',
    load: async () => (await import('./commands/trace/trace.js')).addTraceCommands,
  },
  {
    name: 'ping',
    description: 'Decode and encode a single uplink.',
    load: async () => (await import('./commands/ping/ping.js')).addPingCommands,
  },
  {
    name: 'model',
    description: 'Show the power model and its rules.',
    load: async () => (await import('./commands/model/model.js')).addModelCommands,
  },
  {
    name: 'usage',
    description: 'Show cellular data usage, monthly statements and price plans.',
    load: async () => (await import('./commands/usage/usage.js')).addUsageCommands,
  },
  {
    name: 'config',
    description: 'Show the settings; confirm the system clock; replace the operator’s token or the encryption key.',
    load: async () => (await import('./commands/config/config.js')).addConfigCommands,
  },
  {
    name: 'db',
    description: 'Check, back up or migrate the store, or accept its damage.',
    load: async () => (await import('./commands/db/db.js')).addDbCommands,
  },
  {
    name: 'completion',
    description: 'Print a script for shell completion.',
    load: async () => (await import('./commands/completion/command.js')).addCompletionCommand,
  },
];
