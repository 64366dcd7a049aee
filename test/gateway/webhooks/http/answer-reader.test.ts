/**
 * The reader of receivers' answers, compared with Node's HTTP client: both read the same bytes, whole and in every kind
 * of pieces, and must see the same status and body, or both an error.
 */
import { deepStrictEqual } from 'node:assert/strict';
import { type IncomingMessage, request } from 'node:http';
import { Duplex } from 'node:stream';
import fc from 'fast-check';
import t from 'tap';
import { AnswerReader, MAX_BODY_KEPT_BYTES } from '../../../../gateway/webhooks/sending/http/answer-reader.js';
import { postRequestBytes } from '../../../../gateway/webhooks/sending/http/request-text.js';

const RUNS = 1500;

/** How a client read an answer, with the body where it is comparable; undefined if it is not valid or not complete. */
type Seen = { readonly status: number; readonly body?: string } | undefined;

/** What the gateway's reader sees in these pieces, after which the receiver closes the connection. */
function readPieces(pieces: readonly Buffer[]): Seen {
  const reader = new AnswerReader();
  try {
    const isComplete = pieces.some((piece) => reader.read(piece)) || reader.end();
    if (!isComplete) return undefined;
    const { status, body } = reader.answer;
    return { status, body: body.toString('latin1') };
  } catch {
    return undefined;
  }
}

/** What Node's client sees. */
function readWithNode(bytes: Buffer): Promise<Seen> {
  return new Promise((resolve) => {
    const socket = new Duplex({
      read: () => undefined,
      write: (_chunk, _encoding, done) => done(),
    });
    const call = request('http://receiver.test/', { method: 'POST', createConnection: () => socket });
    let answer: IncomingMessage | undefined;
    const chunks: Buffer[] = [];
    const complete = (): void => {
      const body = Buffer.concat(chunks).toString('latin1').slice(0, MAX_BODY_KEPT_BYTES);
      resolve({ status: answer?.statusCode ?? 0, body });
    };
    // An error after a complete answer is about what follows the answer, and may come before its body.
    call.on('error', () => resolve(answer?.complete ? { status: answer.statusCode ?? 0 } : undefined));
    call.on('upgrade', ({ statusCode = 0 }) => resolve({ status: statusCode, body: '' }));
    call.on('response', (response) => {
      answer = response;
      response.on('data', (chunk: Buffer) => void chunks.push(chunk));
      response.on('error', () => resolve(undefined));
      response.on('end', complete);
    });
    call.on('finish', () => {
      socket.push(bytes);
      socket.push(null);
    });
    call.end('{}');
  });
}

// The parts of which random answers are made. Valid and invalid ones are mixed.
const oneOf = fc.constantFrom;
const statusLines = [
  ...[
    'HTTP/1.1 200 OK',
    'HTTP/1.1 204 No Content',
    'HTTP/1.1 304 NM',
    'HTTP/1.1 500',
    'HTTP/1.0 200 OK',
    'HTTP/2.0 201 X',
  ],
  ...['HTTP/1.2 200 OK', 'HTTP/1.1 20 X', 'HTTP/1.1 2000 X', 'http/1.1 200 OK', 'HTTP/1.1  200 OK', ' HTTP/1.1 200 OK'],
  ...['HTTP/1.1 200 \xe9\x01', 'HTTP/2 200 OK', 'SSH-2.0-x'],
];
const fields = [
  ...[
    'Content-Length: 2',
    'content-length:2',
    'Content-Length: 0',
    'Content-Length: 9',
    'Content-Length: x',
    'Content-Length:',
  ],
  ...[
    'Content-Length: 2, 2',
    'Content-Length: +2',
    'Content-Length : 2',
    'Transfer-Encoding: chunked',
    'A: b',
    'A b: c',
  ],
  ...[
    'Transfer-Encoding: gzip',
    'Transfer-Encoding: gzip, Chunked',
    ': x',
    'Nothing',
    ' folded',
    'A: \x01',
    'A: \xe9',
    'A:',
  ],
  ...['Connection: close', 'Connection: keep-alive', 'Connection: upgrade', 'Upgrade: h2c', 'Keep-Alive: timeout=5'],
];
const bodies = [
  ...[
    '',
    'ok',
    'okay, and more',
    '2\r\nok\r\n0\r\n\r\n',
    '2;a=b\r\nok\r\n0\r\nT: x\r\n\r\n',
    '02\r\nok\r\n0\r\n\r\n',
    '2 \r\nok\r\n0\r\n\r\n',
  ],
  ...[
    'zz\r\nok\r\n0\r\n\r\n',
    '2\r\nokk\r\n0\r\n\r\n',
    '5\r\nok',
    '2\nok\n0\n\n',
    '0\r\n\r\n',
    '0\r\nT x\r\n\r\n',
    '2\r\nok\r\n',
  ],
];
// What comes before the answer; often nothing.
const informational = [
  '',
  '',
  '',
  'HTTP/1.1 100 Continue\r\n\r\n',
  'HTTP/1.1 103 Hints\r\nLink: </a>\r\n\r\n',
  '\r\n',
  '\n',
];

const answers = fc
  .tuple(oneOf(...informational), oneOf(...statusLines), fc.array(oneOf(...fields), { maxLength: 4 }), oneOf(...bodies))
  .map(([before, statusLine, lines, body]) => `${before}${[statusLine, ...lines].join('\r\n')}\r\n\r\n${body}`);

/** Cuts bytes into pieces of these lengths, repeated. */
function cut(bytes: Buffer, lengths: readonly number[]): Buffer[] {
  const pieces: Buffer[] = [];
  for (let at = 0, index = 0; at < bytes.length; index += 1) {
    const length = lengths[index % lengths.length] ?? 1;
    pieces.push(bytes.subarray(at, at + length));
    at += length;
  }
  return pieces;
}

t.test('answers mean the same as to Node’s client, in whatever pieces they arrive', async (t) => {
  let validCount = 0;
  const lengths = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 });
  await fc.assert(
    fc.asyncProperty(answers, lengths, async (text, sizes) => {
      const bytes = Buffer.from(text, 'latin1');
      const expected = await readWithNode(bytes);
      if (expected !== undefined) validCount += 1;
      for (const pieces of [[bytes], cut(bytes, sizes), cut(bytes, [1])]) {
        const seen = readPieces(pieces);
        // Equal in all members that `expected` has: it may lack the body.
        deepStrictEqual(seen && { ...seen, ...expected }, seen);
        deepStrictEqual(seen?.status, expected?.status);
      }
    }),
    { numRuns: RUNS, seed: 20261123 },
  );
  t.ok(validCount > RUNS / 20, `${validCount} valid answers were compared`);
});

t.test('bytes that are not HTTP fail at their first line, without waiting for the end of a head', (t) => {
  for (const text of [
    'SSH-2.0-OpenSSH_9\r\n',
    '220 mail.test ESMTP\r\n',
    'HTTP/1.1 200 OK\nA: b\n',
    '\x15\x03\x01',
    '<html>',
  ])
    t.throws(() => new AnswerReader().read(Buffer.from(text, 'latin1')), /the answer is not valid HTTP/, text);
  t.notOk(new AnswerReader().read(Buffer.from('HTT')));
  t.end();
});

t.test('heads and informational answers have limits', (t) => {
  const endless = new AnswerReader();
  endless.read(Buffer.from('HTTP/1.1 200 OK\r\nA: '));
  t.throws(() => {
    for (let count = 0; count < 20; count += 1) endless.read(Buffer.alloc(1000, 'a'));
  }, /over 16 KiB/);
  const informed = new AnswerReader();
  t.throws(() => {
    for (let count = 0; count <= 100; count += 1) informed.read(Buffer.from('HTTP/1.1 102 Processing\r\n\r\n'));
  }, /informational/);
  t.end();
});

t.test('a connection is reused only if the answer allows it and no bytes of it are left to read', (t) => {
  const keeps = (...texts: string[]): boolean => {
    const reader = new AnswerReader();
    for (const text of texts) if (reader.read(Buffer.from(text))) return reader.keepsConnection;
    throw new Error('the answer is not complete');
  };
  const head = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n';
  t.equal(keeps(`${head}\r\nok`), true);
  t.equal(keeps(`${head}\r\nok\r\n`), false);
  t.equal(keeps(`${head}Connection: x, Close\r\n\r\nok`), false);
  t.equal(keeps(`${head}Keep-Alive: timeout=1\r\n\r\nok`), false, 'a second is too short to reuse it safely');
  t.equal(keeps('HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok'), false);
  t.equal(keeps('HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok'), true);
  t.equal(keeps('HTTP/1.1 101 Switching\r\n\r\n'), false);
  t.equal(keeps('HTTP/1.1 200 OK\r\nContent-Length: 70000\r\n\r\n', 'x'.repeat(2000)), false, 'cut after what is kept');
  t.equal(keeps('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n', '\r\n'), true);
  t.end();
});

t.test('a request has each header once, and no header can end its head', (t) => {
  const url = new URL('http://[::1]:8080/a%20b?c=d#e');
  const made = postRequestBytes({ url, headers: { 'X-A': '1', 'x-a': 'é' }, body: '{"a":"ü"}' });
  const bytes = 'bytes' in made ? made.bytes : Buffer.from(made.latin1, 'latin1');
  const head =
    'POST /a%20b?c=d HTTP/1.1\r\nHost: [::1]:8080\r\nConnection: keep-alive\r\nx-a: é\r\ncontent-length: 10\r\n\r\n';
  t.same(bytes, Buffer.concat([Buffer.from(head, 'latin1'), Buffer.from('{"a":"ü"}')]));
  for (const headers of [{ a: 'b\r\nc: d' }, { 'a\r\nb': 'c' }, { a: 'ł' }])
    t.throws(() => postRequestBytes({ url, headers, body: '{}' }));
  t.end();
});
