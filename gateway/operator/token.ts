import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import path from 'node:path';
import { LockgateError } from '../../proto/errors.js';
import { readOrMakeSecretFile } from '../secret-file.js';

const TOKEN_BYTES = 32;
const TOKEN_PREFIX = 'lgo_';

/** Where the operator's token of a data folder is kept. */
export function operatorTokenFile(folder: string): string {
  return path.join(folder, 'operator-token');
}

/**
 * The operator's token of a data folder, made at the first start with mode 600: who may read the folder's files as
 * their owner may operate the gateway.
 *
 * @throws LockgateError `bad-token-file` where the file holds none
 */
export function openOperatorToken(folder: string): string {
  const file = operatorTokenFile(folder);
  const token = readOrMakeSecretFile(file, () => TOKEN_PREFIX + randomBytes(TOKEN_BYTES).toString('base64url'));
  if (token.length < TOKEN_BYTES) throw new LockgateError('bad-token-file', `${file} holds no operator token`);
  return token;
}

/** Whether the Authorization header carries the token, in constant time. */
export function isOperator(authorization: string | undefined, token: string): boolean {
  const given = /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1] ?? '';
  const hash = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(hash(given), hash(token));
}
