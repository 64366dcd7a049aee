/** `lockgate command list|show|cancel`: lists, shows and cancels commands. */
import { commandText } from '../../../gateway/console/wording/command-text.js';
import { type ConnectionFlags, GatewayClient } from '../../client.js';
import type { GatewayClocks } from '../../gateway-clocks.js';
import { paint, print, printEmptyList, printJson, sanitizeLine } from '../../terminal/output.js';
import { type PageFlags, printPages, queryOf } from '../../terminal/paged-list.js';
import type { Column, Mark } from '../../terminal/table.js';
import { agoText, whenText } from '../../terminal/time-text.js';

/** A command, as the operator interface returns it. */
export interface CommandJson {
  readonly id: number;
  readonly mac: string;
  readonly type: string;
  readonly parameters: Readonly<Record<string, unknown>>;
  /** `queued` until it is sent, then `sent`, and in the end one of those in {@link STATE_MARKS}, or `cancelled`. */
  readonly state: string;
  /** The lock's answer, or why the command failed; empty if there is neither. */
  readonly detail: string;
  /** What an unfinished command is waiting for; null if it is finished. */
  readonly waits: { readonly for: string; readonly text: string; readonly due_at: string | null } | null;
  readonly asked_by: string;
  readonly created_at: string;
  /** Null for a command that may be sent at once. */
  readonly not_before: string | null;
  readonly expires_at: string;
  readonly first_sent_at: string | null;
  readonly last_sent_at: string | null;
  readonly sent_count: number;
  readonly finished_at: string | null;
}

type Flags = ConnectionFlags & { readonly json?: boolean };

/** The gateway answers with at most this many commands. */
const PAGE_COMMANDS = 1_000;

/** The flags of `lockgate command list`. */
export interface ListFlags extends Flags, PageFlags {
  readonly mac?: string;
  readonly state?: string;
}

/** `lockgate command list`. */
export async function listCommands(flags: ListFlags): Promise<void> {
  const { mac, state, json } = flags;
  const list = { path: '/commands', query: queryOf({ mac, state }), member: 'commands', pageSize: PAGE_COMMANDS };
  const count = await printPages<CommandJson>(new GatewayClient(flags), list, flags, json ? undefined : commandColumns);
  if (count > 0 || json) return;
  const nothingYet = 'There is no command yet. Send one: lockgate command send MAC TYPE';
  printEmptyList([mac, state], 'No commands match.', nothingYet);
}

/** The mark of each state of a command; unfinished and cancelled commands have none. */
export const STATE_MARKS: Readonly<Record<string, Mark>> = {
  done: 'good',
  rejected: 'bad',
  failed: 'bad',
  expired: 'bad',
};

/** The columns. Times of commands are by `runMs`, the clock of the locks, which is faster in a sped-up run. */
function commandColumns(
  _commands: readonly CommandJson[],
  { runMs: nowMs }: GatewayClocks,
): readonly Column<CommandJson>[] {
  return [
    { title: 'ID', show: (row) => String(row.id), neverCut: true },
    { title: 'MAC', show: (row) => row.mac, neverCut: true },
    { title: 'COMMAND', show: commandText, prose: true },
    { title: 'STATE', show: (row) => row.state, mark: (row) => STATE_MARKS[row.state] },
    { title: 'WHY', show: (row) => shortWhyText(row, nowMs), prose: true },
    { title: 'CREATED', show: (row) => agoText(row.created_at, nowMs), optional: true },
    { title: 'EXPIRES', show: (row) => whenText(row.expires_at, nowMs), optional: true },
    { title: 'SENT', show: (row) => String(row.sent_count), optional: true },
    { title: 'FINISHED', show: (row) => (row.finished_at ? agoText(row.finished_at, nowMs) : '–'), optional: true },
  ];
}

/** `lockgate command show`. */
export async function showCommand(id: number, flags: Flags): Promise<void> {
  const command = await new GatewayClient(flags).get<CommandJson>(`/commands/${id}`);
  if (flags.json) return printJson(command);
  print(`${paint('bold', `Command ${command.id}`)}  ${commandText(command)}  ${command.mac}`);
  print(sanitizeLine(stateText(command)));
  print(sanitizeLine(`requested at ${command.created_at} by ${command.asked_by}`));
  if (command.not_before !== null) print(`not before ${command.not_before}`);
  if (command.first_sent_at !== null) {
    const again = command.sent_count > 1 ? `, ${command.sent_count} times, last at ${command.last_sent_at}` : '';
    print(`sent at ${command.first_sent_at}${again}`);
  }
  print(command.finished_at === null ? `expires at ${command.expires_at}` : `finished at ${command.finished_at}`);
}

/** `lockgate command cancel`. */
export async function cancelCommand(id: number, flags: Flags): Promise<void> {
  const command = await new GatewayClient(flags).post<CommandJson>(`/commands/${id}/cancel`, {});
  if (flags.json) return printJson(command);
  print(`Command ${command.id} (${commandText(command)} for ${command.mac}) is cancelled.`);
}

/** The state with its reason, if there is one. */
export function stateText(command: CommandJson): string {
  const why = whyText(command);
  return why === '' ? command.state : `${command.state} (${why})`;
}

/** As {@link whyText}, with how long the wait will be instead of its end. */
function shortWhyText(command: CommandJson, nowMs: number): string {
  const due = command.waits?.due_at ?? null;
  const text = whyText(command);
  return due === null ? text : text.replace(`due at ${due}`, `due ${whenText(due, nowMs)}`);
}

function whyText({ waits, detail }: CommandJson): string {
  return waits === null ? detail : `waiting: ${waits.text}`;
}
