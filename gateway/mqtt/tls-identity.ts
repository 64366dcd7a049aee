/**
 * Reads and checks the gateway's TLS certificate (PEM, with the chain to its root) and its private key, each from a
 * file. So a wrong file is reported at the start or at a reload, not when the first lock connects.
 */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createSecureContext, type SecureContext } from 'node:tls';
import { LockgateError } from '../../proto/errors.js';

/** Older versions of TLS are insecure (RFC 8996). */
const MIN_TLS_VERSION = 'TLSv1.2';

/** Paths of the certificate and the key. */
export interface TlsFiles {
  readonly certificate: string;
  readonly key: string;
}

/** A certificate with its private key, checked and ready for use. */
export interface TlsIdentity {
  readonly context: SecureContext;
  /** SHA-256 of the certificate, hex with colons. */
  readonly fingerprint: string;
  /** The end of its validity, as written in the certificate. */
  readonly validTo: string;
}

/** Reads both files. @throws LockgateError `tls-file` with a sentence that names the missing or wrong file */
export function readTlsIdentity(files: TlsFiles): TlsIdentity {
  const cert = readPem(files.certificate, 'certificate');
  const key = readPem(files.key, 'key');
  const certificate = parse(files.certificate, 'a certificate in PEM', () => new X509Certificate(cert));
  const privateKey = parse(files.key, 'a private key in PEM, without a passphrase', () => parseKey(key));
  if (!certificate.checkPrivateKey(privateKey))
    throw fault(`the TLS key ${files.key} does not belong to the certificate ${files.certificate}`);
  // Only the chain behind the certificate can still be wrong.
  const context = parse(files.certificate, 'a certificate and its chain in PEM', () =>
    createSecureContext({ cert, key, minVersion: MIN_TLS_VERSION }),
  );
  return { context, fingerprint: certificate.fingerprint256, validTo: certificate.validTo };
}

function readPem(file: string, contents: 'certificate' | 'key'): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw fault(`the TLS ${contents} ${file} can't be read: ${(error as NodeJS.ErrnoException).code ?? String(error)}`);
  }
}

function parseKey(key: Buffer): KeyObject {
  return createPrivateKey({ key, format: 'pem' });
}

/** Runs `work`, which parses the file's contents. @throws LockgateError `tls-file` that names what is expected */
function parse<T>(file: string, expected: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new LockgateError('tls-file', `${file} does not contain ${expected}`, { cause: error });
  }
}

function fault(sentence: string): LockgateError {
  return new LockgateError('tls-file', sentence);
}
