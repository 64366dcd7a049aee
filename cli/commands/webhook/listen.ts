/** `lockgate webhook listen`: receives webhooks on this machine, verifies and prints them. */
import type { Command } from 'commander';
import { Seconds, systemClock, type Timer } from '../../../proto/clock.js';
import { EXIT_CODE } from '../../terminal/exit-codes.js';
import { untilInterrupted } from '../../terminal/interrupt.js';
import { print, printJsonLine, printNote } from '../../terminal/output.js';
import { collect, readCount, readPort, readSpan } from './flags.js';
import type { Answerer, ReceivedWebhook } from './receiver-answer.js';
import { webhookLine } from './webhook-line.js';

/** Adds the command to the group. */
export function addListenCommand(webhook: Command): void {
  webhook
    .command('listen')
    .description('Receive webhooks on this machine; verify, show and answer each.')
    .option('--port <port>', 'The port to listen on, on loopback; 0 lets the system choose.', readPort, 9000)
    .option(
      '--secret <whsec>',
      'A signing secret to verify webhooks with; can be repeated [LOCKGATE_WEBHOOK_SECRET].',
      collect,
      [],
    )
    .option('--expect <n>', 'Exit with code 0 after this many verified, accepted webhooks.', readCount)
    .option('--within <span>', 'Exit with code 1 if --expect is not met within this time, such as 30s.', readSpan)
    .option('--fail <plan>', 'Answer with faults, one per webhook, such as 500,timeout,reset*3,ok,503*.')
    .option('--retry-after <span>', 'The Retry-After of answers 429 and 503 of --fail, such as 30s.', readSpan)
    .option('--forward <url>', 'Forward each webhook unchanged, and pass on the answer’s status, Retry-After and body.')
    .option('--json', 'Print each webhook as a JSON line.')
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
  /** Seconds. */
  readonly within?: number;
  readonly fail?: string;
  /** Seconds. */
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
  let reportMet: () => void = () => undefined;
  const expectationMet = new Promise<void>((resolve) => {
    reportMet = resolve;
  });
  // By id, so that a webhook that arrives twice counts once for --expect.
  const acceptedIds = new Set<string>();
  const isMet = (): boolean => flags.expect === undefined || acceptedIds.size >= flags.expect;
  const receiver = await startReceiver({
    host: '127.0.0.1',
    port: flags.port,
    secrets,
    clock: systemClock,
    answer,
    retryAfterSeconds: flags.retryAfter,
    onWebhook: (webhook, answered) => {
      show(webhook, answered, flags);
      if (flags.expect === undefined || webhook.verified === false || !isAccepted(answered)) return;
      acceptedIds.add(webhook.id);
      if (isMet()) reportMet();
    },
  });
  printNote(`Listening on http://127.0.0.1:${receiver.port}/`);
  if (secrets.length === 0) printNote('No --secret was given: nothing is verified.');
  let deadline: Timer | undefined;
  const deadlinePassed = new Promise<void>((resolve) => {
    if (flags.within !== undefined) deadline = systemClock.after(Seconds(flags.within), resolve);
  });
  await Promise.race([interrupted.happened, expectationMet, deadlinePassed]);
  deadline?.cancel();
  await receiver.close();
  if (!isMet()) printNote(`${acceptedIds.size} of ${flags.expect} webhooks arrived.`);
  process.exitCode = isMet() ? EXIT_CODE.done : EXIT_CODE.negativeAnswer;
}

async function answerOf({ fail, forward }: ListenFlags): Promise<Answerer> {
  const { faultyAnswers, successAnswers, forwardedAnswers, readFaults } = await import('./receiver-answer.js');
  const afterFaults = forward === undefined ? successAnswers : forwardedAnswers(forward);
  return fail === undefined ? afterFaults : faultyAnswers(readFaults(fail), afterFaults);
}

function isAccepted(answer: number | 'timeout' | 'reset'): boolean {
  return typeof answer === 'number' && answer >= 200 && answer <= 299;
}

function show(webhook: ReceivedWebhook, answer: number | 'timeout' | 'reset', flags: ListenFlags): void {
  const { verified = null, headers, body } = webhook;
  const width = process.stdout.isTTY ? process.stdout.columns : undefined;
  if (flags.json) printJsonLine({ verified, headers, body, answer });
  else print(webhookLine(webhook, width, isAccepted(answer) ? '' : `(answered: ${answer})`));
}
