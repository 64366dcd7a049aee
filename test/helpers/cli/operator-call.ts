/** Calls a gateway's HTTP interface for operators, and returns the answer. */
import got, { type Method } from 'got';
import type { Gateway } from '../../../gateway/gateway.js';

/** The gateway's answer. */
export interface OperatorAnswer {
  readonly status: number;
  /** The header content-type. */
  readonly type: string | undefined;
  /** The parsed JSON; null if the body is empty. */
  readonly body: unknown;
}

/** Sends a request, with the operator's token unless another token is given. */
export async function callOperator(
  gateway: Gateway,
  method: Method,
  path: string,
  json?: unknown,
  token?: string,
): Promise<OperatorAnswer> {
  const answer = await got(`http://127.0.0.1:${gateway.operatorPort}${path}`, {
    method,
    headers: { authorization: `Bearer ${token ?? gateway.operatorToken}` },
    throwHttpErrors: false,
    retry: { limit: 0 },
    ...(json !== undefined && { json }),
  });
  const type = answer.headers['content-type'];
  return { status: answer.statusCode, type, body: answer.body === '' ? null : JSON.parse(answer.body) };
}
