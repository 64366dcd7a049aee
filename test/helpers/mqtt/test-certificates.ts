/** Certificates for tests, and the files that a gateway reads them from. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { Days, type Milliseconds, systemClock } from '../../../proto/clock.js';

/** A certificate and its private key, both PEM. */
export interface TestCertificate {
  readonly cert: string;
  readonly key: string;
}

/** A self-signed certificate for localhost, which ends after this time. */
export async function testCertificate(lifetime: Milliseconds = Days(365)): Promise<TestCertificate> {
  // Loaded with the first certificate: many tests import this file and make none.
  const { generate } = await import('selfsigned');
  const options = { keyType: 'ec', curve: 'P-256', notAfterDate: new Date(systemClock.now() + lifetime) } as const;
  const generated = await generate([{ name: 'commonName', value: 'localhost' }], options);
  return { cert: generated.cert, key: generated.private };
}

/** Writes the certificate and its key into a folder, over previous files. Returns the files. */
export function writeCertificate(folder: string, { cert, key }: TestCertificate): { certificate: string; key: string } {
  const files = { certificate: path.join(folder, 'cert.pem'), key: path.join(folder, 'key.pem') };
  writeFileSync(files.certificate, cert);
  writeFileSync(files.key, key);
  return files;
}
