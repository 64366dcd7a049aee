/**
 * Reads the head of an HTTP/1 answer: the status line and the header fields (RFC 9112 §4 to §6). Pure. It is as strict
 * as Node's own parser: a head that two programs might read differently is an error, since a wrong end of an answer
 * would make its rest look like the next one. Of the fields it keeps only those that a delivery needs.
 */

/** The answer is not HTTP, or can be read in two ways. The message has none of the receiver’s text. */
export class MalformedAnswer extends Error {
  constructor(problem: string) {
    super(`the answer is not valid HTTP: ${problem}`);
  }
}

/** How the end of the body is found: a number is its length in bytes. */
export type BodyEnd = number | 'chunked' | 'close';

export interface AnswerHead {
  readonly status: number;
  readonly bodyEnd: BodyEnd;
  /** Whether the receiver takes another request on the connection after this answer. */
  readonly keepsConnection: boolean;
  readonly retryAfter: string | undefined;
  /** The time of the answer, by the receiver's clock, as HTTP writes it. */
  readonly date: string | undefined;
}

/** The versions are those that Node's parser takes. */
const STATUS_LINE = /^HTTP\/(0\.9|1\.[01]|2\.0) ([1-9]\d\d)(?: [^\r\n]*)?\r\n/;
/** One field with its line end. Values may hold tabs and any character but control characters (RFC 9110 §5.5). */
const FIELD = /([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)\r\n/y;
/** The receiver closes the connection within a second: too soon for another request. */
const CLOSING_SOON = /^timeout=[01]\b/;

/** What the fields say that matters here. */
class Fields {
  length: number | undefined;
  codings: string[] | undefined;
  readonly connection: string[] = [];
  keepAlive: string | undefined;
  retryAfter: string | undefined;
  date: string | undefined;

  add(name: string, value: string): void {
    switch (name.toLowerCase()) {
      case 'content-length':
        if (this.length !== undefined) throw new MalformedAnswer('two lengths');
        this.length = parseLength(value);
        break;
      case 'transfer-encoding':
        this.codings = [...(this.codings ?? []), ...tokens(value)];
        break;
      case 'connection':
        this.connection.push(...tokens(value));
        break;
      case 'keep-alive':
        this.keepAlive ??= value;
        break;
      case 'retry-after':
        this.retryAfter ??= value;
        break;
      case 'date':
        this.date ??= value;
        break;
      default:
    }
  }
}

/**
 * Reads a head. `text` ends with the empty line after the last field; each character is a byte.
 *
 * @throws MalformedAnswer
 */
export function parseAnswerHead(text: string): AnswerHead {
  const statusLine = STATUS_LINE.exec(text);
  if (statusLine === null) throw new MalformedAnswer('the status line');
  const [line, version, digits] = statusLine;
  const fields = new Fields();
  FIELD.lastIndex = line.length;
  // The last two characters are the empty line.
  for (let at = line.length; at < text.length - 2; at = FIELD.lastIndex) {
    const field = FIELD.exec(text);
    if (field === null) throw new MalformedAnswer('a header field');
    fields.add(field[1] as string, (field[2] as string).trimEnd());
  }
  const status = Number(digits);
  const bodyEnd = bodyEndOf(status, fields);
  const { connection, keepAlive = '', retryAfter, date } = fields;
  const wantsMore = version === '1.1' ? !connection.includes('close') : saysKeepAlive(connection);
  const keepsConnection = wantsMore && bodyEnd !== 'close' && !CLOSING_SOON.test(keepAlive);
  return { status, bodyEnd, keepsConnection, retryAfter, date };
}

function saysKeepAlive(connection: readonly string[]): boolean {
  return connection.includes('keep-alive') && !connection.includes('close');
}

/** How the body ends (RFC 9112 §6.3). */
function bodyEndOf(status: number, { codings, length }: Fields): BodyEnd {
  if (codings !== undefined && length !== undefined) throw new MalformedAnswer('a length beside a transfer coding');
  // That includes 101, which answers a request for another protocol. No webhook asks for one.
  if (status < 200 || status === 204 || status === 304) return 0;
  if (codings !== undefined) return codings.at(-1) === 'chunked' ? 'chunked' : 'close';
  return length ?? 'close';
}

/** The elements of a list field, in lower case. */
function tokens(value: string): string[] {
  return value.split(',').map((token) => token.trim().toLowerCase());
}

function parseLength(value: string): number {
  const length = /^\d+$/.test(value) ? Number(value) : Number.NaN;
  if (!Number.isSafeInteger(length)) throw new MalformedAnswer('the length');
  return length;
}
