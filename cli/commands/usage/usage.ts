/** `lockgate usage …`: flags and help of the group, and its commands statement, close and plan. */
import { type Command, Option } from 'commander';
import type { Statement } from '../../../gateway/usage/statement.js';
import { type ConnectionFlags, GatewayClient } from '../../client.js';
import { paint, print, printJson, printNote, sanitizeLine } from '../../terminal/output.js';
import { addClientFlags, addGatewayFlags } from '../../terminal/shared-flags.js';
import { printTable } from '../../terminal/table.js';
import { addWatchFlag, repeatIfWatched } from '../../terminal/watch.js';
import { readCount } from '../webhook/flags.js';
import type { UsageFlags } from './listing.js';

type Flags = ConnectionFlags & { readonly json?: boolean };

/** A merchant's prices, as the operator interface returns them: decimal numbers as text. */
interface PlanJson {
  readonly merchant: string;
  readonly from: string;
  readonly per_mb: string;
  readonly per_sim: string;
  readonly currency: string;
}

const FORMATS = ['table', 'csv', 'json'] as const;
type Format = (typeof FORMATS)[number];

const TOTALS_BY = ['lock', 'month'];

const SHOW_HELP = `
Newest month first, within a month highest usage first. On a terminal a bar compares each row with the largest. A lock
that changed its merchant in a month has a row for each merchant.

Example:
  $ lockgate usage show --month 2026-11 --merchant "Amber Bikes"
  $ lockgate usage show --by month
  $ lockgate usage show --by lock --limit 10`;

/** Adds the group to the program. */
export function addUsageCommands(program: Command): void {
  const usage = program.command('usage').description('Show cellular data usage, monthly statements and price plans.');
  addWatchFlag(addClientFlags(usage.command('show').description('Show usage by lock and month.')))
    .argument('[mac]', 'Only this lock.')
    .option('--merchant <name>', 'Only this merchant.')
    .option('--month <month>', 'Only this month (UTC), such as 2026-11.')
    .addOption(
      new Option('--by <what>', 'Show totals by lock (all months) or by month (all locks).').choices(TOTALS_BY),
    )
    .option('--limit <n>', 'Maximum number of rows to list; the total includes all rows.', readCount)
    .addHelpText('after', SHOW_HELP)
    .action(
      repeatIfWatched(async (mac: string | undefined, flags: UsageFlags) => {
        const { showUsage } = await import('./listing.js');
        await showUsage(mac, flags);
      }),
    );
  addGatewayFlags(usage.command('statement').description('Print the closed statements of a month.'))
    .option('--month <month>', 'The month (default: the last complete month).')
    .option('--merchant <name>', 'Only this merchant.')
    .addOption(new Option('--format <format>', 'The format (default: table).').choices([...FORMATS]))
    .option('--json', 'Same as --format json.')
    .addHelpText('after', '\nExample:\n  $ lockgate usage statement --month 2026-11 --format csv')
    .action(statement);
  addClientFlags(
    usage.command('close').description('Close a complete month. The gateway also does this automatically.'),
  )
    .option('--month <month>', 'The month (default: the last complete month).')
    .addHelpText('after', '\nClosing a month again changes nothing.')
    .addHelpText('after', '\nExample:\n  $ lockgate usage close --month 2026-11')
    .action(close);
  addPlanCommands(usage);
}

function addPlanCommands(usage: Command): void {
  const plan = usage.command('plan').description('Manage price plans of merchants. Without a plan nothing is charged.');
  addClientFlags(plan.command('set').description('Set a merchant’s prices, from a given month on.'))
    .argument('<merchant>', 'The merchant’s name.')
    .requiredOption('--per-mb <price>', 'The price per MB (1,000,000 bytes), with at most 6 decimals.')
    .requiredOption('--per-sim <price>', 'The price per active SIM and month.')
    .requiredOption('--currency <code>', 'The currency: three letters (ISO 4217).')
    .option('--from <month>', 'The first month (default: the current month). Closed months do not change.')
    .addHelpText(
      'after',
      '\nExample:\n  $ lockgate usage plan set "Amber Bikes" --per-mb 0.12 --per-sim 0.80 --currency EUR',
    )
    .action(setPlan);
  addClientFlags(plan.command('show').description('Show the prices, and the month from which they apply.'))
    .argument('[merchant]', 'Only this merchant.')
    .addHelpText('after', '\nExample:\n  $ lockgate usage plan show "Amber Bikes"')
    .action(showPlans);
}

async function statement(
  flags: Flags & { readonly merchant?: string; readonly month?: string; readonly format?: Format },
): Promise<void> {
  const [{ printStatements }, { statementsCsv }] = await Promise.all([
    import('./statement-print.js'),
    import('../../../gateway/usage/usage-csv.js'),
  ]);
  const format = flags.json === true ? 'json' : (flags.format ?? 'table');
  const url = withQuery('/usage/statements', { merchant: flags.merchant, month: flags.month });
  const { statements } = await new GatewayClient(flags).get<{ statements: Statement[] }>(url);
  if (format === 'json') printJson({ statements });
  else if (format === 'csv') process.stdout.write(statementsCsv(statements));
  else printStatements(statements);
}

async function close(flags: Flags & { readonly month?: string }): Promise<void> {
  const { month } = flags;
  const body = month === undefined ? {} : { month };
  type Closed = { readonly merchant: string; readonly month: string; readonly new: boolean };
  const { closed } = await new GatewayClient(flags).post<{ closed: Closed[] }>('/usage/close', body);
  if (flags.json) return printJson({ closed });
  if (closed.length === 0) return printNote('There is no merchant yet.');
  for (const each of closed)
    print(sanitizeLine(`${each.month}  ${each.merchant}: ${each.new ? 'closed' : 'closed already, unchanged'}`));
}

async function setPlan(
  merchant: string,
  flags: Flags & {
    readonly perMb: string;
    readonly perSim: string;
    readonly currency: string;
    readonly from?: string;
  },
): Promise<void> {
  const { perMb, perSim, currency, from } = flags;
  const plan = await new GatewayClient(flags).post<PlanJson>('/usage/plans', {
    merchant,
    per_mb: perMb,
    per_sim: perSim,
    currency,
    ...(from !== undefined && { from }),
  });
  if (flags.json) return printJson(plan);
  const text = sanitizeLine(`${plan.merchant} pays ${planText(plan)}, from `);
  print(`${text}${paint('bold', sanitizeLine(plan.from))}.`);
}

async function showPlans(merchant: string | undefined, flags: Flags): Promise<void> {
  const { plans } = await new GatewayClient(flags).get<{ plans: PlanJson[] }>(withQuery('/usage/plans', { merchant }));
  if (flags.json) return printJson({ plans });
  if (plans.length === 0) {
    const [who, what] = merchant === undefined ? ['There is', 'nothing is'] : ['The merchant has', 'it is not'];
    return printNote(`${who} no price plan: ${what} charged. Set one: lockgate usage plan set`);
  }
  printTable(plans, [
    { title: 'MERCHANT', show: (row) => row.merchant },
    { title: 'FROM', show: (row) => row.from },
    { title: 'PER MB', show: (row) => `${row.per_mb} ${row.currency}` },
    { title: 'PER ACTIVE SIM', show: (row) => `${row.per_sim} ${row.currency}` },
  ]);
}

function planText({ per_mb: mb, per_sim: sim, currency }: PlanJson): string {
  return `${mb} ${currency} per MB (1,000,000 bytes) and ${sim} ${currency} per active SIM and month`;
}

/** A path with the given query members; undefined ones are left out. */
function withQuery(path: string, members: Readonly<Record<string, string | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(members)) if (value !== undefined) query.set(name, value);
  return query.size === 0 ? path : `${path}?${query}`;
}
