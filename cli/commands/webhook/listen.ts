import type { Command } from 'commander';
import { Seconds, systemClock, type Timer } from '../../../proto/clock.js';
import { EXIT } from '../../terminal/exit-codes.js';
import { untilInterrupted } from '../../terminal/interrupt.js';
import { note, print, printJsonLine } from '../../terminal/output.js';
import { collect, readCount, readPort, readSpan } from './flags.js';
import type { Answerer, ReceivedWebhook } from './receiver-answer.js';
import { webhookLine } from './webhook-line.js';

/** `lockgate webhook listen` */
export function addListenCommand(webhook: Command): void {
  webhook
    .command('listen')
    .description('Receive webhooks on this machine: verifies each, shows it, answers.')
    .option('--port <port>', 'The port to listen on, on loopback; 0 lets the system choose.', readPort, 9000)
    .option(
      '--secret <whsec>',
      'A signing secret to verify with; can be repeated [LOCKGATE_WEBHOOK_SECRET].',
      collect,
      [],
    )
    .option('--expect <n>', 'End with exit code 0 after so many webhooks that verified and were taken.', readCount)
    .option('--within <span>', 'Where --expect is not met in this time, such as 30s, end with exit code 1.', readSpan)
    .option('--fail <plan>', 'Answer badly, one webhook after the other: 500,timeout,reset*3,ok,503* for example.')
    .option('--retry-after <span>', 'What a 429 or 503 of --fail asks for in Retry-After, such as 30s.', readSpan)
    .option('--forward <url>', 'Send each on as it came, and pass on the answer: its status, Retry-After and body.')
    .option('--json', 'Print each body as it came, a JSON line each.')
    .addHelpText(
      'after',
      '\nExample:\n  $ lockgate webhook listen --port 9000 --secret whsec_…\n' +
        '  $ lockgate webhook listen --secret whsec_… --fail 500,timeout --expect 3 --within 60s',
    )
    .action(listen);
}

interface ListenFlags {
  readonly port: number;
  readonly secret: readonly string[];
  readonly expect?: number;
  readonly within?: number;
  readonly fail?: string;
  readonly retryAfter?: number;
  readonly forward?: string;
  readonly json?: boolean;
}

async function listen(flags: ListenFlags): Promise<void> {
  const { startReceiver } = await import('./receiver.js');
  const answer = await answerOf(flags);
  const interrupted = untilInterrupted();
  const fromEnvironment = process.env.LOCKGATE_WEBHOOK_SECRET;
  const secrets = flags.secret.length > 0 || !fromEnvironment ? flags.secret : [fromEnvironment];
  let enough: () => void = () => undefined;
  const gotEnough = new Promise<void>((resolve) => {
    enough = resolve;
  });
  const ids = new Set<string>();
  const isMet = (): boolean => flags.expect === undefined || ids.size >= flags.expect;
  const receiver = await startReceiver({
    host: '127.0.0.1',
    port: flags.port,
    secrets,
    clock: systemClock,
    answer,
    retryAfterSeconds: flags.retryAfter,
    onWebhook: (webhook, answered) => {
      show(webhook, answered, flags);
      if (flags.expect === undefined || webhook.verified === false || !isTaken(answered)) return;
      ids.add(webhook.id);
      if (isMet()) enough();
    },
  });
  note(`Listening on http://127.0.0.1:${receiver.port}/`);
  if (secrets.length === 0) note('No --secret: nothing is verified.');
  let deadline: Timer | undefined;
  const late = new Promise<void>((resolve) => {
    if (flags.within !== undefined) deadline = systemClock.after(Seconds(flags.within), resolve);
  });
  await Promise.race([interrupted.happened, gotEnough, late]);
  deadline?.cancel();
  await receiver.close();
  if (!isMet()) note(`${ids.size} of ${flags.expect} webhooks came.`);
  process.exitCode = isMet() ? EXIT.done : EXIT.no;
}

async function answerOf({ fail, forward }: ListenFlags): Promise<Answerer> {
  const { faultyAnswers, fineAnswers, forwardedAnswers, readFaults } = await import('./receiver-answer.js');
  const then = forward === undefined ? fineAnswers : forwardedAnswers(forward);
  return fail === undefined ? then : faultyAnswers(readFaults(fail), then);
}

function isTaken(answer: number | 'timeout' | 'reset'): boolean {
  return typeof answer === 'number' && answer >= 200 && answer <= 299;
}

function show(webhook: ReceivedWebhook, answer: number | 'timeout' | 'reset', flags: ListenFlags): void {
  const { verified = null, headers, body } = webhook;
  const width = process.stdout.isTTY ? process.stdout.columns : undefined;
  if (flags.json) printJsonLine({ verified, headers, body, answer });
  else print(webhookLine(webhook, width, isTaken(answer) ? '' : `(answered: ${answer})`));
}
