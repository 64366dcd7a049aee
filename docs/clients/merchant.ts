/**
 * A merchant's program in TypeScript, for Node.js 20 or later, without packages: it receives webhooks, reads events
 * that it missed, and unlocks a lock. Copy what you need. README.md beside it says how to run it.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
// `lockgate webhook schema --types` prints this file.
import type { CommandWebhook, WebhookEvent } from '../webhook-payload.js';

const { LOCKGATE_URL = 'http://127.0.0.1:8080', LOCKGATE_KEY = '', WEBHOOK_SECRET = '' } = process.env;
const MAX_TRIES = 5;

/** Checks the signature of a webhook, over the bytes of its body as they came. Throws an Error if it is not valid. */
export function verify(secret: string, headers: IncomingHttpHeaders, body: Buffer, now = Date.now() / 1000): void {
  const { 'webhook-id': id, 'webhook-timestamp': time, 'webhook-signature': given = '' } = headers;
  // A replayed webhook has its old time.
  if (!(Math.abs(now - Number(time)) <= 300)) throw new Error('the timestamp is over 5 min off');
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64');
  const digest = createHmac('sha256', key).update(`${id}.${time}.`).update(body).digest('base64');
  const expected = Buffer.from(`v1,${digest}`);
  const fits = (each: Buffer): boolean => each.length === expected.length && timingSafeEqual(each, expected);
  // While a secret is changed, a webhook has two signatures.
  if (
    !String(given)
      .split(' ')
      .some((each) => fits(Buffer.from(each)))
  )
    throw new Error('no signature fits');
}

/** Receives webhooks, and prints each event once. */
function receive(port: number): void {
  // A webhook may come twice. A real program has these ids in its database, beside what it did with the events.
  const seen = new Set<string>();
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    try {
      verify(WEBHOOK_SECRET, request.headers, body);
    } catch (error) {
      console.error(`refused: ${(error as Error).message}`);
      response.writeHead(401).end();
      return;
    }
    const event = JSON.parse(body.toString('utf8')) as WebhookEvent;
    if (!seen.has(event.event_id)) handle(event);
    seen.add(event.event_id);
    // Answered within 15 s, and only when the event is safe: any other answer makes the gateway try again.
    response.writeHead(204).end();
  });
  server.listen(port, '127.0.0.1', () => console.log(`receiving on port ${port}`));
}

/** What the shop does with an event: here it prints it. */
function handle(event: WebhookEvent): void {
  const what = 'ping_type' in event ? event.reason : event.type;
  console.log(`${event.event_id} ${event.mac_addr} ${what}`);
}

/** Calls the interface. A call that may be repeated is repeated when the gateway is busy or can't be reached. */
async function call<T>(path: string, init: RequestInit = {}): Promise<{ status: number; body: T }> {
  const authorization = `Basic ${Buffer.from(`${LOCKGATE_KEY}:`).toString('base64')}`;
  for (let tries = 1; ; tries += 1) {
    const headers = { ...init.headers, authorization };
    const answer = await fetch(`${LOCKGATE_URL}${path}`, { ...init, headers }).catch((error: Error) => error);
    const isBusy = answer instanceof Error || answer.status === 429 || answer.status >= 500;
    if (!isBusy) return { status: answer.status, body: (await answer.json()) as T };
    const why = answer instanceof Error ? answer.message : `status ${answer.status}`;
    if (tries === MAX_TRIES) throw new Error(`${path}: ${why}`);
    const seconds = answer instanceof Error ? tries : Number(answer.headers.get('retry-after') ?? tries);
    await wait(seconds * 1000);
  }
}

interface EventPage {
  readonly data: readonly WebhookEvent[];
  readonly next_cursor: string;
  readonly oldest_cursor?: string;
}

/** Reads all events that came after the cursor in `file`, page by page, and stores the new cursor there. */
async function readEvents(file: string): Promise<void> {
  let cursor = existsSync(file) ? readFileSync(file, 'utf8') : '';
  for (;;) {
    const after = cursor === '' ? '' : `&after=${encodeURIComponent(cursor)}`;
    const { status, body } = await call<EventPage>(`/v1/events?limit=100${after}`);
    if (status === 410 && body.oldest_cursor !== undefined) {
      console.error('events were deleted for their age before they were read');
      cursor = body.oldest_cursor;
      continue;
    }
    if (status !== 200) throw new Error(`/v1/events: status ${status}`);
    for (const event of body.data) handle(event);
    if (body.data.length === 0) return;
    cursor = body.next_cursor;
    // Replaced as a whole: a program that is killed here has the old cursor or the new one.
    writeFileSync(`${file}.new`, cursor);
    renameSync(`${file}.new`, file);
  }
}

/** Unlocks a lock. The key is one of yours for this rental, so that a repeated call opens the lock no second time. */
async function unlock(mac: string, key: string): Promise<void> {
  const { status, body } = await call<{ id: number; state: CommandWebhook['state'] }>(`/v1/locks/${mac}/commands`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': key },
    body: JSON.stringify({ type: 'unlock' }),
  });
  if (status !== 202) throw new Error(`unlock: status ${status}: ${JSON.stringify(body)}`);
  console.log(`command ${body.id} ${body.state}`);
}

const [task, ...words] = process.argv.slice(2);
if (task === 'receive') receive(Number(words[0]));
else if (task === 'events') await readEvents(words[0] ?? 'cursor');
else if (task === 'unlock') await unlock(words[0] ?? '', words[1] ?? '');
else if (task !== undefined) throw new Error('expected: receive PORT, events FILE, or unlock MAC KEY');
