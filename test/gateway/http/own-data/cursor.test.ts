/**
 * Cursors, with which a client asks for the next page of a list: they are opaque texts, and a damaged cursor or one of
 * another list is always recognised (interfaces.md §2).
 */
import t from 'tap';
import { decodeCursor, encodeCursor, MAX_CURSOR_CHARS } from '../../../../gateway/http/merchant/own-data/cursor.js';
import { linkTo, readPage } from '../../../../gateway/http/merchant/own-data/list.js';
import { SeededChance } from '../../../helpers/pair/seeded-chance.js';

t.test('a cursor is decoded to its position, and only for its list', async (t) => {
  for (const position of [[1], ['Zoë’s lock', null, 7], [Number.MAX_SAFE_INTEGER, ''], ['x'.repeat(300)]]) {
    const text = encodeCursor('locks', position);
    t.match(text, /^[\w-]+$/, 'it needs no escaping in a URL');
    t.strictSame(decodeCursor('locks', text), position);
    t.equal(decodeCursor('pings', text), undefined, 'another list');
  }
});

t.test('every damaged cursor is recognised', async (t) => {
  const text = encodeCursor('locks', ['A4C138F0E1D2', 12]);
  const chance = new SeededChance(19);
  // All letters of base64url, and some others.
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=+/ %{';
  for (let index = 0; index < text.length; index += 1)
    for (const letter of letters) {
      const damaged = text.slice(0, index) + letter + text.slice(index + 1);
      if (damaged !== text && decodeCursor('locks', damaged) !== undefined) t.fail(`${damaged} is accepted`);
    }
  for (let length = 0; length < text.length; length += 1)
    t.equal(decodeCursor('locks', text.slice(0, length)), undefined, `cut to ${length}`);
  for (let round = 0; round < 200; round += 1) {
    const bytes = Buffer.from(Array.from({ length: 1 + Math.floor(chance.next() * 80) }, () => chance.next() * 256));
    t.equal(decodeCursor('locks', bytes.toString('base64url')), undefined, 'random bytes');
  }
  t.equal(decodeCursor('locks', 'A'.repeat(MAX_CURSOR_CHARS + 1)), undefined, 'too long');
});

t.test('a page is read from a valid query, and a bad cursor is refused with a pointer', async (t) => {
  const cursor = encodeCursor('locks', ['a', 1]);
  t.strictSame(readPage({ query: {} }, 'locks', ['any', 'number']), { limit: 100, after: undefined });
  t.strictSame(readPage({ query: { limit: 7, cursor } }, 'locks', ['any', 'number']), { limit: 7, after: ['a', 1] });
  const refusal = { status: 400, code: 'input-cursor', faults: [{ pointer: '/cursor' }] };
  t.throws(() => readPage({ query: { cursor } }, 'pings', ['any', 'number']), refusal, 'another list');
  t.throws(() => readPage({ query: { cursor } }, 'locks', ['number', 'number']), refusal, 'another type');
  t.throws(() => readPage({ query: { cursor } }, 'locks', ['any']), refusal, 'another length');
});

t.test('the link names the same request with the next cursor', async (t) => {
  t.equal(
    linkTo('/v1/locks?label=a%3Db&cursor=old', 'cursor', 'new'),
    '</v1/locks?label=a%3Db&cursor=new>; rel="next"',
  );
  t.equal(linkTo('/v1/locks', 'cursor', 'new'), '</v1/locks?cursor=new>; rel="next"');
  t.notMatch(
    linkTo('/v1/locks?search=%0d%0aSet-Cookie:x>', 'cursor', 'new'),
    /[\r\n]|x>;/,
    'a query can’t end the header or the link',
  );
});
