/** Certificates for tests, and the files that a gateway reads them from. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';

/** A certificate and its private key, both PEM. */
export interface TestCertificate {
  readonly cert: string;
  readonly key: string;
}

/** A self-signed certificate for localhost. */
export async function testCertificate(): Promise<TestCertificate> {
  // Loaded with the first certificate: many tests import this file and make none.
  const { generate } = await import('selfsigned');
  const generated = await generate([{ name: 'commonName', value: 'localhost' }], { keyType: 'ec', curve: 'P-256' });
  return { cert: generated.cert, key: generated.private };
}

/** Writes the certificate and its key into a folder, over previous files. Returns the files. */
export function writeCertificate(folder: string, { cert, key }: TestCertificate): { certificate: string; key: string } {
  const files = { certificate: path.join(folder, 'cert.pem'), key: path.join(folder, 'key.pem') };
  writeFileSync(files.certificate, cert);
  writeFileSync(files.key, key);
  return files;
}
